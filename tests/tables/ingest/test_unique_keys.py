"""Tables whose row keys are unique: what loads and writers refuse, skip or set aside, and who wins races."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.errors import Conflict, InvalidInput, Refused
from deployer.live.reader import live_table
from deployer.tables.admin.tables import update_table
from deployer.tables.append import open_appender
from deployer.tables.evolution.rewrite.load import copy_rows
from deployer.tables.ingest.commit import unique_keys as unique_commit
from deployer.tables.ingest.keys import repeated as repeated_keys
from deployer.tables.layout.partitions.split import split_leaves
from deployer.tables.maintenance.verify.verify import verify
from deployer.tables.read.table import open_table
from tests.tables.lakes import Lake
from tests.tables.test_commit import ended, start

ENGINES = ["driver", pytest.param("spark", marks=pytest.mark.spark)]
Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Case:
    """Keys of each file: what the table has, then what is loaded; `taken` are the rows of the load that are there."""

    kinds: Sequence[pa.DataType]
    there: Sequence[Rows]
    load: Sequence[Rows]
    taken: Sequence[tuple[int, int]]  #: file and row, from 0
    splits: Sequence[tuple[Any, ...]] = ()


INT, TEXT, NAN = pa.int64(), pa.string(), float("nan")
CASES = {
    "none": Case([INT], [[[1], [2]]], [[[3], [4]]], []),
    "of the table": Case([INT], [[[1], [2]]], [[[2], [3]]], [(0, 0)]),
    "in a file": Case([INT], [], [[[7], [8], [7], [7]]], [(0, 2), (0, 3)]),
    "across files of a load": Case([INT], [], [[[1], [2]], [[3], [1]]], [(1, 1)]),
    "across loads": Case([INT], [[[1]], [[5]], [[9]]], [[[5], [6]], [[9], [6]]], [(0, 0), (1, 0), (1, 1)]),
    "in many leaves": Case(
        [INT],
        [[[i] for i in range(0, 90, 3)]],
        [[[i] for i in range(0, 90, 10)]],
        [(0, 0), (0, 3), (0, 6)],
        [(20,), (40,), (60,)],
    ),
    "negative": Case([pa.int16()], [[[-5], [0]]], [[[5], [-5], [-6]]], [(0, 1)]),
    "two columns": Case(
        [TEXT, INT], [[["AA", 1], ["AA", 2], ["B", 1]]], [[["B", 2], ["AA", 2], ["A", 1]]], [(0, 1)], [("B",)]
    ),
    "three columns": Case(
        [TEXT, TEXT, INT],
        [[["a", "b", 1], ["ab", "", 1], ["x", "y", 2]]],
        [[["a", "b", 2], ["x", "y", 2], ["a", "", 1], ["ab", "b", 1], ["x", "y", 2]]],
        [(0, 1), (0, 4)],
    ),
    "text": Case([TEXT], [[["é"], [""], ["a\0b"]]], [[["e\u0301"], ["a"], [""], ["a\0b"]]], [(0, 2), (0, 3)]),
    "binary": Case([pa.binary(2)], [[[b"\0\1"]]], [[[b"\0\0"], [b"\0\1"]]], [(0, 1)]),
    "flags": Case([pa.bool_()], [[[True]]], [[[False], [True]]], [(0, 1)]),
    "decimals": Case(
        [pa.decimal128(8, 2)], [[[Decimal("1.50")], [Decimal("-2.00")]]], [[[Decimal("1.5")], [Decimal("2")]]], [(0, 0)]
    ),
    "large decimals": Case(
        [pa.decimal256(50, 2)], [[[Decimal("1.50")]]], [[[Decimal("1.5")], [Decimal("2")]]], [(0, 0)]
    ),
    "times": Case([pa.timestamp("us", "UTC")], [[[1_000_000], [2]]], [[[1], [1_000_000]]], [(0, 1)]),
    "days": Case([pa.date32(), INT], [[[15_000, 1]]], [[[15_000, 2], [15_000, 1], [15_001, 1]]], [(0, 1)]),
    "lengths of time": Case([pa.duration("s")], [[[60]]], [[[61], [60]]], [(0, 1)]),
    "floats": Case([pa.float64()], [[[0.0], [NAN], [1.5]]], [[[-0.0], [NAN], [2.5]]], [(0, 0), (0, 1)]),
    "half floats": Case([pa.float16()], [[[1.5]]], [[[1.5], [2.5], [2.5]]], [(0, 0), (0, 2)]),
}


def schema_of(case: Case) -> pa.Schema:
    keys = [pa.field(f"k{place}", kind, nullable=False) for place, kind in enumerate(case.kinds)]
    return pa.schema([*keys, pa.field("n", pa.int32())])


def rows_of(case: Case, keys: Rows, first: int = 0) -> pa.Table:
    """Rows with these keys, which are numbered in column `n`."""
    schema = schema_of(case)
    columns = [pa.array([key[place] for key in keys], kind) for place, kind in enumerate(case.kinds)]
    return pa.table([*columns, pa.array(range(first, first + len(keys)), pa.int32())], schema=schema)


def table_of(lake: Lake, case: Case) -> list[Path]:
    """A table that has what the case says, and the files that are to be loaded."""
    schema = schema_of(case)
    lake.table(schema, schema.names[:-1], splits=case.splits, name="t", unique=True)
    for place, keys in enumerate(case.there):
        lake.ingest(lake.file_arrow(rows_of(case, keys, 1000 * (place + 1))), table="t")
    return [lake.file_arrow(rows_of(case, keys, 100 * place)) for place, keys in enumerate(case.load)]


def numbers(lake: Lake) -> list[int]:
    return sorted(open_table(lake.root, "t").scan().to_table()["n"].to_pylist())


def ids(lake: Lake, table: str = "t") -> list[int]:
    return sorted(open_table(lake.root, table).scan().to_table()["id"].to_pylist())


IDS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])


def of_ids(*values: int) -> pa.Table:
    return pa.table({"id": list(values), "v": [f"v{value}" for value in values]}, schema=IDS)


def unique_ids(lake: Lake, *there: int, splits: Sequence[tuple[Any, ...]] = ((100,),), unique: bool = True) -> None:
    lake.table(IDS, ("id",), splits=splits, name="t", unique=unique)
    if there:
        lake.ingest(lake.file(of_ids(*there)), table="t")


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_duplicates_are_refused_skipped_and_set_aside(case: Case, lake: Lake) -> None:
    paths = table_of(lake, case)
    before, files = numbers(lake), lake.data_files("t")
    total = sum(map(len, case.load))
    taken = {100 * file + row for file, row in case.taken}
    kept = sorted({100 * i + j for i, keys in enumerate(case.load) for j in range(len(keys))} - taken)
    if taken:
        with pytest.raises(Refused) as raised:
            lake.ingest(*paths, table="t")
        assert raised.value.what.startswith(f"{len(taken)} of {total} rows ha") and "(first: " in raised.value.what
        assert "--on-duplicate skip" in raised.value.remedy
        assert numbers(lake) == before and lake.data_files("t") == files
        bad = lake.folder / "bad.parquet"
        state = lake.open("t").opened.state.version
        again = Lake(lake.folder / "again")
        others = table_of(again, case)
        assert again.ingest(*others, table="t", bad_rows=bad).bad_rows == len(taken)
        assert numbers(again) == sorted(before + kept) and lake.open("t").opened.state.version == state
    done = lake.ingest(*paths, table="t", on_duplicate="skip")
    assert (done.rows, done.duplicates_skipped) == (total - len(taken), len(taken))
    assert numbers(lake) == sorted(before + kept)
    assert not [*verify_of(lake)]


def verify_of(lake: Lake) -> list[str]:
    return [str(each.what) for found in verify(lake.store, lake.root, full=True) for each in found.differences]


@pytest.mark.parametrize("engine", ENGINES)
def test_both_engines_say_the_same(engine: Any, lake: Lake, request: Any) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    unique_ids(lake, 1, 2, 150)
    one, two = lake.file(of_ids(3, 150, 3), "a.parquet"), lake.file(of_ids(4, 2, 3), "b.parquet")
    with pytest.raises(Refused) as raised:
        lake.ingest(one, two, table="t", engine=engine)
    assert "4 of 6 rows have keys that the table or the load already has (first: id=150, id=3, id=2, id=3)" in str(
        raised.value
    )
    assert ids(lake) == [1, 2, 150]
    bad = lake.folder / "bad.jsonl"
    done = lake.ingest(one, two, table="t", engine=engine, bad_rows=bad, job_id="x")
    assert (done.rows, done.bad_rows, ids(lake)) == (2, 4, [1, 2, 3, 4, 150])
    found = [json.loads(line) for line in bad.read_text().splitlines()]
    assert [(row["id"], row["v"], row["_bad"][0]["row"], row["_bad"][0]["reason"]) for row in found] == [
        (150, "v150", 2, "is a key that the table already has"),
        (3, "v3", 3, "is a key that a row before it has"),
        (2, "v2", 2, "is a key that the table already has"),
        (3, "v3", 3, "is a key that a row before it has"),
    ]
    assert lake.ingest(one, two, table="t", engine=engine, bad_rows=bad, job_id="x").already_done
    skipped = lake.ingest(one, two, table="t", engine=engine, on_duplicate="skip")
    assert (skipped.rows, skipped.duplicates_skipped, skipped.lance_version) == (0, 6, done.lance_version)


def test_bad_rows_come_before_duplicates_and_count_with_them(lake: Lake) -> None:
    unique_ids(lake, 1)
    path = lake.text("x.csv", "id,v\nno,a\n1,b\n2,c\n")
    with pytest.raises(Refused, match="1 row cannot be loaded"):
        lake.ingest(path, table="t")
    bad = lake.folder / "bad.jsonl"
    from deployer.tables.ingest.rows.bad_rows import BadRowLimit

    with pytest.raises(InvalidInput, match="2 of 3 rows are bad, which is more than --max-bad-rows 1"):
        lake.ingest(path, table="t", bad_rows=bad, max_bad_rows=BadRowLimit.parse("1"))
    bad.unlink()
    assert lake.ingest(path, table="t", bad_rows=bad, on_duplicate="skip").bad_rows == 1
    assert ids(lake) == [1, 2] and "no" in bad.read_text()


def test_rows_that_are_written_in_several_runs(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployer.tables.ingest.driver.FLUSH_BYTES", 1)
    unique_ids(lake)
    paths = [lake.file(of_ids(*values)) for values in ((1, 2), (3, 1), (200, 2), (1, 4))]
    done = lake.ingest(*paths, table="t", on_duplicate="skip")
    assert (done.rows, done.duplicates_skipped, ids(lake)) == (5, 3, [1, 2, 3, 4, 200])


def test_only_files_are_read_that_may_have_the_keys(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    unique_ids(lake, *range(1, 50), *range(100, 150))
    lake.ingest(lake.file(of_ids(*range(60, 90))), table="t")
    read: list[int] = []
    scanner = lance.LanceDataset.scanner

    def noted(self: Any, *args: Any, **more: Any) -> Any:
        read.extend(each.fragment_id for each in more.get("fragments") or [])
        return scanner(self, *args, **more)

    monkeypatch.setattr(lance.LanceDataset, "scanner", noted)
    lake.ingest(lake.file(of_ids(55, 91, 160)), table="t")
    assert len(read) == 1  # the file of 60 to 89, since 55 to 91 are checked together
    read.clear()
    lake.ingest(lake.file(of_ids(95, 99)), table="t")
    assert not read


def test_the_key_is_free_again_once_its_row_is_deleted(lake: Lake) -> None:
    unique_ids(lake, 1, 2)
    lance.dataset(lake.open("t").opened.location).delete("id = 1")
    lake.ingest(lake.file(of_ids(1)), table="t")
    with pytest.raises(Refused, match="id=2"):
        lake.ingest(lake.file(of_ids(2)), table="t")


def test_after_a_split_of_a_leaf(lake: Lake) -> None:
    unique_ids(lake, *range(1, 40), splits=())
    assert split_leaves(lake.store, lake.root, lake.open("t").opened.entry.table_id, max_rows=10)
    assert len(lake.open("t").opened.state.leaves()) > 2
    with pytest.raises(Refused, match=r"2 of 3 rows have keys .*first: id=39, id=1\)"):
        lake.ingest(lake.file(of_ids(39, 77, 1)), table="t")


def test_a_table_without_unique_keys_skips_nothing(lake: Lake) -> None:
    unique_ids(lake, 1, unique=False)
    lake.ingest(lake.file(of_ids(1)), table="t")
    assert ids(lake) == [1, 1]
    with pytest.raises(InvalidInput, match="not declared unique"):
        lake.ingest(lake.file(of_ids(1)), table="t", on_duplicate="skip")


def declared(lake: Lake, **changes: Any) -> None:
    table = lake.open("t").opened
    spec = live_table(table.entry, table.state).spec
    update_table(lake.store, lake.root, table.entry.table_id, replace(spec, **changes))


def test_keys_become_unique_when_they_are(lake: Lake) -> None:
    unique_ids(lake, 1, 2, 120, unique=False)
    lake.ingest(lake.file(of_ids(2, 7)), table="t")
    with pytest.raises(
        Refused, match="1 of 5 rows have row keys that another row has, such as id=2; remove all but one"
    ):
        declared(lake, unique=True)
    lance.dataset(lake.open("t").opened.location).delete("id = 2")
    writer = open_appender(lake.root, "air.t")
    declared(lake, unique=True)
    with pytest.raises(Conflict, match="became unique"):
        writer.append(of_ids(1))
    writer.refresh()
    with pytest.raises(Refused, match="id=1"):
        writer.append(of_ids(1))
    declared(lake, unique=False)
    lake.ingest(lake.file(of_ids(1)), table="t")
    assert ids(lake) == [1, 1, 7, 120]
    assert not lake.open("t").opened.state.properties.declared.get("unique")


def test_rows_that_repeat_other_keys_while_they_are_copied(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in "ab"])
    lake.table(schema, ("a",), splits=(), name="t", unique=True)
    lake.ingest(lake.file(pa.table({"a": [1, 2], "b": [1, 2]}, schema=schema)), table="t")

    def late(*args: Any) -> Any:
        monkeypatch.undo()
        lake.ingest(lake.file(pa.table({"a": [3], "b": [2]}, schema=schema)), table="t")
        return copy_rows(*args)

    monkeypatch.setattr("deployer.tables.evolution.rewrite.rewrite.copy_rows", late)
    with pytest.raises(
        Refused, match="1 of 3 rows have row keys that another row has, such as b=2; the table is unchanged"
    ):
        declared(lake, row_keys=("b",))
    assert lake.open("t").opened.row_keys == ("a",)
    assert all(each.status != "writing" for each in lake.open("t").opened.state.datasets)


@pytest.mark.parametrize("row_keys", [("id",), ("v", "id")])
def test_many_rows_are_looked_through_in_parts(
    row_keys: tuple[str, ...], lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_keys, "AT_ONCE", 10)
    unique_ids(lake, *range(50), 7, 30, 7, unique=False)
    dataset = lake.open("t").opened.dataset()
    found = repeated_keys.repeated_keys(dataset, row_keys)
    assert found.rows == 3 and len(found.examples) == 2
    assert sorted(part.num_rows for part in repeated_keys._Keys(dataset, row_keys, None).parts())[-1] <= 20
    assert repeated_keys.repeated_keys(dataset, ("id",), files=lake.open("t").opened.state.files).rows == 3


def test_other_keys_of_a_unique_table(lake: Lake) -> None:
    schema = pa.schema([pa.field(name, pa.int64(), nullable=False) for name in "abc"])
    lake.table(schema, ("a", "b"), splits=(), name="t", unique=True)
    lake.ingest(lake.file(pa.table({"a": [1, 1, 2], "b": [1, 2, 2], "c": [5, 6, 7]}, schema=schema)), table="t")
    with pytest.raises(Refused, match="1 of 3 rows have row keys that another row has, such as a=1"):
        declared(lake, row_keys=("a",))
    declared(lake, row_keys=("c",))
    with pytest.raises(Refused, match="c=7"):
        lake.ingest(lake.file(pa.table({"a": [9], "b": [9], "c": [7]}, schema=schema)), table="t")
    declared(lake, row_keys=("b", "c"))
    assert lake.open("t").opened.row_keys == ("b", "c")


def test_writers_of_python(lake: Lake) -> None:
    unique_ids(lake, 1)
    writer = open_appender(lake.root, "air.t")
    assert writer.append(of_ids(2, 3), "monday").job.rows == 2
    assert writer.append(of_ids(2, 3), "monday").already_done
    before = lake.data_files("t")
    with pytest.raises(Refused, match=r"2 of 3 rows have keys .*\(first: id=3, id=4\).*on_duplicate=\"skip\""):
        writer.append(of_ids(4, 3, 4))
    assert lake.data_files("t") == before
    done = writer.append(of_ids(4, 3, 4), on_duplicate="skip")
    assert (done.job.rows, done.skipped, ids(lake)) == (1, 2, [1, 2, 3, 4])
    assert writer.append(of_ids(4), on_duplicate="skip").job.rows == 0
    writer.close()


@pytest.mark.parametrize("on_duplicate", ["reject", "skip"])
def test_rows_that_others_add_after_the_check(on_duplicate: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    unique_ids(lake, 1)
    first, second = lake.file(of_ids(5, 6)), lake.file(of_ids(6, 7))
    begin = unique_commit.begin_alone
    calls: list[int] = []

    def late(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            lake.ingest(second, table="t")
        return begin(*args)

    monkeypatch.setattr("deployer.tables.ingest.commit.append.begin_alone", late)
    if on_duplicate == "reject":
        with pytest.raises(Refused, match=r"1 of 2 rows .*first: id=6"):
            lake.ingest(first, table="t")
        assert ids(lake) == [1, 6, 7]
    else:
        assert lake.ingest(first, table="t", on_duplicate="skip").duplicates_skipped == 1
        assert ids(lake) == [1, 5, 6, 7] and len(calls) == 3
    assert len(lake.data_files("t")) == lake.open("t").opened.state.files.count


def test_rows_of_others_with_other_keys_are_no_hindrance(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    unique_ids(lake, 1)
    begin = unique_commit.begin_alone
    calls: list[int] = []

    def late(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            lake.ingest(lake.file(of_ids(4, 7, 200)), table="t")
        return begin(*args)

    monkeypatch.setattr("deployer.tables.ingest.commit.append.begin_alone", late)
    assert lake.ingest(lake.file(of_ids(5, 6)), table="t").rows == 2
    assert ids(lake) == [1, 4, 5, 6, 7, 200] and len(calls) == 2


@pytest.mark.parametrize("meanwhile", ["compaction", "split"])
def test_rows_that_are_moved_after_the_check(meanwhile: str, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    unique_ids(lake, *range(0, 40, 2))
    lake.ingest(lake.file(of_ids(*range(1, 40, 4))), table="t")
    begin = unique_commit.begin_alone

    def late(*args: Any) -> Any:
        opened = lake.open("t").opened
        if meanwhile == "compaction":
            lance.dataset(opened.location).optimize.compact_files()
        else:
            split_leaves(lake.store, lake.root, opened.entry.table_id, max_rows=10)
        return begin(*args)

    monkeypatch.setattr("deployer.tables.ingest.commit.append.begin_alone", late)
    assert lake.ingest(lake.file(of_ids(3, 7, 50)), table="t").rows == 3
    assert lake.open("t").count() == 33 and not verify_of(lake)


def test_writers_that_race_for_the_same_keys(lake: Lake) -> None:
    unique_ids(lake)

    def write(_: int) -> int:
        writer = open_appender(lake.root, "air.t")
        added = sum(writer.append(of_ids(*range(i, i + 3)), on_duplicate="skip").job.rows for i in range(8))
        writer.close()
        return added

    with ThreadPoolExecutor(3) as threads:
        assert sum(threads.map(write, range(3))) == 10
    assert ids(lake) == [*range(10)]


def test_processes_that_race_for_the_same_keys(lake: Lake) -> None:
    unique_ids(lake)
    lake.table(IDS, ("id",), splits=(), unique=True)  # the one that `start` loads
    processes = [start(lake, lake.file(of_ids(1, 2, 10 + i)), f"job-{i}") for i in range(3)]
    codes = []
    for process in processes:
        _, said = process.communicate(timeout=300)
        codes.append(process.returncode)
        assert process.returncode == 0 or "id=1, id=2" in said, said
    assert sorted(codes) == [0, 3, 3]
    assert ids(lake, "flights")[:2] == [1, 2] and len(ids(lake, "flights")) == 3


def test_a_load_that_died_before_its_commit(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table(IDS, ("id",), splits=(), unique=True)
    path = lake.file(of_ids(1, 2))
    assert ended(start(lake, path, "job-1", "tables.commit.before-lance")) == -signal.SIGKILL
    monkeypatch.setattr(unique_commit, "PATIENCE", 0)
    with pytest.raises(Conflict) as raised:
        lake.ingest(lake.file(of_ids(2, 3)))
    assert "job job-1 (ingest) began to commit at" in str(raised.value)
    assert "--job-id job-1" in raised.value.remedy or "--job-id job-1" in str(raised.value)
    assert ids(lake, "flights") == []
    monkeypatch.setattr(unique_commit, "DEAD_AFTER", -1000)
    lake.ingest(lake.file(of_ids(2, 3)))
    assert ids(lake, "flights") == [2, 3] and not lake.open().opened.state.intents
    with pytest.raises(Refused, match="id=2"):
        lake.ingest(path, job_id="job-1")


def test_a_load_that_died_goes_on_under_its_job_id(lake: Lake) -> None:
    lake.table(IDS, ("id",), splits=(), unique=True)
    path = lake.file(of_ids(1, 2))
    for point in ("tables.commit.before-lance", "tables.commit.after-lance"):
        assert ended(start(lake, path, "job-1", point)) == -signal.SIGKILL
    assert lake.ingest(path, job_id="job-1").already_done
    assert ids(lake, "flights") == [1, 2]


def test_rows_that_lance_adds_are_found_by_verify(lake: Lake) -> None:
    unique_ids(lake, 1, 2, 150)
    location = lake.open("t").opened.location
    lance.write_dataset(of_ids(2, 150, 3).cast(lance.dataset(location).schema), location, mode="append")
    lake.open("t")
    lake.ingest(lake.file(of_ids(4)), table="t")
    assert verify_of(lake) == [
        "2 rows have the row keys of another, such as id=2 and id=150: its keys are unique; others added them, "
        "remove all but one of each"
    ]


def test_names_of_keys_are_escaped_in_messages(lake: Lake) -> None:
    lake.table(pa.schema([pa.field("k", pa.string(), nullable=False)]), ("k",), splits=(), name="t", unique=True)
    path = lake.file(pa.table({"k": ["a\x1b[31m\n", "a\x1b[31m\n"]}))
    with pytest.raises(Refused) as raised:
        lake.ingest(path, table="t")
    assert "\x1b" not in str(raised.value) and "\n" not in raised.value.what
    assert os.linesep not in raised.value.what
