"""Merges of rows that come in parts through files on disk, and of parts that several tasks match."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deployer.errors import DeployerError, InvalidInput, Refused
from deployer.platform.system.progress import Progress
from deployer.specs.model import Storage
from deployer.tables.rows.merging import merge, source_parts
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.merging.rules import MergeRules
from deployer.tables.rows.merging.source_parts import MergeInput, RowBatches, StoredRows, merge_input
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows
from tests.tables.rows.test_delete import differences, filled, opened
from tests.tables.rows.test_merge import KEY, RULES, merged


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Limits that small sources are above; returns the folder of temporary files."""
    monkeypatch.setattr(source_parts, "PART_ROWS", 8)
    monkeypatch.setattr(source_parts, "BATCH_ROWS", 7)
    monkeypatch.setattr(source_parts, "HELD_BYTES", 1000)
    monkeypatch.setattr(merge, "ROWS_HERE", 60)
    monkeypatch.setattr(merge, "ROWS_ELSEWHERE", 60)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def source_of(rows: int, start: int, columns: list[str]) -> pa.Table:
    values = pa.array([(7 * i) % 100 for i in range(rows)], pa.int16())
    return flights(rows, start).set_column(2, FLIGHTS.field(2), values).select(columns)


@pytest.mark.thinned(7, to="full")
@pytest.mark.parametrize(
    "options",
    [{}, {"row_keys": ()}, {"storage": Storage(stable_row_ids=True)}, {"unique": True}, {"row_keys": ("carrier",)}],
    ids=["keyed", "keyless", "stable row ids", "unique keys", "keyed by fewer columns"],
)
@pytest.mark.parametrize("columns", [FLIGHTS.names, ["delay", "flight", "carrier"]], ids=["all columns", "some"])
@pytest.mark.parametrize("case", RULES)
def test_rows_are_merged_in_parts(
    lake: Lake, small: Path, case: str, columns: list[str], options: dict[str, Any]
) -> None:
    splits = (("B6",), ("UA",)) if options.get("row_keys") == ("carrier",) else None
    table, rules = filled(lake, 200, **options, **({"splits": splits} if splits else {})), RULES[case]
    source = source_of(60, 170, columns)
    on = KEY if table.row_keys != KEY else None
    expected = merged(flights(200).to_pylist(), source.to_pylist(), rules)
    foreseen = merge_rows(table, source.to_reader(), on, rules, dry_run=True)
    assert lake.open().opened.state == table.state
    change = merge_rows(table, source.to_reader(), on, rules, job_id="j")
    assert sorted_rows(lake.open().scan().to_table()) == expected
    assert change.counts == foreseen.counts and set(change.leaves) == set(foreseen.leaves)
    assert differences(lake) == [] and all(file.partition for file in lake.open().opened.state.files)
    assert merge_rows(opened(lake), source.to_reader(), on, rules, job_id="j").already_done
    assert list(small.iterdir()) == []


def parts_of(lake: Lake, rows: Any, on: Any = None) -> list[list[tuple[Any, ...]]]:
    table = opened(lake)
    with merge_input(rows, on, table) as found:
        assert all(isinstance(each, StoredRows) for each in found.parts)
        tables = [pa.Table.from_batches(each.batches()) for each in found.parts]
        assert [each.num_rows for each in tables] == [each.rows for each in found.parts]
        return [[tuple(row[name] for name in found.on) for row in each.to_pylist()] for each in tables]


@pytest.mark.parametrize("on", [None, "flight", ["at", "carrier"], "price", ["delay", "price"]])
def test_the_rows_of_one_key_are_in_one_part(lake: Lake, small: Path, on: Any) -> None:
    filled(lake, 20)
    rows = pa.concat_tables([flights(100), flights(100)])
    parts = parts_of(lake, rows, on)
    assert sum(map(len, parts)) == 200 and len(parts) > 5
    keyed = [{key for key in part if None not in key} for part in parts]
    assert sum(map(len, keyed)) == len(set().union(*keyed))


def test_parts_are_small_whatever_the_leaves(lake: Lake, small: Path) -> None:
    filled(lake, 20)
    one_leaf = flights(100).set_column(0, FLIGHTS.field(0), pa.array(["AA"] * 100))
    parts = parts_of(lake, one_leaf)
    assert max(map(len, parts)) <= 16 and [min(each) for each in parts] == sorted(min(each) for each in parts)
    everywhere = parts_of(lake, flights(100))
    assert max(map(len, everywhere)) <= 16


