"""When a preview asks the engine: always, but for an untouched program whose state agrees with an empty plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployer.app.stack import engine as stack_engine
from deployer.engine import choose_engine
from tests.cli.conftest import Deployer
from tests.projects import table

Resources = list[dict[str, Any]]
Asked = list[str]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Grows whenever an engine is made."""
    made: Asked = []
    real = choose_engine

    def choose(*args: Any, **kwargs: Any) -> Any:
        made.append("engine")
        return real(*args, **kwargs)

    monkeypatch.setattr(stack_engine, "choose_engine", choose)
    return made


def checkpoint(project: Path) -> Path:
    (file,) = (project / ".pulumi" / "stacks").rglob("dev.json")
    return file


def edit_state(project: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    file = checkpoint(project)
    document = json.loads(file.read_text(encoding="utf-8"))
    edit(document["checkpoint"]["latest"])
    file.write_text(json.dumps(document), encoding="utf-8")


def table_of(resources: Resources) -> dict[str, Any]:
    return next(each for each in resources if each["type"] == "lake:index:Table")


def test_nothing_to_do_is_told_without_the_engine(applied: Path, deployer: Deployer, asked: Asked) -> None:
    ran = deployer("preview", "--exit-code")
    assert (ran.code, ran.out.strip()) == (0, "demo: nothing to do, 3 resources as declared")
    assert asked == []


def edited_program(project: Path) -> None:
    program = project / "stacks" / "__main__.py"
    program.write_text(program.read_text(encoding="utf-8") + "\n", encoding="utf-8")


def file_beside_the_program(project: Path) -> None:
    (project / "stacks" / "json.py").touch()


def forgotten_table(project: Path) -> None:
    edit_state(project, lambda state: state["resources"].remove(table_of(state["resources"])))


def other_id(project: Path) -> None:
    edit_state(project, lambda state: table_of(state["resources"]).update(id="0" * 32))


def to_be_deleted(project: Path) -> None:
    edit_state(
        project, lambda state: state["resources"].append({**table_of(state["resources"]), "delete": True, "id": "1"})
    )


def pending_operation(project: Path) -> None:
    edit_state(
        project,
        lambda state: state.update(pending_operations=[{"resource": table_of(state["resources"]), "type": "updating"}]),
    )


def no_state(project: Path) -> None:
    checkpoint(project).unlink()


def unfinished_journal(project: Path) -> None:
    checkpoint(project).with_name("dev.journal").touch()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (edited_program, 0),
        (file_beside_the_program, 0),
        (forgotten_table, 2),
        (other_id, 2),
        (to_be_deleted, 0),
        (pending_operation, 0),
        (no_state, 2),
        (unfinished_journal, 0),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_engine_is_asked(
    applied: Path, deployer: Deployer, asked: Asked, change: Callable[[Path], None], code: int
) -> None:
    change(applied)
    ran = deployer("preview", "--exit-code")
    assert (ran.code, asked) == (code, ["engine"]), ran.out + ran.err


def described(project: Path) -> None:
    spec = project / "specs" / "planes.yaml"
    spec.write_text(spec.read_text(encoding="utf-8") + "description: Aircraft.\n", encoding="utf-8")


def added_and_dropped(project: Path) -> None:
    (project / "specs" / "planes.yaml").unlink()
    (project / "specs" / "boats.yaml").write_text(table("boats"), encoding="utf-8")


def renamed(project: Path) -> None:
    spec = project / "specs" / "planes.yaml"
    text = spec.read_text(encoding="utf-8").replace("name: planes", "name: aircraft\nrenamed_from: planes")
    spec.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("change", "asks"), [(described, 0), (added_and_dropped, 0), (renamed, 1)])
def test_changes_are_the_same_with_and_without_the_engine(
    applied: Path, deployer: Deployer, asked: Asked, change: Callable[[Path], None], asks: int
) -> None:
    change(applied)
    without = deployer("preview", "--json")
    assert len(asked) == asks
    edited_program(applied)
    assert deployer("preview", "--json").json == without.json
    assert len(asked) == asks + 1
    assert deployer("up", "--yes", "--allow-destroy", "table/air.planes").code == 0
    assert deployer("preview", "--exit-code").code == 0


def test_up_brings_the_state_up_to_date_with_an_empty_plan(applied: Path, deployer: Deployer, asked: Asked) -> None:
    forgotten_table(applied)
    assert deployer("up", "--yes").code == 0
    asked.clear()
    assert deployer("preview", "--exit-code").code == 0
    assert asked == []
