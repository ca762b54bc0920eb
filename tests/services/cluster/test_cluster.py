"""CLUSTER on real tables: rows, files, their order and what is recorded of them, before and after."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.datasets.ordering.clustering import bounds_of
from deployer.datasets.ordering.key_ranges import key_kinds
from deployer.errors import InvalidInput
from deployer.runs.records import runs_of
from deployer.services.api.attachments import create_service
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.cluster.results import ClusterResult
from deployer.services.kinds.compact import compact_table
from deployer.services.registry import forecast
from deployer.services.triggers.after_load import run_due_services
from deployer.specs.model import Storage
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.values.keys import is_key_type
from deployer.state.log.updates import FilesReplaced
from deployer.state.model.services import Service
from deployer.tables.layout.partitions.split import split_leaves
from deployer.tables.maintenance.verify.verify import repair
from deployer.tables.open_table import open_to_change
from deployer.tables.read.key_values import Interval
from tests.services.compact.test_compact import append, differences, in_files, keys_of
from tests.services.compact.test_indexed import found as looked_up
from tests.tables.indexed import BITMAP, LABELS, NESTED, PQ, TEXT, TREE, Indexed
from tests.tables.lakes import Lake, flights, sorted_rows
from tests.tables.test_types import COLUMNS, rows_of

COLUMNS_BY = ["flight", "delay"]
SMALL: dict[str, Any] = {"columns": COLUMNS_BY, "target_file_bytes": 4_000}


def cluster(lake: Lake, **options: Any) -> ClusterResult:
    return cluster_table(lake.root, "flights", {**SMALL, **options})


def check(lake: Lake, rows: pa.Table, by: list[str] = COLUMNS_BY) -> None:
    """The rows are these, files are in their leaves, and their bounds of the columns are those of their rows."""
    opened = lake.open().opened
    dataset, state = opened.dataset(), opened.state
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(rows)
    for file in state.files:
        held = dataset.scanner(fragments=[dataset.get_fragment(file.fragment_id)], columns=by).to_table()
        kinds = key_kinds(held.schema, by)
        if file.clustering:
            assert bounds_of([held[name] for name in by], kinds) == (file.cluster_min, file.cluster_max)
        leaf = state.partitions[str(file.partition)]
        assert leaf.is_leaf and (file.min_key is None or (leaf.holds(file.min_key) and leaf.holds(file.max_key or b"")))
    assert differences(lake.root) == []


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("row_keys", [(), ("carrier", "flight")], ids=["keyless", "keyed"])
@pytest.mark.parametrize("curve", ["zorder", "hilbert", "sort"])
def test_rows_stay_and_files_overlap_less(lake: Lake, row_keys: tuple[str, ...], curve: str) -> None:
    lake.table(row_keys=row_keys)
    rows = flights(4000)
    append(lake, rows, 20)
    done = cluster(lake, curve=curve)
    assert (done.status, done.work.rows, done.after.rows) == ("SUCCEEDED", 4000, 4000)
    before, after = done.depth_before.of_all, done.depth_after.of_all
    assert after.average < before.average / 2 and after.files == done.after.files == done.depth_after.clustered
    assert done.depth_before.clustered == 0 and set(done.depth_after.leaves) == set(done.depth_before.leaves)
    if curve != "sort":
        assert all(now < then * 0.8 for now, then in zip(after.by_column, before.by_column, strict=True))
    check(lake, rows)

    state = lake.open().opened.state
    again = cluster(lake, curve=curve)
    assert again.status == "SKIPPED" and f"all are clustered by {curve} over flight, delay" in again.why
    assert again.depth_before == again.depth_after == done.depth_after
    assert lake.open().opened.state.files == state.files
    assert lake.open().opened.state.lance_version == state.lance_version


def test_only_what_is_new_is_arranged_until_all_is_asked_for(lake: Lake) -> None:
    lake.table(row_keys=())
    append(lake, flights(2000), 5)
    cluster(lake, curve="zorder", target_file_bytes=20_000)
    first = {file.fragment_id for file in lake.open().opened.state.files}
    append(lake, flights(1000, 2000), 2)
    done = cluster(lake, curve="zorder", target_file_bytes=20_000)
    kept = first & {file.fragment_id for file in lake.open().opened.state.files}
    assert 1000 <= done.work.rows < 3000 and kept
    check(lake, flights(3000))
    whole = cluster(lake, curve="zorder", target_file_bytes=20_000, incremental=False)
    assert (whole.status, whole.work.rows, whole.work.portions) == ("SUCCEEDED", 3000, 1)
    assert not kept & {file.fragment_id for file in lake.open().opened.state.files}
    check(lake, flights(3000))
    assert cluster(lake, curve="hilbert").work.rows == 3000  # by another curve nothing is clustered yet
    assert cluster(lake, curve="hilbert", columns=["delay", "flight"]).work.rows == 3000


def test_by_the_tables_own_keys_files_are_sorted_and_follow_each_other(lake: Lake) -> None:
    lake.table(sort_keys=("at",))
    append(lake, flights(2000), 10)
    done = cluster_table(lake.root, "flights", {"target_file_bytes": 5_000})
    assert (done.curve, done.columns) == ("sort", ("carrier", "flight", "at"))
    files = sorted(lake.open().opened.state.files, key=lambda file: file.min_key or b"")
    assert all(file.sorted for file in files) and len(files) > 6
    assert all(one.max_key <= two.min_key for one, two in pairwise(files))  # type: ignore[operator]
    assert all(keys_of(each) == sorted(keys_of(each)) for each in in_files(lake))
    check(lake, flights(2000), ["carrier", "flight", "at"])
    assert compact_table(lake.root, "flights", {"target_file_bytes": 5_000}).status == "SKIPPED"


def test_compact_leaves_what_is_clustered_in_its_order(lake: Lake) -> None:
    lake.table()
    append(lake, flights(2000), 10)
    cluster(lake, curve="zorder")
    files = list(lake.open().opened.state.files)
    assert not any(file.sorted for file in files) and len(files) > 10
    assert compact_table(lake.root, "flights").status == "SKIPPED"  # small as they are
    append(lake, flights(200, 2000), 4)
    assert compact_table(lake.root, "flights").status == "SUCCEEDED"
    after = {file.fragment_id: file for file in lake.open().opened.state.files}
    assert all(after.get(file.fragment_id) == file for file in files)
    check(lake, flights(2200))


@pytest.mark.parametrize("row_keys", [(), ("carrier", "flight")], ids=["keyless", "keyed"])
def test_compact_drops_deleted_rows_of_clustered_files_in_their_order(lake: Lake, row_keys: tuple[str, ...]) -> None:
    lake.table(row_keys=row_keys, storage=Storage(stable_row_ids=True))
    append(lake, flights(2000), 10)
    cluster(lake, curve="hilbert")
    lance.dataset(lake.open().opened.location).delete("delay % 3 = 0")
    expected = lake.open().opened.dataset().scanner(with_row_id=True).to_table()
    clustered = {(file.clustering, file.cluster_min) for file in lake.open().opened.state.files}
    done = compact_table(lake.root, "flights")
    assert done.status == "SUCCEEDED" and done.work.deleted_rows > 300
    table = lake.open().opened
    assert {(file.clustering, file.cluster_min) for file in table.state.files} <= clustered
    after = table.dataset().scanner(with_row_id=True).to_table()
    assert after.sort_by("_rowid").equals(expected.sort_by("_rowid"))
    if not row_keys:
        assert after.equals(expected)
    assert not [each for each in table.dataset().get_fragments() if each.num_deletions]
    assert differences(lake.root) == []
    assert cluster(lake, curve="hilbert").status == "SKIPPED"


def test_deleted_rows_and_what_others_wrote(lake: Lake) -> None:
    """Foreign files without a leaf, and files across the leaves of a split, come into their leaves."""
    lake.table(splits=())
    append(lake, flights(1000), 4)
    location = lake.open().opened.location
    lance.write_dataset(flights(500, 1000), location, mode="append")
    table_id = lake.open().opened.entry.table_id
    assert split_leaves(lake.store, lake.root, table_id, 500).leaves > 2
    lance.dataset(location).delete("flight < 200")
    expected = lake.open().scan().to_table()
    done = cluster(lake, curve="zorder")
    assert (done.status, done.after.rows) == ("SUCCEEDED", expected.num_rows) and done.work.deleted_rows > 0
    assert all(file.clustering for file in lake.open().opened.state.files)
    check(lake, expected)


@pytest.mark.thinned(6, to="full")
@pytest.mark.parametrize("row_keys", [(), ("id",)], ids=["keyless", "keyed"])
@pytest.mark.parametrize("curve", ["zorder", "hilbert", "sort"])
def test_any_types_with_nulls_cluster_together(lake: Lake, row_keys: tuple[str, ...], curve: str) -> None:
    schema = arrow_schema(COLUMNS)
    lake.table(schema, row_keys, splits=((100,),), storage=Storage(data_storage_version="2.1"))
    rows = rows_of(schema)
    for start in range(0, rows.num_rows, 40):
        lake.ingest(lake.file_arrow(rows.slice(start, 40)))
    before = lake.open().scan().to_table()
    names = [column.name for column in COLUMNS if is_key_type(column.type)]
    for chosen in (names[1:9], names[9:]):
        done = cluster_table(
            lake.root, "flights", {"columns": chosen[:16], "curve": curve, "target_file_bytes": 20_000}
        )
        assert done.status == "SUCCEEDED", chosen
    found = lake.open().scan().to_table()
    assert found.schema == before.schema
    assert sorted_rows(found) == sorted_rows(before)
    assert differences(lake.root) == []


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "keyless"])
def test_indexes_find_the_same_rows(lake: Lake, *, keyed: bool) -> None:
    table = Indexed(lake, [TREE, BITMAP, LABELS, TEXT, PQ, NESTED], keyed=keyed)
    for start in range(0, 1400, 200):
        table.add(200, start, indexes=start < 1000)
    lance.dataset(lake.open().opened.location).delete("id % 50 = 7")
    before = looked_up(table)
    options = {"columns": ["carrier", "gate.number"], "curve": "zorder", "target_file_bytes": 60_000}
    done = cluster_table(lake.root, "flights", options)
    assert (done.status, done.indexes.failure) == ("SUCCEEDED", "") and done.after.files > 1
    after = looked_up(table)
    assert {name for name in before if before[name] != after[name]} == set()
    assert {info.unindexed_rows for info in table.infos().values()} == {0}
    assert differences(lake.root) == []


def test_row_ids_stay_with_their_rows(lake: Lake) -> None:
    lake.table(row_keys=(), storage=Storage(stable_row_ids=True))
    append(lake, flights(2000), 5)
    before = lake.open().opened.dataset().scanner(with_row_id=True).to_table().sort_by("_rowid")
    cluster(lake, curve="zorder")
    after = lake.open().opened.dataset().scanner(with_row_id=True).to_table()
    assert not after.equals(before) and after.sort_by("_rowid").equals(before)


def test_a_range_opens_only_the_files_that_can_hold_it(lake: Lake) -> None:
    lake.table(row_keys=())
    rows = flights(4000)
    append(lake, rows, 10)
    ranges = {"flight": Interval(100, 150), "delay": Interval(10, 60, high_included=False)}
    before = lake.open().range(ranges)
    expected = sorted_rows(before.to_table())
    assert before.opened == before.total == 10 and expected
    cluster(lake, curve="hilbert")
    after = lake.open().range(ranges)
    assert sorted_rows(after.to_table()) == expected
    assert after.opened <= after.total / 4
    append(lake, flights(100, 4000), 1)
    assert lake.open().range(ranges).opened == after.opened + 1  # nothing is known of the new file
    lance.dataset(lake.open().opened.location).update({"delay": "20"}, where="flight < 105")
    table = lake.open()
    wanted = [row for row in table.scan().to_table().to_pylist() if 100 <= row["flight"] <= 150]
    wanted = [row for row in wanted if row["delay"] is not None and 10 <= row["delay"] < 60]
    assert sorted_rows(table.range(ranges).to_table()) == sorted(wanted, key=repr)


def test_a_range_of_nulls_and_of_long_text_is_not_missed(lake: Lake) -> None:
    schema = pa.schema([("text", pa.string()), ("number", pa.int64())])
    lake.table(schema, ())
    texts = ["x" * 100 + f"{i:04}" if i % 5 else None for i in range(500)]
    append(lake, pa.table({"text": texts, "number": list(range(500))}, schema=schema), 4)
    cluster_table(lake.root, "flights", {"columns": ["text", "number"], "curve": "zorder", "target_file_bytes": 1000})
    wanted = "x" * 100 + "0123"
    found = lake.open().range({"text": Interval(wanted, wanted)})
    assert found.to_table()["number"].to_pylist() == [123] and found.total > 2
    assert lake.open().range({"number": Interval(100, 100)}).to_table()["text"].to_pylist() == [None]


def test_large_leaves_go_through_a_folder(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployer.services.kinds.cluster.job.HELD_BYTES", 0)
    lake.table(splits=())
    append(lake, flights(3000), 6)
    for curve in ("zorder", "sort"):
        done = cluster(lake, curve=curve, target_file_bytes=20_000)
        assert done.status == "SUCCEEDED" and done.after.files > 2
        assert done.depth_after.of_all.average < 3
        check(lake, flights(3000))


@pytest.mark.spark
@pytest.mark.parametrize("held", [0, 1 << 30], ids=["shuffled", "in memory"])
def test_by_spark_it_is_the_same(lake: Lake, held: int, spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployer.services.kinds.cluster.job.HELD_BYTES", held)
    lake.table(row_keys=(), storage=Storage(stable_row_ids=True))
    append(lake, flights(3000), 6)
    before = lake.open().opened.dataset().scanner(with_row_id=True).to_table().sort_by("_rowid")
    options = {**SMALL, "curve": "hilbert", "target_file_bytes": 20_000}
    done = cluster_table(lake.root, "flights", options, engine="spark")
    assert (done.status, done.engine) == ("SUCCEEDED", "spark") and done.after.files > 2
    assert done.depth_after.of_all.average < 3
    assert lake.open().opened.dataset().scanner(with_row_id=True).to_table().sort_by("_rowid").equals(before)
    check(lake, flights(3000))


def test_a_dry_run_says_what_would_be_and_changes_nothing(lake: Lake) -> None:
    table_id = lake.table().opened.entry.table_id
    append(lake, flights(1000), 5)
    before = lake.open().opened.state
    done = cluster(lake, curve="zorder", dry_run=True)
    assert (done.status, done.dry_run, done.work.rows, done.work.tasks) == ("SUCCEEDED", True, 1000, 4)
    assert "1,000 rows" in done.why and done.depth_before.of_all.average > 1
    assert lake.open().opened.state.files == before.files
    [run] = runs_of(lake.store.table(table_id))
    assert (run.status, run.figures.rows_in, run.reason) == ("SUCCEEDED", 0, done.why)
    assert cluster(lake, curve="zorder").depth_before == done.depth_before
    assert cluster(lake, curve="zorder", dry_run=True).status == "SKIPPED"


def test_a_run_is_recorded_with_its_figures(lake: Lake) -> None:
    table_id = lake.table(row_keys=()).opened.entry.table_id
    append(lake, flights(2000), 5)
    create_service(lake.store, table_id, Service("CLUSTER", options={**SMALL, "curve": "zorder"}))
    done = cluster_table(lake.root, "flights")
    [run] = runs_of(lake.store.table(table_id))
    assert (run.run_id, run.service, run.status) == (done.run_id, "CLUSTER", "SUCCEEDED")
    assert run.figures.before["depth"] == round(done.depth_before.of_all.average, 2)
    assert run.figures.after["depth_by_column"] == [round(each, 2) for each in done.depth_after.of_all.by_column]
    [depth] = done.depth_after.leaves.values()
    assert run.figures.after["leaves"] == {name: depth.as_json() for name in done.depth_after.leaves}
    assert (run.figures.before["clustered_files"], run.figures.after["clustered_files"]) == (0, done.after.files)


@pytest.mark.parametrize(
    ("row_keys", "columns", "says"),
    [
        ((), None, "the table has no keys to take instead"),
        ((), ["delays"], "did you mean 'delay'"),
        ((), [f"c{i}" for i in range(17)], "name at most 16"),
    ],
)
def test_what_cannot_be_is_said(lake: Lake, row_keys: tuple[str, ...], columns: list[str] | None, says: str) -> None:
    lake.table(row_keys=row_keys)
    append(lake, flights(100), 2)
    with pytest.raises(InvalidInput, match=says):
        cluster_table(lake.root, "flights", {"columns": columns} if columns else {})
    assert cluster_table(lake.root, "flights", {"columns": ["delay"]}).status == "SUCCEEDED"


def test_an_empty_table_is_skipped(lake: Lake) -> None:
    lake.table()
    assert cluster_table(lake.root, "flights").why == "there are no rows"


def test_columns_that_are_renamed_stay_clustered_and_those_written_anew_do_not(lake: Lake) -> None:
    lake.table(row_keys=())
    append(lake, flights(1000), 5)
    cluster(lake, curve="zorder")
    location = lake.open().opened.location
    lance.dataset(location).alter_columns({"path": "delay", "name": "late"})
    assert cluster(lake, curve="zorder", columns=["flight", "late"]).status == "SKIPPED"
    ranges = {"late": Interval(0, 20)}
    renamed = lake.open().range(ranges)
    assert renamed.opened < renamed.total and differences(lake.root) == []
    rows = sorted_rows(renamed.to_table())
    lance.dataset(location).alter_columns({"path": "late", "data_type": pa.int64()})
    open_to_change(lake.root, "flights")  # records it, which reading does not
    widened = lake.open().range(ranges)
    assert sorted_rows(widened.to_table()) == rows and differences(lake.root) == []
    assert cluster(lake, curve="zorder", columns=["flight", "late"]).work.rows == 1000


def test_verify_finds_bounds_that_are_wrong_and_repair_forgets_them(lake: Lake) -> None:
    table_id = lake.table(row_keys=()).opened.entry.table_id
    append(lake, flights(300), 2)
    cluster(lake, curve="zorder")
    state = lake.store.table(table_id)
    file = next(iter(state.files))
    wrong = replace(file, cluster_max=file.cluster_min)
    lake.store.commit(table_id, [FilesReplaced((file.fragment_id,), (wrong,), state.lance_version)])
    [difference] = differences(lake.root)
    assert f"fragment {file.fragment_id} has values outside of the bounds that CLUSTER recorded" in difference
    assert not [step for step in repair(lake.store, lake.root, now=1 << 50, grace=0) if step.left]
    assert differences(lake.root) == []
    assert [each.clustering for each in lake.store.table(table_id).files].count("") == 1


def test_a_load_clusters_what_is_due_and_services_say_so(lake: Lake) -> None:
    table_id = lake.table(row_keys=()).opened.entry.table_id
    service = Service("CLUSTER", "AUTOMATIC", {"rows": 1000}, {**SMALL, "curve": "zorder"})
    create_service(lake.store, table_id, service)
    append(lake, flights(900), 3)
    assert run_due_services(lake.root, "flights") == []
    append(lake, flights(200, 900), 1)
    assert forecast(lake.open().opened, service.kind).startswith("arranges by zorder over flight, delay: 4 of 4 files")
    [done] = run_due_services(lake.root, "flights")
    assert (done.service, done.why, done.done.status) == ("CLUSTER", "1,100 rows written", "SUCCEEDED")
    check(lake, flights(1100))
    assert forecast(lake.open().opened, service.kind) == "nothing: all files are clustered by zorder over flight, delay"
    assert run_due_services(lake.root, "flights") == []


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize(
    ("rows", "parts", "options"),
    [
        (flights(300), 1, {"curve": "zorder"}),  # one file
        (flights(300).sort_by("flight"), 3, {"columns": ["flight"], "curve": "sort"}),  # in order already
        (pa.concat_tables([flights(1)] * 900), 3, {"curve": "hilbert"}),  # one point
    ],
    ids=["one file", "in order", "one point"],
)
@pytest.mark.parametrize("incremental", [True, False])
def test_a_table_that_cannot_be_better_is_left_unchanged(
    lake: Lake, rows: pa.Table, parts: int, options: dict[str, Any], *, incremental: bool
) -> None:
    lake.table(row_keys=())
    append(lake, rows, parts)
    size = lake.open().opened.state.files.bytes // parts + 1
    before = lake.open().opened
    for _ in range(2):
        done = cluster(lake, target_file_bytes=size, incremental=incremental, **options)
        assert done.status == "SKIPPED" and "as well as possible" in done.why and not done.work.portions
        after = lake.open().opened
        assert after.state.lance_version == before.state.lance_version
        assert [file.fragment_id for file in after.state.files] == [file.fragment_id for file in before.state.files]
        assert all(file.clustering for file in after.state.files)
        stored = {path.name for path in Path(after.location, "data").iterdir()}
        assert len(stored) == parts
    assert cluster(lake, target_file_bytes=size, **options).depth_after.clustered == parts
    check(lake, rows, options.get("columns", COLUMNS_BY))