def test_keys_that_are_equal_have_one_bucket() -> None:
    zeros = pa.RecordBatch.from_pydict({"x": [0.0, -0.0, float("nan"), -float("nan")]})
    found = source_parts._buckets(zeros, ["x"], 1000)
    assert found[0] == found[1] and found[2] == found[3]
    values = pa.RecordBatch.from_pydict({"x": pa.array([Decimal("1.50"), Decimal("2.00")] * 2, pa.decimal128(8, 2))})
    again = pa.RecordBatch.from_pydict({"x": pa.array([Decimal("2.00"), Decimal("1.50")], pa.decimal128(8, 2))})
    assert list(source_parts._buckets(values, ["x"], 1000)[[1, 0]]) == list(source_parts._buckets(again, ["x"], 1000))
    nulls = pa.RecordBatch.from_pydict({"x": pa.array([None] * 100, pa.string())})
    assert len(np.unique(source_parts._buckets(nulls, ["x"], 10))) == 10


@pytest.mark.parametrize("on", [None, "flight"])
def test_repeated_keys_of_all_parts_are_counted(lake: Lake, small: Path, on: str | None) -> None:
    table, files = filled(lake, 50), lake.data_files()
    twice = pa.concat_tables([flights(100), flights(12)])
    with pytest.raises(Refused, match="12 keys are in more than one of the rows") as caught:
        merge_rows(table, twice, on)
    assert caught.value.what.count("flight=") == 5
    assert lake.open().opened.state == table.state and lake.data_files() == files and list(small.iterdir()) == []


def failing(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from rows.to_batches(max_chunksize=9)
    raise InvalidInput("the file ends early", where="rows.csv", remedy="write it again")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (flights(40).drop(["flight"]), "the rows have no column 'flight'"),
        (flights(40).append_column("other", pa.array(range(40))), "no column 'other'"),
        (
            flights(40).set_column(1, "flight", pa.array([2**40 if i in (3, 33) else i for i in range(40)])),
            "2 rows cannot be merged, so nothing was",
        ),
        (RowBatches(FLIGHTS, failing(flights(40))), "the file ends early"),
        (flights(40, 100).drop(["carrier"]), "'carrier'"),
    ],
    ids=["no key", "unknown column", "values", "ends early", "insert without a key"],
)
def test_what_cannot_be_changes_nothing(lake: Lake, small: Path, rows: Any, message: str) -> None:
    table, files = filled(lake, 50), lake.data_files()
    on = "flight" if "insert" in message or message == "'carrier'" else None
    with pytest.raises(DeployerError, match=message):
        merge_rows(table, rows, on)
    assert lake.open().opened.state == table.state and lake.data_files() == files and list(small.iterdir()) == []


def test_a_disk_that_takes_no_rows_changes_nothing(lake: Lake, small: Path) -> None:
    table, files = filled(lake, 50), lake.data_files()

    def rows() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(flights(400).to_batches(max_chunksize=9)):
            if number == 20:
                for folder in small.iterdir():
                    shutil.rmtree(folder)
            yield batch

    with pytest.raises(DeployerError, match="cannot be written to temporary files") as caught:
        merge_rows(table, RowBatches(FLIGHTS, rows()))
    assert "TMPDIR" in caught.value.remedy
    assert lake.open().opened.state == table.state and lake.data_files() == files


def test_a_stopped_merge_leaves_nothing(lake: Lake, small: Path) -> None:
    table, files = filled(lake, 200), lake.data_files()
    seen: list[str] = []

    def stop(now: Progress) -> None:
        seen.append(now.doing)
        if now.doing == "merging" and now.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge_rows(table, source_of(60, 170, FLIGHTS.names), on_progress=stop)
    assert "merging" in seen
    assert lake.open().opened.state == table.state and lake.data_files() == files and list(small.iterdir()) == []


def test_a_merge_that_lost_a_race_uses_the_rows_again(lake: Lake, small: Path) -> None:
    table, source = filled(lake, 200), source_of(60, 170, FLIGHTS.names)
    others: list[Callable[[], Any]] = [lambda: merge_rows(opened(lake), flights(3, 198), None, MergeRules("delete"))]

    def race(now: Progress) -> None:
        if now.doing == "merging" and others:
            others.pop()()

    change = merge_rows(table, source.to_reader(), on_progress=race)
    assert (change.counts.updated, change.counts.inserted) == (29, 31)  # 198 and 199 went, 200 came
    before = [row for row in flights(200).to_pylist() if row not in flights(2, 198).to_pylist()]
    before += flights(1, 200).to_pylist()
    assert sorted_rows(lake.open().scan().to_table()) == merged(before, source.to_pylist(), MergeRules())


def test_an_input_is_used_several_times(lake: Lake, small: Path) -> None:
    table = filled(lake, 50)
    with merge_input(flights(60).to_reader(), None, table) as given:
        assert merge_rows(table, given, dry_run=True).counts.inserted == 10
        assert isinstance(given, MergeInput) and merge_rows(table, given).counts.inserted == 10
        assert merge_rows(opened(lake), given).counts.inserted == 0
    assert list(small.iterdir()) == []
