"""A root that the specs changed: refused while the lake is at the old one, recorded once it was moved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import TWO_TABLES, Deployer
from tests.projects import applied_project, run

OLD, NEW = "lakes/demo", "other/demo"


def load() -> None:
    Path("rows.csv").write_text("id\n1\n2\n3\n", encoding="utf-8")
    run("ingest", "air.planes", "rows.csv")


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake whose table air.planes has three rows."""
    folder = applied_project(tmp_path / "project", TWO_TABLES, load)
    monkeypatch.chdir(folder)
    return folder


def set_root(project: Path, root: str) -> None:
    file = project / "specs" / "demo.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace(f"root: {OLD}", f"root: {root}"), encoding="utf-8")


def move(project: Path) -> None:
    (project / NEW).parent.mkdir()
    (project / OLD).rename(project / NEW)


@pytest.mark.parametrize("command", [("preview",), ("up", "--yes")], ids=" ".join)
def test_a_lake_that_was_not_moved_is_refused(applied: Path, deployer: Deployer, command: tuple[str, ...]) -> None:
    set_root(applied, NEW)
    ran = deployer(*command)
    assert ran.code == 3
    assert f"specs/demo.yaml:3:1: the lake is at {OLD}, but the specs say {NEW}, where there is no lake" in ran.err
    assert f"write `root: {OLD}` again, or move the lake yourself" in ran.err
    assert not (applied / NEW).exists()


def test_a_lake_that_was_moved_is_recorded_and_keeps_everything(applied: Path, deployer: Deployer) -> None:
    datasets = {folder.name for folder in (applied / OLD).glob("air/*.lance")}
    move(applied)
    set_root(applied, NEW)
    seen = deployer("preview")
    assert seen.code == 0
    assert f"safe     record root {OLD} → {NEW} (it exists already)" in seen.out
    assert "Plan: 1 to update, 2 unchanged" in seen.out
    ran = deployer("up", "--yes")
    assert ran.code == 0
    assert "Done: 1 updated" in ran.out
    assert [line.split(" (")[0].strip() for line in ran.err.splitlines()] == ["updated instance/demo"]
    assert deployer("preview", "--exit-code").out.strip() == "demo: nothing to do, 3 resources as declared"
    assert deployer("drift").code == 0
    assert {folder.name for folder in (applied / NEW).glob("air/*.lance")} == datasets
    assert json.loads(deployer("sql", "SELECT count(*) AS n FROM air.planes", "--json").out)["rows"] == [{"n": 3}]
    assert not (applied / OLD).exists()


def test_other_changes_are_made_with_the_move(applied: Path, deployer: Deployer) -> None:
    move(applied)
    set_root(applied, NEW)
    (applied / "specs" / "flights.yaml").unlink()
    planes = applied / "specs" / "planes.yaml"
    planes.write_text(planes.read_text(encoding="utf-8") + "description: Planes.\n", encoding="utf-8")
    assert "Plan: 2 to update, 1 to delete, 0 unchanged" in deployer("preview").out
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err
    assert "Done: 2 updated, 1 deleted" in ran.out
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.parametrize("command", [("preview",), ("up", "--yes")], ids=" ".join)
def test_another_name_of_the_instance_is_refused(applied: Path, deployer: Deployer, command: tuple[str, ...]) -> None:
    file = applied / "specs" / "demo.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("name: demo", "name: lake2"), encoding="utf-8")
    before = (applied / ".pulumi" / "stacks" / "lakes" / "dev.json").read_bytes()
    ran = deployer(*command)
    assert ran.code == 3
    assert "specs/demo.yaml:2:1: the lake at " in ran.err
    assert "is instance demo, and an instance keeps its name; nothing was changed" in ran.err
    assert "write `name: demo` again, or give lake2 a `root` of its own" in ran.err
    assert (applied / ".pulumi" / "stacks" / "lakes" / "dev.json").read_bytes() == before


def test_a_lake_that_is_gone_is_made_anew_at_another_root(applied: Path, deployer: Deployer) -> None:
    shutil.rmtree(applied / OLD)
    set_root(applied, NEW)
    assert "Plan: 3 to create" in deployer("preview").out
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0


def test_state_goes_to_another_root_through_a_file(applied: Path, deployer: Deployer) -> None:
    assert deployer("state", "export", "lake.zip").code == 0
    shutil.copytree(applied / OLD, applied / NEW, ignore=shutil.ignore_patterns("_state"))
    set_root(applied, NEW)
    assert deployer("state", "import", "lake.zip").code == 0
    assert deployer("up", "--yes").code == 0
    assert deployer("state", "verify").code == 0
    assert deployer("preview", "--exit-code").code == 0
