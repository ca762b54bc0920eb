"""The CLI's engine events, as `pulumi up --event-log` writes them, become this package's operations and events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pulumi.automation.events import EngineEvent

from deployer.engine import (
    Diagnostic,
    Event,
    Operation,
    StepFailed,
    StepFinished,
    StepProgress,
    StepStarted,
    choose_engine,
)
from deployer.engine.cli.engine import CliEngine
from deployer.engine.cli.events import EventCollector
from deployer.errors import InvalidInput, NotFound
from tests.engine.conftest import Lab

URN = "urn:pulumi:dev::demo::files:index:File::a"
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": "hush"}


def state(**more: Any) -> dict[str, Any]:
    return {"type": "files:index:File", "urn": URN, "id": "a.txt", "parent": "", "provider": "p::1", **more}


def step(op: str, **more: Any) -> dict[str, Any]:
    return {"op": op, "urn": URN, "type": "files:index:File", "provider": "p::1", **more}


CASES: dict[str, tuple[dict[str, Any], Operation | None, list[Event]]] = {
    "create": (
        {"resourcePreEvent": {"metadata": step("create", new=state(id="", inputs={"content": "1", "key": SECRET}))}},
        Operation(URN, "create", "files:index:File", "a", new_inputs={"content": "1", "key": "[secret]"}),
        [StepStarted(URN, "create")],
    ),
    "update with a detailed diff": (
        {
            "resourcePreEvent": {
                "metadata": step(
                    "update",
                    old=state(inputs={"content": "1"}, outputs={"size": 1}),
                    new=state(inputs={"content": "2"}),
                    detailedDiff={"content": {"diffKind": "update", "inputDiff": True}},
                )
            }
        },
        Operation(
            URN,
            "update",
            "files:index:File",
            "a",
            id="a.txt",
            old_inputs={"content": "1"},
            old_outputs={"size": 1},
            new_inputs={"content": "2"},
            detailed_diff={"content": "update"},
        ),
        [StepStarted(URN, "update")],
    ),
    "replace": (
        {
            "resourcePreEvent": {
                "metadata": step(
                    "create-replacement",
                    old=state(),
                    new=state(id=""),
                    keys=["kind"],
                    detailedDiff={"kind": {"diffKind": "update-replace", "inputDiff": True}},
                )
            }
        },
        Operation(
            URN,
            "replace",
            "files:index:File",
            "a",
            id="a.txt",
            detailed_diff={"kind": "update-replace"},
            replace_keys=("kind",),
        ),
        [StepStarted(URN, "replace")],
    ),
    "the deletion of what was replaced": (
        {"resourcePreEvent": {"metadata": step("delete-replaced", old=state())}},
        None,
        [StepStarted(URN, "delete-replaced")],
    ),
    "same": (
        {"resourcePreEvent": {"metadata": step("same", old=state(), new=state())}},
        Operation(URN, "same", "files:index:File", "a", id="a.txt"),
        [],
    ),
    "a default provider": (
        {
            "resourcePreEvent": {
                "metadata": {
                    "op": "create",
                    "urn": "urn:pulumi:dev::demo::pulumi:providers:files::default",
                    "type": "pulumi:providers:files",
                }
            }
        },
        None,
        [],
    ),
    "finished": (
        {"resOutputsEvent": {"metadata": step("create", new=state(outputs={"size": 1}))}},
        None,
        [StepFinished(URN, "create", 0.0, {"size": 1})],
    ),
    "failed": (
        {"resOpFailedEvent": {"metadata": step("update", new=state()), "status": 0, "steps": 1}},
        None,
        [StepFailed(URN, "update", "update failed; the diagnostics say why")],
    ),
    "a diagnostic in colour": (
        {"diagnosticEvent": {"urn": URN, "message": "<{%fg 1%}>bad<{%reset%}>\n", "color": "raw", "severity": "error"}},
        None,
        [Diagnostic(URN, "error", "bad")],
    ),
    "how far a step is": (
        {"diagnosticEvent": {"urn": URN, "message": "3 of 4\n", "color": "raw", "severity": "info", "ephemeral": True}},
        None,
        [StepProgress(URN, "3 of 4")],
    ),
    "a passing message": (
        {"diagnosticEvent": {"message": "…", "color": "raw", "severity": "info", "ephemeral": True}},
        None,
        [],
    ),
}


@pytest.mark.parametrize(("document", "operation", "expected"), CASES.values(), ids=CASES.keys())
def test_engine_events_are_translated(
    document: dict[str, Any], operation: Operation | None, expected: list[Event]
) -> None:
    seen: list[Event] = []
    collected = EventCollector(seen.append)
    collected.take(EngineEvent.from_json({"sequence": 1, "timestamp": 1, **document}))
    assert list(collected.operations.values()) == ([operation] if operation else [])
    assert seen == expected


def test_a_replacement_is_one_operation() -> None:
    collected = EventCollector()
    for op in ("create-replacement", "replace", "delete-replaced"):
        event = {"resourcePreEvent": {"metadata": step(op, old=state(), new=state())}}
        collected.take(EngineEvent.from_json({"sequence": 1, "timestamp": 1, **event}))
    assert collected.result({}).summary == {"replace": 1}


def test_the_cli_is_used_where_it_is(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.program("pass")
    (tmp_path / "path").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert type(choose_engine(lab.project())).__name__ == "EmbeddedEngine"
    with pytest.raises(NotFound, match="not on PATH"):
        choose_engine(lab.project(), "cli")
    executable = tmp_path / "path" / "pulumi"
    executable.touch(mode=0o755)
    assert isinstance(choose_engine(lab.project()), CliEngine)
    assert type(choose_engine(lab.project(), "embedded")).__name__ == "EmbeddedEngine"
    with pytest.raises(InvalidInput, match="no engine is called 'go'"):
        choose_engine(lab.project(), "go")
