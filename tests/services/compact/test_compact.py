"""COMPACT on real tables: rows, their order and their leaves before and after, whoever else wrote to them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.file import LanceFileReader

from deployer.errors import Conflict, DeployerError, NotFound
from deployer.runs.records import queue_run, runs_of
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.specs.model import Storage
from deployer.specs.types.arrow import arrow_schema
from deployer.state import open_store
from deployer.tables.append import open_appender
from deployer.tables.inspect.describe import summaries
from deployer.tables.inspect.versions import history
from deployer.tables.layout.partitions.split import split_leaves
from deployer.tables.maintenance.verify.verify import verify
from tests.tables.lakes import Lake, flights, sorted_rows
from tests.tables.test_types import COLUMNS, rows_of

KEYS = ["carrier", "flight"]


def differences(root: str) -> list[str]:
    with closing(open_store(root)) as store:
        return [str(one) for each in verify(store, root, full=True) for one in each.differences]


def append(lake: Lake, rows: pa.Table, parts: int, name: str = "flights") -> None:
    with closing(open_appender(lake.root, f"air.{name}")) as appender:
        step = -(-rows.num_rows // parts)
        for start in range(0, rows.num_rows, step):
            appender.append(rows.slice(start, step))


def in_files(lake: Lake, name: str = "flights") -> list[pa.Table]:
    """The rows of each file, in the dataset's order."""
    dataset = lake.open(name).opened.dataset()
    return [dataset.scanner(fragments=[each]).to_table() for each in dataset.get_fragments()]


def keys_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in KEYS), strict=True))


def check_files(lake: Lake, name: str = "flights") -> None:
    """Every file is in order, in a leaf that holds all of its keys, and recorded as it is; and verify is clean."""
    table = lake.open(name).opened
    state = table.state
    dataset = table.dataset()
    for file in state.files:
        assert file.sorted and file.partition is not None
        leaf = state.partitions[file.partition]
        assert leaf.is_leaf and file.min_key is not None and file.max_key is not None
        assert leaf.holds(file.min_key) and leaf.holds(file.max_key)
        found = keys_of(dataset.scanner(fragments=[dataset.get_fragment(file.fragment_id)]).to_table())
        assert found == sorted(found) and len(found) == file.rows
    assert differences(lake.root) == []


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("strategy", ["size", "tiered", "leveled"])
def test_each_leaf_becomes_one_sorted_file(lake: Lake, strategy: str) -> None:
    lake.table()
    rows = flights(2000)
    append(lake, rows, 20)
    before = lake.open().opened.state

    done = compact_table(lake.root, "flights", {"strategy": strategy})

    assert (done.status, done.engine) == ("SUCCEEDED", "driver")
    assert done.before.files == before.files.count > 4 and done.after.files == 4
    assert (done.work.rows, done.work.deleted_rows, done.after.rows) == (2000, 0, 2000)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(rows)
    check_files(lake)
    again = compact_table(lake.root, "flights", {"strategy": strategy})
    assert again.status == "SKIPPED" and again.after == done.after and "none is to be merged" in again.why


def test_without_keys_rows_keep_their_order(lake: Lake) -> None:
    lake.table(row_keys=())
    rows = flights(3000)
    append(lake, rows, 30)
    done = compact_table(lake.root, "air.flights", {"target_rows": 1000})
    assert (done.status, done.after.files, done.work.rows) == ("SUCCEEDED", 3, 3000)
    assert lake.open().scan().to_table().equals(rows)
    assert differences(lake.root) == []
    assert compact_table(lake.root, "air.flights", {"target_rows": 1000}).status == "SKIPPED"


def test_small_files_among_large_ones_keep_their_places(lake: Lake) -> None:
    """Lance orders files by number: those that follow must get new ones, in several portions too."""
    lake.table(row_keys=())
    rows = flights(2600)
    sizes = [50, 50, 900, 50, 50, 50, 900, 400, 50, 50, 50]
    with closing(open_appender(lake.root, "air.flights")) as appender:
        for start, count in zip([sum(sizes[:i]) for i in range(len(sizes))], sizes, strict=True):
            appender.append(rows.slice(start, count))
    location = lake.open().opened.location
    lance.dataset(location).delete("delay = 111")  # few rows of the large files, too
    expected = lake.open().scan().to_table()
    assert 2000 < expected.num_rows < 2600
    done = compact_table(lake.root, "flights", {"target_rows": 900, "portion_bytes": 1})
    assert done.work.portions >= 3
    assert lake.open().scan().to_table().equals(expected)
    assert differences(lake.root) == []
    row_ids = lake.open().opened.dataset().scanner(columns=[], with_row_id=True).to_table()["_rowid"].to_pylist()
    assert row_ids == sorted(row_ids)


def test_deleted_rows_are_dropped(lake: Lake) -> None:
    lake.table()
    rows = flights(1000)
    append(lake, rows, 5)
    location = lake.open().opened.location
    lance.dataset(location).delete("flight < 300")
    lance.dataset(location).delete("carrier = '9E'")
    expected = sorted_rows(lake.open().scan().to_table())
    done = compact_table(lake.root, "flights")
    assert done.work.deleted_rows > 0
    assert sorted_rows(lake.open().scan().to_table()) == expected
    assert all(not each.num_deletions for each in lake.open().opened.dataset().get_fragments())
    check_files(lake)


