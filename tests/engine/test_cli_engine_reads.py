"""What the engine over the Pulumi CLI has the CLI do where nothing may be changed.

The CLI is not part of the test environment: a stand-in records with which backend it would have been called.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pulumi import automation

from deployer.engine.cli.engine import CliEngine
from deployer.engine.persistence.backend import read_checkpoint, stack_files
from deployer.engine.project.project import StackRef, read_project
from tests.projects import make_project


@dataclass
class Called:
    """What was asked of the CLI: selecting or making a stack, of which backend, and the resources found there."""

    found: list[tuple[str, str, list[str]]] = field(default_factory=list)
    limits: list[dict[str, Any]] = field(default_factory=list)  #: of each run, what it was limited to
    project: Path = Path()

    def asked(self, how: str, url: str) -> Called:
        resources: list[str] = []
        checkpoint = Path(url.removeprefix("file://"), ".pulumi/stacks/lakes/dev.json")
        if checkpoint.is_absolute() and checkpoint.exists():
            latest = json.loads(checkpoint.read_text())["checkpoint"]["latest"]
            resources = [each["urn"] for each in latest.get("resources") or ()]
        self.found.append((how, url, resources))
        return self

    def preview(self, **options: Any) -> Any:
        """As of a stack of the automation API, and so are the others."""
        self.limits.append({name: options.get(name) for name in ("target", "exclude")})
        return automation.UpResult("", "", None, {})  # type: ignore[arg-type]

    up = refresh = preview_refresh = preview


@pytest.fixture
def stack(tmp_path: Path) -> StackRef:
    return StackRef(read_project(make_project(tmp_path / "project", {})), "dev")


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, stack: StackRef) -> Called:
    found = Called(project=stack.project.dir)

    def select(name: str, *, work_dir: str, opts: Any) -> Called:
        if not stack_files(stack).has_state():
            raise automation.StackNotFoundError(None)  # type: ignore[arg-type]
        return found.asked("select", opts.env_vars["PULUMI_BACKEND_URL"])

    def make(name: str, *, work_dir: str, opts: Any) -> Called:
        return found.asked("make", opts.env_vars["PULUMI_BACKEND_URL"])

    monkeypatch.setattr(automation, "select_stack", select)
    monkeypatch.setattr(automation, "create_or_select_stack", make)
    monkeypatch.setattr(automation.StackNotFoundError, "__init__", lambda self, _: None)
    return found


URN = "urn:pulumi:dev::lakes::pulumi:pulumi:Stack::lakes-dev"
RESOURCE = {"urn": URN, "custom": False, "type": "pulumi:pulumi:Stack"}


def checkpoint_of(stack: StackRef, *resources: dict[str, Any]) -> Path:
    file = stack.project.dir / ".pulumi" / "stacks" / "lakes" / "dev.json"
    file.parent.mkdir(parents=True)
    latest = {"manifest": {"time": "2026-01-01T00:00:00Z", "magic": "", "version": ""}, "resources": list(resources)}
    file.write_text(json.dumps({"version": 3, "checkpoint": {"stack": "organization/lakes/dev", "latest": latest}}))
    return file


def test_a_stack_that_was_never_made_is_previewed_beside_its_backend(stack: StackRef, called: Called) -> None:
    CliEngine().preview(stack)
    [(how, url, resources)] = called.found
    assert how == "make" and url != "file://." and not resources
    assert not (stack.project.dir / ".pulumi").exists() and not Path(url.removeprefix("file://")).exists()
    assert not CliEngine().export(stack)["deployment"].get("resources")
    assert not (stack.project.dir / ".pulumi").exists()


def test_a_stack_is_previewed_where_it_is(stack: StackRef, called: Called) -> None:
    checkpoint_of(stack, RESOURCE)
    CliEngine().preview(stack)
    assert called.found == [("select", "file://.", [])]
    assert [each["urn"] for each in CliEngine().export(stack)["deployment"]["resources"]] == [URN]


def test_what_a_killed_run_left_is_counted_in_and_stays(stack: StackRef, called: Called) -> None:
    """The CLI does not know the journal of the embedded engine: it previews a copy in which that is folded."""
    file = checkpoint_of(stack, RESOURCE)
    journal = file.with_name("dev.journal")
    journal.write_text("")
    before = file.read_bytes()
    CliEngine().preview(stack)
    [(how, url, resources)] = called.found
    assert how == "make" and url != "file://." and resources == [URN]
    assert journal.exists() and file.read_bytes() == before == read_checkpoint(stack_files(stack)).raw


ONE, TWO = (f"urn:pulumi:dev::lakes::lake:index:Table::air.{name}" for name in ("one", "two"))
#: As the CLI gets them: it refuses a URN that is not in its state, such as that of a table to be created.
AS_GIVEN = {urn: urn.replace("urn:", "urn*:", 1) for urn in (ONE, TWO)}

# name: (targets, what is left alone, what the CLI is limited to; None where it is not called)
LIMITS: dict[str, tuple[set[str], set[str], dict[str, list[str] | None] | None]] = {
    "all": (set(), set(), {"target": None, "exclude": None}),
    "targets": ({ONE, TWO}, set(), {"target": [AS_GIVEN[ONE], AS_GIVEN[TWO]], "exclude": None}),
    "left_alone": (set(), {ONE}, {"target": None, "exclude": [AS_GIVEN[ONE]]}),
    "a_target_left_alone": ({ONE, TWO}, {ONE}, {"target": [AS_GIVEN[TWO]], "exclude": None}),
    "every_target_left_alone": ({ONE}, {ONE, TWO}, None),
}


@pytest.mark.parametrize("name", LIMITS)
def test_the_cli_is_limited_to_targets(name: str, stack: StackRef, called: Called) -> None:
    """It takes targets or exceptions, not both; without either it would change everything."""
    targets, leave, limits = LIMITS[name]
    CliEngine().preview(stack, targets=frozenset(targets), leave=frozenset(leave))
    CliEngine().up(stack, targets=frozenset(targets), leave=frozenset(leave))
    assert called.limits == ([] if limits is None else [limits, limits])


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_cli_refreshes_targets_alone(dry_run: bool, stack: StackRef, called: Called) -> None:
    CliEngine().refresh(stack, dry_run=dry_run, targets=frozenset({ONE}))
    assert called.limits == [{"target": [AS_GIVEN[ONE]], "exclude": None}]
