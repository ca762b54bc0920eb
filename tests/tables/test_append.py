"""Writers that append small batches again and again: what is in the table, what is refused, what is read."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pandas
import pyarrow as pa
import pytest

from deployer.errors import Conflict, InvalidInput, Refused
from deployer.state import create_store
from deployer.tables.append import Appender, open_appender
from deployer.tables.open_table import open_to_change
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows


@pytest.fixture
def appender(lake: Lake) -> Iterator[Appender]:
    lake.table()
    opened = open_appender(lake.root, "air.flights")
    yield opened
    opened.close()


def files(lake: Lake) -> set[str]:
    return {path.name for path in Path(lake.open().opened.location, "data").iterdir()}


def test_batches_come_to_their_leaves_sorted(appender: Appender, lake: Lake) -> None:
    for start in (0, 40, 20):
        appender.append(flights(20, start))
    table = lake.open()
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(60))
    leaves = {leaf.partition_id for leaf in table.opened.state.leaves()}
    assert all(file.sorted and file.partition in leaves for file in table.opened.state.files)
    assert not table.opened.state.intents and len(table.opened.state.jobs) == 3


@pytest.mark.parametrize("row_keys", [("carrier", "flight"), ()], ids=["keys", "no keys"])
def test_what_an_append_records_is_what_a_reader_would_find(lake: Lake, row_keys: tuple[str, ...]) -> None:
    lake.table(row_keys=row_keys)
    appender = open_appender(lake.root, "air.flights")
    before = appender.append(flights(10)).job.lance_version
    appender.append(flights(10, 10))
    recorded = lake.open().opened.state
    assert recorded.lance_version == before + 1
    dataset = lake.open().opened.dataset()
    in_lance = {each.fragment_id: each.count_rows() for each in dataset.get_fragments()}
    assert {file.fragment_id: file.rows for file in recorded.files} == in_lance


def test_a_job_is_done_once(appender: Appender, lake: Lake) -> None:
    assert not appender.append(flights(10), "monday").already_done
    written = files(lake)
    assert appender.append(flights(10), "monday").already_done
    assert open_appender(lake.root, "flights").append(flights(10), "monday").already_done
    assert lake.open().count() == 10 and files(lake) == written


def test_commits_of_others_in_between(appender: Appender, lake: Lake) -> None:
    appender.append(flights(10))
    lake.ingest(lake.file(flights(10, 10)))
    location = lake.open().opened.location
    lance.write_dataset(flights(10, 20).cast(lance.dataset(location).schema), location, mode="append")
    open_appender(lake.root, "flights").append(flights(10, 30))
    appender.append(flights(10, 40))
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(50))
    assert len(lake.open().opened.state.jobs) == 4


def test_a_version_that_others_cleaned_away_before_the_first_append(appender: Appender, lake: Lake) -> None:
    lake.ingest(lake.file(flights(10)))
    dataset = lake.open().opened.dataset()
    dataset.cleanup_old_versions(older_than=timedelta(0))
    assert [each["version"] for each in dataset.versions()] == [dataset.version]
    appender.append(flights(10, 10))
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(20))


def test_two_writers_at_once(lake: Lake) -> None:
    lake.table()

    def write(first: int) -> None:
        appender = open_appender(lake.root, "flights")
        for number in range(15):
            appender.append(flights(2, first + 2 * number))
        appender.close()

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(write, first) for first in (0, 30)]:
            done.result()
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(60))
    assert len(lake.open().opened.state.jobs) == 30


def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(appender: Appender, lake: Lake) -> None:
    appender.append(flights(5))
    written = files(lake)
    rows = pa.Table.from_pylist([{"carrier": "AA", "flight": 1}, {"carrier": None, "flight": 2}])
    with pytest.raises(Refused, match="1 row cannot be loaded") as refused:
        appender.append(rows)
    assert "row 2" in str(refused.value) and "carrier" in str(refused.value)
    with pytest.raises(InvalidInput, match="no column 'fligth'"):
        appender.append(pa.table({"carrier": ["AA"], "fligth": [1]}))
    assert files(lake) == written and lake.open().count() == 5


def test_a_changed_table_is_a_conflict_until_the_writer_looks_again(appender: Appender, lake: Lake) -> None:
    appender.append(flights(5))
    location = lake.open().opened.location
    lance.dataset(location).add_columns({"gate": "cast(NULL as string)"})
    open_to_change(lake.root, "flights")  # records it
    with pytest.raises(Conflict, match="changed while rows were being written"):
        appender.append(flights(5, 5))
    assert lake.open().count() == 5
    appender.refresh()
    appender.append(flights(5, 5))
    assert lake.open().count() == 10 and "gate" in lake.open().schema.names


def test_no_rows_are_no_version(appender: Appender, lake: Lake) -> None:
    version = lake.open().opened.state.lance_version
    appender.append(FLIGHTS.empty_table(), "nothing")
    assert lake.open().opened.state.lance_version == version


def test_a_column_that_was_replaced_by_one_of_the_same_name_is_not_written_as_the_old_one(
    appender: Appender, lake: Lake
) -> None:
    appender.append(flights(5))
    dataset = lance.dataset(lake.open().opened.location)
    dataset.drop_columns(["price"])
    dataset.add_columns({"price": "cast(NULL as decimal(8, 2))"})
    open_to_change(lake.root, "flights")  # records it
    with pytest.raises(Conflict):
        appender.append(flights(5, 5))
    appender.refresh()
    appender.append(flights(5, 5))
    rows = lake.open().scan().to_table().to_pylist()
    prices = {row["flight"]: row["price"] for row in flights(10).to_pylist()[5:]}
    assert len(rows) == 10
    assert {row["flight"]: row["price"] for row in rows if row["price"] is not None} == prices
    assert not lake.open().opened.state.intents


def test_a_writer_that_lags_behind_others_goes_on_where_they_are(appender: Appender, lake: Lake) -> None:
    appender.append(flights(5))
    other = open_appender(lake.root, "flights")
    for number in range(1, 8):
        other.append(flights(5, 5 * number))
    version = lake.open().opened.state.lance_version
    assert appender.append(flights(5, 40)).job.lance_version == version + 1
    state = lake.open().opened.state
    assert state.lance_version == version + 1 and len(state.jobs) == 9 and not state.intents
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(45))


def test_a_writer_that_was_stopped_with_the_turn_holds_nobody_up(appender: Appender, lake: Lake) -> None:
    table_id = lake.open().opened.entry.table_id
    with create_store(lake.root).turn(table_id) as turn:
        assert not turn.waited
        appender.append(flights(5))
    with lake.store.turn(table_id):
        pass
    assert lake.open().count() == 5


ROW = {"carrier": "AA", "flight": 1}


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([ROW, {**ROW, "delay": 2}], id="dicts"),
        pytest.param(pandas.DataFrame([ROW, {**ROW, "delay": 2}], index=["x", "y"]), id="pandas"),
        pytest.param(pa.RecordBatchReader.from_batches(FLIGHTS, flights(2).to_batches()), id="reader"),
    ],
)
def test_rows_of_other_kinds(rows: Any, appender: Appender, lake: Lake) -> None:
    assert appender.append(rows).job.rows == 2
    assert lake.open().count() == 2


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("AA,1", "str is not a kind of rows that can be appended"),
        ([("AA", 1)], "list is not a kind of rows"),
        ([{"carrier": 1}, {"carrier": "AA"}], "cannot be made an Arrow table"),
        ([{**ROW, "nope": 1}], "no column 'nope'"),
    ],
)
def test_rows_that_cannot_be_appended_are_refused_in_words(rows: Any, said: str, appender: Appender) -> None:
    with pytest.raises(InvalidInput, match=said):
        appender.append(rows)
