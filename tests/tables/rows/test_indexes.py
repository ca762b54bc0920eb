"""Changes of rows bring the table's indexes up to date, or report why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.specs.model import IndexSpec
from deployer.table import connect
from deployer.tables.layout.indexes.build import CaughtUp, build_index
from deployer.tables.rows.change import RowChange
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.update import update_rows
from tests.tables.lakes import Lake, flights
from tests.tables.rows.test_delete import filled, opened
from tests.tables.test_commands import Run, command, loaded  # noqa: F401 (fixtures)

BY_DELAY = IndexSpec("by_delay", ("delay",), "btree")
CHANGES: dict[str, Callable[..., RowChange]] = {
    "update": lambda table, **options: update_rows(table, "delay > 100", {"delay": 7}, **options),
    "merge": lambda table, **options: merge_rows(table, flights(60, 170), **options),
    "merge that inserts": lambda table, **options: merge_rows(table, flights(10, 300), **options),
}


def indexed(lake: Lake) -> Any:
    table = filled(lake, 200)
    assert build_index(lake.store, lake.root, table.entry.table_id, BY_DELAY)
    return opened(lake)


def rows_not_indexed(lake: Lake) -> int:
    found = lance.dataset(lake.open().opened.location).stats.index_stats("by_delay")
    return int(found["num_unindexed_rows"])


@pytest.mark.parametrize("case", CHANGES)
def test_indexes_have_the_new_rows(lake: Lake, case: str) -> None:
    change = CHANGES[case](indexed(lake))
    assert change.indexes == CaughtUp(updated=("by_delay",)) and rows_not_indexed(lake) == 0


@pytest.mark.parametrize("case", CHANGES)
def test_indexes_may_be_left_to_a_later_change(lake: Lake, case: str) -> None:
    change = CHANGES[case](indexed(lake), indexes=False, job_id="j")
    assert change.indexes == CaughtUp() and rows_not_indexed(lake) > 0
    again = CHANGES[case](opened(lake), job_id="j")
    assert again.already_done and again.indexes.updated == ("by_delay",) and rows_not_indexed(lake) == 0


def test_a_deletion_and_a_dry_run_leave_indexes_alone(lake: Lake) -> None:
    table = indexed(lake)
    assert CHANGES["merge"](table, dry_run=True).indexes == CaughtUp()
    assert delete_rows(table, "delay > 100").indexes == CaughtUp() and rows_not_indexed(lake) == 0


def test_what_fails_is_reported_and_the_rows_are_changed(lake: Lake) -> None:
    table = indexed(lake)
    for path in (lake.folder / "lake").rglob("*.lance"):
        if "_indices" in path.parts:
            path.write_bytes(b"")
    change = update_rows(table, "flight > 500", {"delay": 7})
    assert change.rows and change.indexes.failure and not change.indexes.updated
    rows = lake.open().scan(columns=["flight", "delay"]).to_table().to_pylist()
    assert {row["delay"] for row in rows if row["flight"] > 500} == {7}


def test_methods_of_a_table_bring_indexes_up_to_date(lake: Lake) -> None:
    indexed(lake)
    with connect(lake.root) as lakes:
        table = lakes.open_table("flights")
        table.update("delay > 100", {"delay": 7}, indexes=False)
        assert rows_not_indexed(lake) > 0
        assert table.merge(flights(10, 300)).indexes.updated == ("by_delay",) and rows_not_indexed(lake) == 0


def test_commands_report_indexes(loaded: Run) -> None:  # noqa: F811
    with connect("lakes/demo") as lakes:
        lakes.open_table("flights").create_scalar_index("flight")
    update = ["rows", "update", "flights", "--set", "flight=flight + 1", "--yes"]
    code, out, notes = loaded(*update, "--no-indexes")
    assert code == 0 and "index" not in out + notes
    code, out, _ = loaded(*update)
    assert code == 0 and "indexes brought up to date: flight_btree" in out
    code, out, _ = loaded(*update, "--json")
    assert code == 0 and json.loads(out)["indexes"] == {"built": [], "updated": ["flight_btree"], "failure": ""}


def test_many_rows_of_one_key_are_indexed(lake: Lake) -> None:
    indexed(lake)
    rows = pa.table({"carrier": ["AA", "UA"], "delay": pa.array([1, 2], pa.int16())})
    assert merge_rows(opened(lake), rows, "carrier").indexes.updated == ("by_delay",)
    assert rows_not_indexed(lake) == 0
