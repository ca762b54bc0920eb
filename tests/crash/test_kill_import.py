"""`deployer import` killed between any two side effects: the same command finishes it, and no row occurs twice."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.app.drift_detection.find import find_drift
from deployer.app.workspace import open_workspace
from deployer.cli.main import run
from deployer.state import open_store
from tests.crash.test_kill_up import killed
from tests.projects import INSTANCE, make_project, table

pytestmark = pytest.mark.full

ROWS = pa.table({"id": pa.array(range(300)), "word": [f"word {i}" for i in range(300)]})
#: Between the steps of Pulumi's engine, of the state store and of Lance.
INSIDE = ("engine.step.begin", "engine.step.done", "engine.step.end", "engine.checkpoint.begin")
IN_PLACE = ("cli.import.instance", "cli.import.adopted", "cli.import.declared", "cli.import.applied", *INSIDE)
BY_COPY = (
    *("cli.import.declared", *INSIDE, "tables.create.registered", "tables.create.written", "cli.import.applied"),
    *("tables.commit.before-lance", "tables.commit.after-lance", "tables.commit.after-state", "cli.import.loaded"),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that declares one table, and has datasets that no spec knows; nothing is applied."""
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": table("flights")})
    monkeypatch.chdir(folder)
    for name in ("trips", "words"):
        lance.write_dataset(ROWS, str(folder / "lakes" / "demo" / f"{name}.lance"), data_storage_version="2.1")
    lance.dataset(str(folder / "lakes" / "demo" / "words.lance")).create_scalar_index("id", "BTREE")
    pq.write_table(ROWS, folder / "words.parquet")
    return folder


def differences() -> list[str]:
    """The addresses of what is live otherwise than applied, and of tables that nobody declared."""
    found = find_drift(open_workspace(None, "dev", None))
    return [*(item.address for item in found.items), *(each.what for each in found.undeclared)]


def check_is_whole(project: Path, rows: dict[str, int]) -> None:
    """Each table once, with all of its rows, declared once; and nothing is to be done."""
    root = project / "lakes" / "demo"
    with closing(open_store(root)) as store:
        entries = {entry.full_name: entry for entry in store.instance().tables.values()}
        assert {entry.status for entry in entries.values()} == {"active"}
        held = {name: lance.dataset(str(root / entry.location)).count_rows() for name, entry in entries.items()}
        assert held == rows
        for entry in entries.values():
            assert store.table(entry.table_id).files.rows == held[entry.full_name]
    files = sorted(path.name for path in (project / "specs").iterdir())
    assert files == sorted(["demo.yaml", *(f"{name.partition('.')[2]}.yaml" for name in rows)])
    assert not any("air." in each for each in differences())
    assert run(["preview", "--exit-code"]) == 0


@pytest.mark.thinned(2)
@pytest.mark.parametrize("point", [*IN_PLACE, *(f"{point}@2" for point in ("cli.import.adopted", *INSIDE[:3]))])
def test_an_import_of_all_goes_on(project: Path, point: str) -> None:
    command = ["import", "--all", "lakes/demo", "--database", "air"]
    killed(*command, at=point)
    assert run(command) == 0
    assert run(["up", "--yes"]) == 0
    check_is_whole(project, {"air.flights": 0, "air.trips": 300, "air.words": 300})
    assert run(command) == 0


@pytest.mark.parametrize("point", IN_PLACE[:4])
def test_an_import_in_place_goes_on(project: Path, point: str) -> None:
    killed("import", "air.trips", at=point)
    assert run(["import", "air.trips"]) == 0
    assert run(["up", "--yes"]) == 0
    check_is_whole(project, {"air.flights": 0, "air.trips": 300})


@pytest.mark.parametrize("point", ["cli.import.adopted", "cli.import.declared"])
def test_an_up_in_between_destroys_nothing(project: Path, point: str) -> None:
    killed("import", "air.trips", at=point)
    run(["up", "--yes"])
    assert run(["import", "air.trips"]) == 0
    assert run(["up", "--yes"]) == 0
    check_is_whole(project, {"air.flights": 0, "air.trips": 300})


@pytest.mark.thinned(2)
@pytest.mark.parametrize("point", BY_COPY)
def test_an_import_by_copy_goes_on(project: Path, point: str) -> None:
    command = ["import", "air.copied", "words.parquet", "--row-keys", "id"]
    killed(*command, at=point)
    assert run(command) == 0
    assert run(["up", "--yes"]) == 0
    check_is_whole(project, {"air.flights": 0, "air.copied": 300})
