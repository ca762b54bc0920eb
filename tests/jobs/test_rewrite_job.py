"""Rewrites with Spark: the same rows in the same places as in one process, gone on with after a kill."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployer.errors import Refused
from deployer.live.reader import read_table
from deployer.specs.model import TableSpec
from deployer.tables.admin.tables import update_table
from deployer.tables.evolution.rewrite import load as rewrite_load
from deployer.tables.evolution.rewrite.progress import RangeLedger
from deployer.tables.read.table import Table
from spark_jobs.rewrite import copy_with_spark
from tests.tables.lakes import Lake, flights, sorted_rows

pytestmark = pytest.mark.spark

CHANGES: dict[str, dict[str, Any]] = {
    "row keys": {"row_keys": ("flight", "carrier"), "split_points": ((300,), (600,))},
    "no order": {"row_keys": (), "split_points": ()},
    "sort keys alone": {"row_keys": (), "split_points": (), "sort_keys": ("delay",)},
}


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every table is too large for one process."""
    monkeypatch.setattr(rewrite_load, "SMALL_ROWS", 0)


def spec_of(lake: Lake) -> TableSpec:
    entry = lake.store.instance().by_name("air.flights")
    assert entry is not None
    return read_table(lake.store, lake.root, entry).spec


def apply(lake: Lake, spec: TableSpec) -> Table:
    update_table(lake.store, lake.root, lake.open().opened.entry.table_id, spec, with_spark=copy_with_spark)
    return lake.open()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_spark_places_rows_as_the_driver_does(change: dict[str, Any], lake: Lake, large: None, spark: Any) -> None:
    here = Lake(lake.folder / "here")
    rows = flights(600)
    for each in (lake, here):
        each.table()
        each.ingest(each.file(rows))
    spec = replace(spec_of(lake), **change)
    table = apply(lake, spec)
    update_table(here.store, here.root, here.open().opened.entry.table_id, spec)

    def reported(state: Any) -> list[Any]:
        names = {leaf.partition_id: i for i, leaf in enumerate(state.leaves())}
        return sorted((names[f.partition], f.rows, f.min_key, f.max_key, f.sorted) for f in state.files)

    assert sorted_rows(table.scan().to_table()) == sorted_rows(rows)
    assert reported(table.opened.state) == reported(here.open().opened.state)


def test_ranges_that_are_written_are_not_written_again(
    lake: Lake, large: None, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run ends after Spark has noted every range; then one note is lost, as if its task had been killed."""
    lake.table()
    lake.ingest(lake.file(flights(600)))
    spec = replace(spec_of(lake), **CHANGES["row keys"])

    def killed(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("deployer.tables.evolution.rewrite.rewrite.commit_fragments", killed)
        with pytest.raises(KeyboardInterrupt):
            apply(lake, spec)
    (started,) = lake.open().opened.state.datasets
    ledger = RangeLedger(f"{lake.root}/{started.location}/_rewrite/round-1")
    before = ledger.finished()
    assert sorted(before) == [0, 1, 2]
    (lake.folder / "lake" / started.location / "_rewrite" / "round-1" / "1.json").unlink()
    table = apply(lake, spec)
    paths = {file.path for each in table.opened.dataset().get_fragments() for file in each.metadata.files}
    kept = {written.path for number in (0, 2) for written in before[number]}
    lost = {written.path for written in before[1]}
    assert kept <= paths and not lost & paths
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(600))


def test_null_keys_are_refused_in_words(lake: Lake, large: None, spark: Any) -> None:
    lake.table()
    lake.ingest(lake.file(flights(70)))
    with pytest.raises(Refused, match="'delay' is null in 10 rows"):
        apply(lake, replace(spec_of(lake), row_keys=("delay",), split_points=()))
