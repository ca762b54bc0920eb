"""`deployer up` killed between any two side effects: the next `up` ends in exactly what is declared."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import lance
import pytest

from deployer.cli.main import run
from deployer.state import open_store
from deployer.state.log.updates import RegisterTable
from deployer.state.model.entities import INSTANCE_LOG
from tests import forks
from tests.projects import INSTANCE, make_project, table

TABLES = 20
STEPS = TABLES + 1  # and the instance


def cases() -> Iterator[object]:
    for point in ("engine.step.begin", "engine.step.done", "engine.step.end"):
        for number in range(1, STEPS + 1):
            yield pytest.param(f"{point}@{number}", id=f"{point}-{number}")
    for point in ("tables.create.registered", "tables.create.written"):
        for number in (1, TABLES // 2, TABLES):
            yield pytest.param(f"{point}@{number}", id=f"{point}-{number}")
    for point in ("engine.checkpoint.begin", "engine.checkpoint.written"):
        yield pytest.param(point, id=point)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    specs = {f"t{number:02}.yaml": table(f"t{number:02}", "value: string") for number in range(TABLES)}
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, **specs})
    monkeypatch.chdir(folder)
    return folder


def killed(*arguments: str, at: str) -> None:
    """Run a command that kills itself at the failure point `at`."""
    command = [sys.executable, "-m", "deployer", *arguments]
    ended = forks.run(command, env={**os.environ, "DEPLOYER_FAILPOINT": at}, text=True)
    assert ended.returncode == -signal.SIGKILL, ended.stdout + ended.stderr


def check_is_as_declared(project: Path, names: set[str]) -> None:
    """Exactly these tables: in the state, on disk, and nothing to do."""
    root = project / "lakes" / "demo"
    with closing(open_store(root)) as store:
        entries = store.instance().tables.values()
        assert {(entry.name, entry.status) for entry in entries} == {(name, "active") for name in names}
        assert {str(path.relative_to(root)) for path in root.glob("air/*")} == {entry.location for entry in entries}
    assert run(["preview", "--exit-code"]) == 0
    assert not list((project / ".pulumi").rglob("*.journal"))


def check_created_once(project: Path) -> None:
    """No table was registered, written or recorded twice."""
    root = project / "lakes" / "demo"
    with closing(open_store(root)) as store:
        for entry in store.instance().tables.values():
            assert lance.dataset(str(root / entry.location)).version == 1
            assert store.table(entry.table_id).version == 1
        updates = (update for record in store.log(INSTANCE_LOG) for update in record.updates)
        registered = Counter(update.entry.full_name for update in updates if isinstance(update, RegisterTable))
    assert set(registered.values()) == {1}


@pytest.mark.thinned(8, only="engine.step")
@pytest.mark.parametrize("point", list(cases()))
def test_up_goes_on_where_it_was_killed(project: Path, point: str) -> None:
    killed("up", "--yes", at=point)
    assert run(["up", "--yes"]) == 0
    check_is_as_declared(project, {f"t{number:02}" for number in range(TABLES)})
    check_created_once(project)


@pytest.mark.thinned(2)
@pytest.mark.full
@pytest.mark.parametrize("declared_again", [False, True], ids=["gone", "declared-again"])
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize(
    "point",
    [
        "engine.step.begin",
        "engine.step.done",
        "engine.step.end",
        "tables.delete.marked",
        "tables.delete.removed",
        "tables.delete.forgotten",
    ],
)
def test_a_deletion_goes_on_where_it_was_killed(project: Path, point: str, number: int, declared_again: bool) -> None:
    for other in range(5, TABLES):
        (project / "specs" / f"t{other:02}.yaml").unlink()
    assert run(["up", "--yes"]) == 0
    names = {"t04"}
    removed = {file: file.read_text(encoding="utf-8") for file in (project / "specs").glob("t0[0-3].yaml")}
    for file in removed:
        file.unlink()
    killed("up", "--yes", at=f"{point}@{number}")
    if declared_again:
        for file, text in removed.items():
            file.write_text(text, encoding="utf-8")
            names.add(file.stem)
    assert run(["up", "--yes"]) == 0
    check_is_as_declared(project, names)


@pytest.mark.parametrize("point", ["tables.delete.marked", "tables.delete.removed", "tables.delete.forgotten"])
def test_what_is_half_deleted_hides_nothing_else(project: Path, point: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["up", "--yes"]) == 0
    (project / "specs" / "t00.yaml").unlink()
    killed("up", "--yes", at=point)
    capsys.readouterr()
    assert run(["drift"]) == 2
    said = capsys.readouterr().out
    assert "table/air.t00" in said and "table/air.t01" not in said
    run(["destroy", "--yes", "--json"])
    assert f'"delete": {TABLES}' in capsys.readouterr().out  # what else there is, and the instance


@pytest.mark.parametrize("point", ["engine.step.begin@1", "engine.step.done@2", "tables.create.written"])
def test_a_targeted_up_goes_on_where_it_was_killed(project: Path, point: str) -> None:
    """So does one of other targets in between, which leaves alone what the killed one began."""
    targets = ("--target", "table/air.t0[0-2]")
    killed("up", "--yes", *targets, at=point)
    assert run(["up", "--yes", "--target", "table/air.t05"]) == 0
    assert run(["preview", "--exit-code", *targets]) == 2
    assert run(["up", "--yes", *targets]) == 0
    assert run(["preview", "--exit-code", *targets, "--target", "table/air.t05"]) == 0
    with closing(open_store(project / "lakes" / "demo")) as store:
        entries = store.instance().tables.values()
        assert {(entry.name, entry.status) for entry in entries} == {(f"t0{n}", "active") for n in (0, 1, 2, 5)}
    check_created_once(project)
    assert run(["up", "--yes"]) == 0
    check_is_as_declared(project, {f"t{number:02}" for number in range(TABLES)})
