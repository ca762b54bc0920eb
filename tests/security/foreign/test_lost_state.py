"""A state store that was lost while its tables' data, or Pulumi's state, is there: no command starts the lake again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project, table
from tests.security.foreign.photograph import differences, photograph


def database_is_gone(root: Path) -> None:
    for file in (root / "_state").glob("state.db*"):
        file.unlink()


def database_is_empty(root: Path) -> None:
    database_is_gone(root)
    (root / "_state" / "state.db").touch()


def folder_is_gone(root: Path) -> None:
    shutil.rmtree(root / "_state")


def lake_is_gone(root: Path) -> None:
    """As where the disk is not mounted."""
    shutil.rmtree(root)


LOSSES: Mapping[str, Callable[[Path], None]] = {
    each.__name__: each for each in (database_is_gone, database_is_empty, folder_is_gone, lake_is_gone)
}

#: Commands that plan, and those that only need the state store.
PLANNING = (("preview",), ("preview", "--out", "saved.plan"), ("up", "--yes"), ("drift",), ("destroy", "--yes"))
OTHERS = (
    ("tables",),
    ("query", "flights"),
    ("ingest", "flights", "flights.csv"),
    ("report", "--html", "page.html"),
    ("service", "check"),
    ("savepoint", "create", "x"),
    ("table", "gc"),
    ("table", "delete", "flights", "--force"),
    ("state", "verify"),
    ("state", "repair"),
)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_command_starts_the_lake_again(project: Path, root: Path, deployer: Deployer, loss: str) -> None:
    LOSSES[loss](root)
    without = [root / "_state"] if loss == "database_is_empty" else []  # SQLite writes its header into the empty file
    looked_at = (project / "lakes", project / "specs", project / ".pulumi" / "stacks")
    before = photograph(*looked_at, without=without)
    for command in (*PLANNING, *OTHERS):
        ran = deployer(*command)
        assert ran.code == (3 if command in PLANNING else 1), (command, ran)
        assert ran.err.startswith("error: ") and "Traceback" not in ran.err, command
        if command in PLANNING or loss != "lake_is_gone":
            assert "the state store is missing" in ran.err and "from a backup" in ran.err, command
        assert differences(before, photograph(*looked_at, without=without)) == [], command


@pytest.mark.parametrize("loss", ["database_is_gone", "database_is_empty", "folder_is_gone"])
def test_the_datasets_are_named_also_without_pulumis_state(
    project: Path, root: Path, deployer: Deployer, loss: str
) -> None:
    LOSSES[loss](root)
    shutil.rmtree(project / ".pulumi")
    ran = deployer("up", "--yes")
    assert ran.code == 3 and "3 datasets of its tables are there: air/flights-" in ran.err
    found = {each["check"]: each for each in deployer("doctor", "--json").json["checks"]}
    assert found["state-store"]["status"] == "wrong"


def test_a_backup_of_the_state_brings_all_back(root: Path, deployer: Deployer) -> None:
    shutil.copytree(root / "_state", root.parent / "backup")
    folder_is_gone(root)
    assert deployer("up", "--yes").code == 3
    shutil.move(root.parent / "backup", root / "_state")
    assert deployer("up", "--yes").code == 0
    assert [each["rows"] for each in deployer("tables", "--json").json["tables"]] == [3, 3, 3]


def test_without_a_backup_tables_are_imported_where_they_are(project: Path, root: Path, deployer: Deployer) -> None:
    """The way that docs/tables.md describes."""
    folder_is_gone(root)
    specs = {name: Path(f"specs/{name}.yaml").read_text() for name in ("flights", "planes", "notes")}
    for name in specs:
        Path(f"specs/{name}.yaml").unlink()
    assert deployer("up", "--yes").code == 3
    assert deployer("up", "--yes", "--new-state").code == 0
    for name in specs:
        [dataset] = (root / "air").glob(f"{name}-*.lance")
        assert deployer("import", f"table/air.{name}", str(dataset.relative_to(project))).code == 0
        [written] = Path("specs").rglob(f"{name}.yaml")
        written.write_text(specs[name])
    assert deployer("up", "--yes").code == 0
    assert [each["rows"] for each in deployer("tables", "--json").json["tables"]] == [3, 3, 3]
    assert deployer("describe", "flights", "--json").json["row_keys"] == ["id"]


def test_a_new_state_on_purpose(root: Path, deployer: Deployer) -> None:
    database_is_gone(root)
    before = sorted((root / "air").iterdir())
    assert deployer("preview", "--new-state", "--out", "saved.plan").code == 0
    assert deployer("up", "saved.plan", "--yes").code == 3
    assert deployer("up", "saved.plan", "--yes", "--new-state").code == 0
    assert [each["rows"] for each in deployer("tables", "--json").json["tables"]] == [0, 0, 0]
    assert set(before) <= set((root / "air").iterdir())
    assert deployer("up", "--yes").code == 0


def test_the_provider_alone_does_not_make_a_new_state_either(project: Path, root: Path) -> None:
    """As `pulumi up` would, without deployer's plan."""
    from deployer.errors import Refused
    from deployer.platform.system.progress import no_progress
    from deployer.provider.resources.instance import InstanceKind
    from deployer.provider.resources.run_context import Stores

    folder_is_gone(root)
    with pytest.raises(Refused, match="the state store is missing, and 3 datasets of its tables are there"):
        urn, inputs = "urn:pulumi:dev::lakes::lake:index:Instance::demo", {"name": "demo", "root": "lakes/demo"}
        InstanceKind().create(Stores(project), urn, inputs, no_progress)
    assert not (root / "_state").exists()


def test_datasets_that_deployer_never_made_do_not_count(
    tmp_path: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new lake may begin in a folder that has datasets of others."""
    folder = make_project(tmp_path / "new", {"demo.yaml": INSTANCE, "flights.yaml": table("flights")})
    monkeypatch.chdir(folder)
    for name in ("mine.lance", "air/flights.lance", "deep/er/flights-0123abcd.lance"):
        lance.write_dataset(pa.table({"id": [1]}), folder / "lakes" / "demo" / name)
    assert deployer("preview").code == 0
    assert deployer("up", "--yes").code == 0
    assert deployer("destroy", "--yes").code == 0
    assert (folder / "lakes" / "demo" / "mine.lance").exists()
