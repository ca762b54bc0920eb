"""Commits made by plain Lance are found and taken in, whatever they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.datasets.dataset import latest_version
from deployer.errors import Corrupt
from tests.tables.lakes import Lake, flights, sorted_rows


def in_one_leaf(rows: pa.Table) -> pa.Table:
    return rows.filter(pa.compute.equal(rows["carrier"], "AA"))


FOREIGN: dict[str, Callable[[Any], object]] = {
    "append": lambda ds: ds.insert(flights(20, 500)),
    "append to one leaf": lambda ds: ds.insert(in_one_leaf(flights(20, 500))),
    "delete": lambda ds: ds.delete("flight < 300"),
    "delete all": lambda ds: ds.delete("true"),
    "update": lambda ds: ds.update({"flight": "flight + 1"}, where="carrier = 'AA'"),
    "update a key into another leaf": lambda ds: ds.update({"carrier": "'ZZ'"}, where="carrier = 'AA'"),
    "compact": lambda ds: ds.optimize.compact_files(),
    "index": lambda ds: ds.create_scalar_index("flight", "BTREE"),
    "add a column": lambda ds: ds.add_columns({"twice": "delay * 2"}),
    "drop a column": lambda ds: ds.drop_columns(["delay"]),
    "overwrite": lambda ds: lance.write_dataset(flights(7, 900), ds.uri, mode="overwrite"),
    "restore": lambda ds: ds.checkout_version(2).restore(),
    "merge": lambda ds: (
        ds.merge_insert(["carrier", "flight"])
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(flights(1, 3).set_column(2, "delay", pa.array([9], pa.int16())))
    ),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("name", FOREIGN)
def test_the_state_is_what_the_dataset_holds(name: str, lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(60)))
    lake.ingest(lake.file(flights(40, 60)))
    dataset = lance.dataset(lake.open().opened.location)
    FOREIGN[name](dataset)

    table = lake.open()
    state, now = table.opened.state, lance.dataset(table.opened.location)
    assert state.lance_version == now.version == latest_version(table.opened.location)
    assert {file.fragment_id: file.rows for file in state.files} == {
        fragment.fragment_id: fragment.count_rows() for fragment in now.get_fragments()
    }
    everything = now.to_table()
    assert sorted_rows(table.scan().to_table()) == sorted_rows(everything)
    for carrier in ("AA", "DL", "ZZ"):  # ranges of files are true, or unknown
        expected = everything.filter(pa.compute.equal(everything["carrier"], carrier))
        assert sorted_rows(table.keys((carrier,)).to_table()) == sorted_rows(expected)
    assert lake.ingest(lake.file(flights(5, 2000).select(["carrier", "flight"])), missing_as_null=True).rows == 5


def test_fragments_within_a_leaf_are_placed_and_others_not(lake: Lake) -> None:
    lake.table()
    dataset = lance.dataset(lake.open().opened.location)
    dataset.insert(in_one_leaf(flights(20)))
    dataset.insert(flights(20, 20))
    state = lake.open().opened.state
    assert [file.partition for file in state.files] == [state.leaves()[0].partition_id, None]
    assert lake.open().history()[0].foreign


def test_history_names_indexes_and_knows_foreign_changes_of_columns(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(10)))
    dataset = lance.dataset(lake.open().opened.location)
    dataset.create_scalar_index("flight", "BTREE", name="by_flight")
    dataset.drop_index("by_flight")
    dataset.drop_columns(["delay"])
    dataset.add_columns({"twice": "flight * 2"})
    assert [(version.operation, version.foreign) for version in lake.open().history()[:4]] == [
        ("merge", True),
        ("project", True),
        ("drop index by_flight", False),
        ("build index by_flight", True),
    ]


def test_jobs_between_foreign_commits_keep_their_records(lake: Lake) -> None:
    lake.table()
    dataset = lance.dataset(lake.open().opened.location)
    dataset.insert(flights(10))
    lake.ingest(lake.file(flights(10, 10)), job_id="ours")
    lance.dataset(dataset.uri).insert(flights(10, 20))
    state = lake.open().opened.state
    assert state.jobs["ours"].rows == 10 and state.files.rows == 30
    assert [version.foreign for version in lake.open().history()] == [True, False, True, False]


def test_an_older_copy_of_the_dataset_is_noticed(lake: Lake) -> None:
    import shutil

    table = lake.table()
    shutil.copytree(table.opened.location, lake.folder / "copy")
    lake.ingest(lake.file(flights(10)))
    shutil.rmtree(table.opened.location)
    shutil.copytree(lake.folder / "copy", table.opened.location)
    with pytest.raises(Corrupt, match="version 1, but version 2 was recorded"):
        lake.open()


def test_reading_again_writes_nothing(lake: Lake) -> None:
    table = lake.table()
    lake.ingest(lake.file(flights(10)))
    before = lake.open().opened.state.version
    for _ in range(3):
        table.refresh()
    assert table.opened.state.version == lake.open().opened.state.version == before