def test_a_large_file_is_freed_of_deleted_rows_above_the_share(lake: Lake) -> None:
    lake.table(splits=())
    append(lake, flights(1000), 1)
    lance.dataset(lake.open().opened.location).delete("flight < 100")
    options = {"target_rows": 1000, "max_deleted_share": 0.2}
    assert compact_table(lake.root, "flights", options).status == "SKIPPED"
    done = compact_table(lake.root, "flights", {**options, "max_deleted_share": 0.05})
    assert (done.work.deleted_rows, done.after.files) == (100, 1)
    check_files(lake)


def test_files_that_plain_lance_appended_are_sorted_and_placed(lake: Lake) -> None:
    lake.table()
    append(lake, flights(500), 2)
    foreign = flights(700, 500)
    lance.write_dataset(foreign, lake.open().opened.location, mode="append")
    assert any(file.partition is None for file in lake.open().opened.state.files)
    done = compact_table(lake.root, "flights")
    assert done.status == "SUCCEEDED"
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(1200))
    check_files(lake)
    assert done.after.files == 4


def test_files_across_the_leaves_of_a_split_are_parted(lake: Lake) -> None:
    lake.table(splits=())
    append(lake, flights(1000), 4)
    opened = lake.open().opened
    assert split_leaves(lake.store, lake.root, opened.entry.table_id, 300).leaves == 4
    done = compact_table(lake.root, "flights")
    assert done.after.files == 4
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(1000))
    check_files(lake)


def test_large_merges_are_streamed_and_cut_into_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from deployer.runs.rewriting import sorted_runs as reading
    from deployer.services.kinds.compact import merge_task

    monkeypatch.setattr(reading, "HELD_BYTES", 0)
    monkeypatch.setattr(reading, "STREAM_BYTES", 5000)
    monkeypatch.setattr(merge_task, "WINDOW_ROWS", 97)
    lake.table(splits=(("DL",),), sort_keys=("at",))
    rows = flights(5000)
    with closing(open_appender(lake.root, "air.flights")) as appender:
        for start, count in ((0, 10), (10, 2000), (2010, 990), (3000, 1990), (4990, 10)):
            appender.append(rows.slice(start, count))
    lance.dataset(lake.open().opened.location).delete("flight in (3, 4)")
    expected = lake.open().scan().to_table()
    done = compact_table(lake.root, "flights", {"target_rows": 2400})
    assert done.after.files == 3
    order = [(name, "ascending") for name in (*KEYS, "at")]
    found = pa.concat_tables(sorted(in_files(lake), key=lambda each: (keys_of(each)[0], each["at"][0].as_py())))
    expected = expected.sort_by(order)
    for name in found.column_names:
        same = found[name].to_pylist() == expected[name].to_pylist()
        assert same, name
    check_files(lake)
    first, second, third = sorted(file.rows for file in lake.open().opened.state.files)
    assert third >= 1900 and second - first <= 1


@pytest.mark.parametrize("row_keys", [(), ("id",)], ids=["keyless", "keyed"])
def test_all_types_come_back(lake: Lake, row_keys: tuple[str, ...]) -> None:
    schema = arrow_schema(COLUMNS)
    lake.table(schema, row_keys, splits=((100,),), storage=Storage(data_storage_version="2.1"))
    rows = rows_of(schema)
    for start in range(0, rows.num_rows, 40):
        lake.ingest(lake.file_arrow(rows.slice(start, 40)))
    before = lake.open().scan().to_table()
    done = compact_table(lake.root, "flights")
    assert done.after.files == (2 if row_keys else 1)
    found = lake.open().scan().to_table()
    order = pc.sort_indices(before["id"]) if row_keys else pa.array(range(rows.num_rows))
    before = before.take(order) if row_keys else before
    for name in schema.names:
        same = found[name].to_pylist() == before[name].to_pylist()
        assert same, schema.field(name).type
    assert found.schema == before.schema
    assert differences(lake.root) == []


@pytest.mark.parametrize(("rows", "pages"), [(100, 1), (10_000, 5)], ids=["small", "large"])
def test_pages_are_copied_unless_they_are_small(lake: Lake, rows: int, pages: int) -> None:
    lake.table(pa.schema([("number", pa.int64())]), (), storage=Storage(data_storage_version="2.1"))
    numbers = pa.table({"number": np.random.default_rng(7).integers(0, 1 << 62, 5 * rows)})
    for start in range(0, 5 * rows, rows):
        lake.ingest(lake.file_arrow(numbers.slice(start, rows)))
    done = compact_table(lake.root, "flights")
    assert (done.before.files, done.after.files) == (5, 1)
    table = lake.open().opened
    (file,) = (Path(table.location) / "data").glob(f"{table.dataset().get_fragments()[0].data_files()[0].path}")
    (column,) = LanceFileReader(str(file)).metadata().columns
    assert len(column.pages) == pages
    assert lake.open().scan().to_table() == numbers.cast(table.schema)


