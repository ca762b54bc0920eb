"""An `up` in which one table's change fails half-way: the others are done, that one is as it was, the next goes on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.tables.admin import tables as admin
from tests import forks
from tests.cli.conftest import Deployer, deployer
from tests.projects import INSTANCE, applied_project, table

__all__ = ["deployer"]

NAMES = ("airports", "flights", "planes")


def add_two() -> None:
    for name in NAMES:
        add(Path.cwd(), name, {"id": 1, "delay": 5}, {"id": 2, "delay": 6})


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with three tables (id, delay: int32), applied, with two rows each."""
    specs = {"demo.yaml": INSTANCE, **{f"{name}.yaml": table(name, "delay: int32") for name in NAMES}}
    folder = applied_project(tmp_path / "project", specs, add_two)
    monkeypatch.chdir(folder)
    return folder


def dataset(project: Path, name: str) -> lance.LanceDataset:
    [location] = (project / "lakes/demo").glob(f"air/{name}-*.lance")
    return lance.dataset(str(location))


def add(project: Path, name: str, *rows: dict[str, int | None]) -> None:
    found = dataset(project, name)
    lance.write_dataset(pa.Table.from_pylist(list(rows), schema=found.schema), found.uri, mode="append")


def specify(project: Path, change: Callable[[str], str]) -> None:
    for name in NAMES:
        file = project / "specs" / f"{name}.yaml"
        file.write_text(change(table(name, "delay: int32")), encoding="utf-8")


def never_null(text: str) -> str:
    return text.replace("type: 'int32'", "type: 'int32', nullable: false")


def test_nulls_that_came_after_the_plan_stop_only_their_table(
    three: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    specify(three, lambda text: never_null(text) + "description: Changed.\n")
    update = admin.update_table

    def with_a_writer(store: object, root: str, table_id: str, spec: object, *args: object, **more: object) -> None:
        if spec.name == "flights":  # type: ignore[attr-defined]  # somebody else, between the plan and its turn
            add(three, "flights", {"id": 3, "delay": None})
        update(store, root, table_id, spec, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("deployer.provider.resources.table.update_table", with_a_writer)
    failed = deployer("up", "--yes")
    assert failed.code == 1
    assert "1 of 3 rows hold null in column delay" in " ".join((failed.out + failed.err).split())
    monkeypatch.undo()
    monkeypatch.chdir(three)
    assert {name: dataset(three, name).schema.field("delay").nullable for name in NAMES} == {
        "airports": False,
        "flights": True,
        "planes": False,
    }
    changes = [
        (resource["address"], change["kind"])
        for resource in deployer("preview", "--json").json["resources"]
        for change in resource["changes"]
    ]
    assert changes == [("table/air.flights", "TightenNullability"), ("table/air.flights", "ChangeDescription")]
    dataset(three, "flights").delete("delay IS NULL")
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    assert not dataset(three, "flights").schema.field("delay").nullable


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_up_that_is_killed_in_one_table_goes_on_with_the_others(
    number: int, three: Path, deployer: Deployer
) -> None:
    specify(three, lambda text: text.replace("'int32'", "'int64'"))
    killed = forks.run(
        [sys.executable, "-m", "deployer", "up", "--yes"],
        env={**os.environ, "DEPLOYER_FAILPOINT": f"tables.schema.before-lance@{number}"},
        text=True,
    )
    assert killed.returncode < 0, killed.stdout + killed.stderr
    wide = [name for name in NAMES if dataset(three, name).schema.field("delay").type == pa.int64()]
    assert len(wide) <= number
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    for name in NAMES:
        assert dataset(three, name).schema.field("delay").type == pa.int64()
        assert dataset(three, name).to_table().sort_by("id").to_pylist() == [
            {"id": 1, "delay": 5},
            {"id": 2, "delay": 6},
        ]


INDEXED = "indexes: [{columns: [delay], kind: btree}]\n"


def compact(project: Path) -> None:
    dataset(project, "flights").optimize.compact_files()


def ingest(project: Path) -> None:
    file = project / "more.json"
    file.write_text("".join(json.dumps({"id": i, "delay": i}) + "\n" for i in range(10, 20)), encoding="utf-8")
    from deployer.cli.main import run

    assert run(("ingest", "air.flights", str(file), "--engine", "driver")) == 0


MOVES: dict[str, Callable[[Path], None]] = {
    "ingest, indexes brought up to date": ingest,
    "rows appended by plain Lance": lambda project: add(project, "flights", {"id": 7, "delay": 8}),
    "rows deleted by plain Lance": lambda project: dataset(project, "flights").delete("id = 1"),
    "rows updated by plain Lance": lambda project: dataset(project, "flights").update({"delay": "1"}),
    "compaction by plain Lance": compact,
    "indexes optimized by plain Lance": lambda project: dataset(project, "flights").optimize.optimize_indices(),
    "old versions cleaned by plain Lance": lambda project: dataset(project, "flights").cleanup_old_versions(),
}


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES.keys())
def test_what_moves_by_itself_is_no_difference(move: Callable[[Path], None], three: Path, deployer: Deployer) -> None:
    specify(three, lambda text: text + INDEXED)
    assert deployer("up", "--yes").code == 0
    add(three, "flights", {"id": 3, "delay": 9})
    move(three)
    assert deployer("preview", "--exit-code").code == 0
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0


def test_a_rewrite_and_what_is_loaded_after_it_are_no_difference(three: Path, deployer: Deployer) -> None:
    specify(three, lambda text: never_null(text).replace("row_keys: [id]", "row_keys: [delay, id]") + INDEXED)
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    ingest(three)
    assert deployer("preview", "--exit-code").code == 0