@pytest.mark.parametrize(("row_keys", "stable"), [((), False), (("carrier", "flight"), True)], ids=["off", "on"])
def test_row_ids_other_than_by_default(lake: Lake, row_keys: tuple[str, ...], *, stable: bool) -> None:
    lake.table(row_keys=row_keys, storage=Storage(stable_row_ids=stable))
    append(lake, flights(600), 6)
    ids = lake.open().opened.dataset().scanner(with_row_id=True).to_table()
    before = {str({k: v for k, v in row.items() if k != "_rowid"}): row["_rowid"] for row in ids.to_pylist()}
    compact_table(lake.root, "flights")
    found = lake.open().opened.dataset().scanner(with_row_id=True).to_table().to_pylist()
    after = {str({k: v for k, v in row.items() if k != "_rowid"}): row["_rowid"] for row in found}
    assert after.keys() == before.keys()
    if stable:
        assert after == before
    assert differences(lake.root) == []


@pytest.mark.spark
@pytest.mark.parametrize("row_keys", [(), ("carrier", "flight")], ids=["keyless", "keyed"])
def test_by_spark_it_is_the_same(lake: Lake, row_keys: tuple[str, ...], spark: Any) -> None:
    lake.table(row_keys=row_keys)
    rows = flights(2000)
    append(lake, rows, 10)
    done = compact_table(lake.root, "flights", {"target_rows": 700}, engine="spark")
    assert (done.status, done.engine) == ("SUCCEEDED", "spark") and done.work.tasks > 1
    found = lake.open().scan().to_table()
    if row_keys:
        assert sorted_rows(found) == sorted_rows(rows)
        check_files(lake)
    else:
        assert found.equals(rows)


def test_readers_of_an_old_version_go_on(lake: Lake) -> None:
    lake.table()
    append(lake, flights(500), 5)
    old = lake.open().opened.dataset()
    reader = old.scanner(batch_size=10).to_batches()
    next(reader)
    compact_table(lake.root, "flights")
    assert sum(batch.num_rows for batch in reader) == 490
    assert sorted_rows(old.to_table()) == sorted_rows(flights(500))


def test_an_empty_table_and_one_file_are_skipped(lake: Lake) -> None:
    lake.table()
    assert compact_table(lake.root, "flights").status == "SKIPPED"
    lake.ingest(lake.file(flights(1)))
    assert compact_table(lake.root, "flights").status == "SKIPPED"


def test_a_run_is_recorded_with_its_figures(lake: Lake) -> None:
    table = lake.table()
    append(lake, flights(400), 4)
    done = compact_table(lake.root, "flights")
    skipped = compact_table(lake.root, "flights")
    last, first = runs_of(lake.store.table(table.opened.entry.table_id))
    assert (first.run_id, first.status, first.cause) == (done.run_id, "SUCCEEDED", "on demand")
    assert (first.figures.rows_in, first.figures.bytes_out) == (400, done.work.bytes_written)
    assert first.figures.before["files"] == done.before.files and first.figures.after["files"] == 4
    assert (last.status, last.reason) == ("SKIPPED", skipped.why)


def test_it_adds_no_rows_to_what_others_are_told(lake: Lake) -> None:
    lake.table()
    append(lake, flights(400), 4)
    loaded = summaries(lake.store, lake.root)[0][0].last_write
    compact_table(lake.root, "flights")
    cluster_table(lake.root, "flights", {"columns": ["price"], "target_file_bytes": 2_000})
    assert [each.rows for each in history(lake.open().opened)[:3]] == [0, 0, 100]
    assert summaries(lake.store, lake.root)[0][0].last_write == loaded


@pytest.mark.parametrize("row_keys", [(), ("carrier", "flight")], ids=["keyless", "keyed"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_file_that_is_gone_is_said_and_the_table_is_as_it_was(
    lake: Lake, row_keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, *, streamed: bool
) -> None:
    from deployer.runs.rewriting import sorted_runs as reading

    if streamed:
        monkeypatch.setattr(reading, "HELD_BYTES", 0)
        monkeypatch.setattr(reading, "STREAM_BYTES", 0)
    lake.table(row_keys=row_keys, splits=())
    append(lake, flights(400), 4)
    opened = lake.open().opened
    lost = opened.dataset().get_fragments()[2].metadata.files[0].path
    (Path(opened.location) / "data" / lost).unlink()
    with pytest.raises(DeployerError, match=r"(deployer state verify|run it again)"):
        compact_table(lake.root, "flights")
    assert lake.open().opened.state.files == opened.state.files
    assert runs_of(lake.store.table(opened.entry.table_id))[0].status == "FAILED"


def test_what_cannot_be_is_said(lake: Lake) -> None:
    lake.table()
    with pytest.raises(NotFound, match="flights"):
        compact_table(lake.root, "flight")
    table_id = lake.open().opened.entry.table_id
    queue_run(lake.store, table_id, "COMPACT", cause="test", needs_service=False)
    with pytest.raises(Conflict, match="COMPACT"):
        compact_table(lake.root, "flights")
