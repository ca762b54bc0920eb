"""What a reading by Spark opens, found out without Spark: options, versions, leases, filters and tasks."""

from __future__ import annotations

import datetime as dt
import pickle
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as ds

from deployer.errors import DeployerError, InvalidInput, NotFound
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.compact import compact_table
from deployer.spark.options import OPTIONS, ReadOptions
from deployer.spark.reading.filters import conditions
from deployer.spark.reading.partitions import Piece, TaskPlan, task_plans
from deployer.spark.reading.snapshot import take_snapshot, tasks
from deployer.spark.source import DeployerDataSource, TablePartition, TableReader
from deployer.state.model.files.data_file import File
from deployer.tables.read.predicate import KeyPredicate
from deployer.tables.read.scan_plan import Condition, ScanPlan
from tests.projects import REPOSITORY
from tests.tables.lakes import FLIGHTS, Lake, filled_lake, flights, sorted_rows


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """`air.flights` with 80 rows in four leaves, of two files each."""
    return filled_lake(tmp_path, load_twice)


def load_twice(lake: Lake) -> None:
    lake.table()
    for start in (0, 40):
        lake.ingest(lake.file(flights(40, start)))


def source(lake: Lake, **options: str) -> DeployerDataSource:
    return DeployerDataSource({"root": lake.root, "path": "air.flights", **options})


def reader(lake: Lake, **options: str) -> TableReader:
    """The reader of a query, made as Spark makes it: the source travels between processes after `schema`."""
    loaded = source(lake, **options)
    schema = loaded.schema()
    sent: TableReader = pickle.loads(pickle.dumps(loaded)).reader(schema)  # noqa: S301
    return sent


def read(reader: TableReader) -> list[dict[str, Any]]:
    parts = [pickle.loads(pickle.dumps(part)) for part in reader.partitions()]  # noqa: S301
    return sorted_rows(pa.Table.from_batches(batch for part in parts for batch in reader.read(part)))


def opened(reader: TableReader) -> int:
    """The fragments that are opened."""
    parts = [part for part in reader.partitions() if isinstance(part, TablePartition)]
    return len({piece.fragment_id for part in parts for piece in part.task.pieces})


def expected(rows: pa.Table) -> list[dict[str, Any]]:
    at = rows.schema.get_field_index("at")
    return sorted_rows(rows.set_column(at, "at", rows["at"].cast(pa.timestamp("us", "UTC"))))


def test_all_rows(lake: Lake) -> None:
    assert read(reader(lake)) == expected(flights(80))


@pytest.mark.parametrize(
    ("options", "rows", "files"),
    [
        ({"keys": "UA"}, 16, 2),
        ({"keys": "UA\nAA"}, 32, 4),
        ({"range": "carrier=B7..DK"}, 0, 2),
        ({"range": "carrier=UA..\nflight=..500"}, 7, 2),
        ({"where": "carrier = 'UA' AND delay > 10"}, 11, 2),
        ({"where": "delay > 10"}, 59, 8),
        ({"keys": "UA", "where": "delay > 10", "columns": "flight"}, 11, 2),
    ],
    ids=str,
)
def test_only_fragments_that_can_match_are_opened(lake: Lake, options: dict[str, str], rows: int, files: int) -> None:
    found = reader(lake, **options)
    assert (len(read(found)) if rows else sum(b.num_rows for p in found.partitions() for b in found.read(p))) == rows
    assert opened(found) <= files


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colums": "a"}, "there is no option `colums`; did you mean `columns`?"),
        ({"filter": "a"}, "there is no option `filter`; did you mean `where`?"),
        ({"zzz": "a"}, "there is no option `zzz`; use `root`, `path`"),
        ({"table": "a"}, r'there is no option `table`; name the table in load: .load\("database.table"\)'),
        ({"root": ""}, "the option `root` is missing"),
        ({"path": "air.flight"}, "there is no table 'air.flight'; did you mean 'air.flights'?"),
        ({"columns": "carrier,delya"}, "table/air.flights: there is no column 'delya'; did you mean 'delay'?"),
        ({"columns": "carrier,carrier"}, "names 'carrier' twice"),
        ({"columns": "carrier,"}, "columns: `carrier,` has an empty name"),
        ({"version": "99"}, "there is no version 99"),
        ({"version": "new"}, "the option `version` 'new' is neither a version nor a time"),
        ({"version": "1", "time": "2026-01-01"}, "exclude each other"),
        ({"time": "soon"}, "the option `time` is 'soon', which is not a time"),
        ({"time": "2000-01-01"}, "table/air.flights|has no version"),
        ({"range": "delay"}, "the option `range` 'delay' is not a range"),
        ({"keys": "UA,1,2"}, "the option `keys` 'UA,1,2' has 3 values"),
        ({"keys": "UA,x"}, "column 'flight': 'x' is not a value of int32"),
        ({"where": "delay >"}, "is not one SQL expression"),
        ({"where": "dealy > 1"}, "table/air.flights: there is no column 'dealy'; did you mean 'delay'?"),
        ({"lease": "soon"}, "lease: 'soon' is not a valid duration; write it as 90s, 5m or 1h"),
        ({"nanoseconds": "round"}, "the option `nanoseconds` is 'round'; use error or truncate"),
        ({"partition_size": "many"}, "the option `partition_size`: 'many' is not a valid size"),
        ({"partition_size": "0"}, "the option `partition_size`: 0 is out of range"),
    ],
    ids=str,
)
def test_wrong_options(lake: Lake, options: dict[str, str], message: str) -> None:
    with pytest.raises(DeployerError, match=message):
        source(lake, **options).schema()
    assert not lake.open().opened.state.savepoints or "path" not in options


def test_names_of_options_are_in_any_letter_case() -> None:
    assert ReadOptions.of({"ROOT": "s3://a/b", "Path": "c.d"}) == ReadOptions("s3://a/b", "c.d")


def test_the_page_has_every_option() -> None:
    page = (REPOSITORY / "docs" / "spark.md").read_text(encoding="utf-8")
    assert [name for name in OPTIONS if f"| `{name}` |" not in page] == []


def test_a_dataframe_stays_at_the_version_it_was_loaded_at(lake: Lake) -> None:
    loaded = reader(lake)
    lake.ingest(lake.file(flights(20, 80)))
    compact_table(lake.root, "flights")
    clean_table(lake.root, "flights", {"older_than": "0h"})
    assert read(loaded) == expected(flights(80))
    assert read(reader(lake)) == expected(flights(100))


def test_an_older_version_still_opens_only_what_can_match(lake: Lake) -> None:
    loaded = reader(lake, keys="UA")
    lake.ingest(lake.file(flights(20, 80)))
    compact_table(lake.root, "flights")
    assert (opened(loaded), len(read(loaded))) == (2, 16)


def test_without_a_lease_nothing_is_written_and_clean_may_remove_the_version(lake: Lake) -> None:
    before = lake.open().opened.state.version
    loaded = reader(lake, lease="none")
    assert read(loaded) == expected(flights(80))
    assert lake.open().opened.state.version == before
    lake.ingest(lake.file(flights(20, 80)))
    clean_table(lake.root, "flights", {"older_than": "0h"})
    with pytest.raises(NotFound, match="the dataset has no version 3 any more"):
        read(loaded)


def test_readers_of_one_version_share_a_lease(lake: Lake) -> None:
    for _ in range(3):
        read(reader(lake))
    [lease] = lake.open().opened.state.savepoints.values()
    assert lease.expires_at is not None
    assert dt.timedelta(hours=1) <= dt.timedelta(milliseconds=lease.expires_at - lease.at) <= dt.timedelta(hours=2)
    reader(lake, lease="3h")  # the first one is too short for it
    assert len(lake.open().opened.state.savepoints) == 2


def test_leases_that_are_over_go_with_the_next(lake: Lake) -> None:
    reader(lake, lease="0s")
    lake.ingest(lake.file(flights(20, 80)))
    reader(lake)
    [lease] = lake.open().opened.state.savepoints.values()
    assert lease.lance_version == lake.open().opened.state.lance_version


def test_a_query_extends_a_lease_that_ends_soon_also_when_the_version_is_old(lake: Lake) -> None:
    loaded = reader(lake, lease="1h")
    first = lake.open().opened.state.savepoints
    lake.ingest(lake.file(flights(20, 80)))
    longer = TableReader(replace(loaded._options, lease=dt.timedelta(hours=3)), loaded._snapshot, loaded._columns)
    assert read(longer) == expected(flights(80))
    held = lake.open().opened.state.savepoints
    assert (len(first), len(held)) == (1, 2)
    assert {each.lance_version for each in held.values()} == {loaded._snapshot.lance_version}


def test_a_version_that_is_named_is_held_too(lake: Lake) -> None:
    first = lake.open().history()[1]
    loaded = reader(lake, version=str(first.version))
    lake.ingest(lake.file(flights(20, 80)))
    compact_table(lake.root, "flights")
    clean_table(lake.root, "flights", {"older_than": "0h"})
    assert read(loaded) == expected(flights(40))
    assert opened(reader(lake, version=str(first.version), keys="UA")) == 1


@pytest.mark.parametrize("option", ["version", "time"])
def test_an_older_version(lake: Lake, option: str) -> None:
    second, first = lake.open().history()[:2]
    assert (
        len(read(reader(lake, **{option: str(first.version) if option == "version" else first.at.isoformat()}))) == 40
    )
    assert second.version > first.version


def test_a_table_that_was_deleted_since(lake: Lake) -> None:
    from deployer.tables.admin.deletion import delete_table

    loaded = reader(lake)
    entry = lake.open().opened.entry
    delete_table(lake.store, lake.root, entry.table_id, allow_destroy=True)  # the lease does not hold it
    with pytest.raises(NotFound, match=r"the table air\.flights was deleted since it was loaded"):
        loaded.partitions()


def test_a_schema_of_the_users_selects_columns(lake: Lake) -> None:
    from pyspark.sql.types import IntegerType, LongType, StructType

    wanted = StructType().add("flight", IntegerType(), nullable=False)
    made = source(lake).reader(wanted)
    assert isinstance(made, TableReader)
    assert read(made) == sorted_rows(flights(80).select(["flight"]))
    with pytest.raises(InvalidInput, match="column 'flight' is not as the schema has it: int not null"):
        source(lake).reader(StructType().add("flight", LongType()))


HAS_FILTERS = hasattr(ds, "Filter")  #: new in release 4.1


def filters() -> list[tuple[ds.Filter, str | None]]:
    """Filters of Spark, and the condition of each."""
    return [
        (ds.EqualTo(("carrier",), "UA"), "`carrier` = 'UA'"),
        (ds.EqualTo(("carrier",), "U'A"), "`carrier` = 'U''A'"),
        (ds.EqualNullSafe(("delay",), None), "`delay` IS NULL"),
        (ds.IsNotNull(("delay",)), "`delay` IS NOT NULL"),
        (ds.In(("flight",), (1, 2)), "`flight` IN (1, 2)"),
        (ds.In(("flight",), tuple(range(2000))), None),
        (ds.GreaterThan(("flight",), 2**40), None),
        (ds.LessThanOrEqual(("price",), Decimal("1.50")), "`price` <= CAST('1.50' AS DECIMAL(8, 2))"),
        (ds.LessThan(("price",), Decimal("1.555")), None),
        (ds.StringStartsWith(("carrier",), "U"), "`carrier` >= 'U' AND `carrier` < 'V'"),
        (ds.StringStartsWith(("carrier",), "ü"), "`carrier` >= 'ü'"),
        (ds.StringContains(("carrier",), "U"), None),
        (ds.EqualTo(("x", "y"), 1), None),
        (ds.Not(ds.EqualTo(("carrier",), "UA")), None),
    ]


@pytest.mark.parametrize(("given", "sql"), filters() if HAS_FILTERS else [], ids=str)
def test_filters(given: ds.Filter, sql: str | None) -> None:
    assert list(conditions([given], FLIGHTS)) == ([sql] if sql else [])


@pytest.mark.skipif(not HAS_FILTERS, reason="filters are new in 4.1")
def test_filters_of_times_and_numbers() -> None:
    schema = pa.schema(
        [
            pa.field("s", pa.timestamp("s", "UTC")),
            pa.field("ns", pa.timestamp("ns")),
            pa.field("x", pa.float64()),
            pa.field("u", pa.uint64()),
        ]
    )
    whole, broken = dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, 0, 0, 0, 500_000, dt.UTC)
    [sql] = conditions([ds.LessThan(("s",), whole), ds.LessThan(("s",), broken)], schema)
    assert sql == "`s` < arrow_cast(1577836800, 'Timestamp(Second, Some(\"UTC\"))')"
    ns = ds.GreaterThan(("ns",), whole.replace(tzinfo=None))
    assert len(list(conditions([ns], schema))) == 1
    assert list(conditions([ns, ds.GreaterThan(("x",), 1.0)], schema, truncates=True)) == []
    assert list(conditions([ds.EqualTo(("u",), Decimal(2**64 - 1))], schema)) == [f"`u` = {2**64 - 1}"]


@pytest.mark.skipif(not HAS_FILTERS, reason="filters are new in 4.1")
def test_filters_open_fewer_fragments(lake: Lake) -> None:
    found = reader(lake)
    passed = [ds.EqualTo(("carrier",), "UA"), ds.GreaterThan(("delay",), 10)]
    assert found.pushFilters(passed) == passed  # Spark judges them again
    assert (opened(found), len(read(found))) == (2, 11)


def plan(fragments: int, **changes: Any) -> ScanPlan:
    return ScanPlan("table/a.b", "", 1, tuple(range(fragments)), fragments, ("c",), KeyPredicate((), ()), **changes)


def pieces(found: list[TaskPlan]) -> list[list[int]]:
    return [[piece.fragment_id for piece in task.pieces] for task in found]


def test_tasks_have_neighbouring_keys_and_equal_bytes() -> None:
    files = [File(i, "xy"[i % 2], 10, 100, min_key=bytes([9 - i])) for i in range(8)]
    assert pieces(task_plans(plan(8), files, ["x", "y"], 200)) == [[6, 4], [2, 0], [7, 5], [3, 1]]


def test_bytes_are_balanced_when_files_differ() -> None:
    sizes = [1000, *[10] * 20, 500, 500]
    files = [File(i, None, 10, size) for i, size in enumerate(sizes)]
    found = task_plans(plan(len(sizes), condition=Condition("c > 1", "c > 1")), files, [], 500)
    assert [task.bytes for task in found] == [1000, 100, 600, 500]
    assert [each for task in pieces(found) for each in task] == list(range(len(sizes)))


def test_a_large_file_is_divided_by_rows_where_nothing_is_left_out() -> None:
    [first, second, last] = task_plans(plan(1), [File(0, None, 10, 300)], [], 100)
    assert [task.pieces for task in (first, second, last)] == [
        (Piece(0, 100, 0, 4),),
        (Piece(0, 100, 4, 4),),
        (Piece(0, 100, 8, None),),
    ]
    assert pieces(task_plans(plan(1, condition=Condition("c > 1", "c > 1")), [File(0, None, 10, 300)], [], 100)) == [
        [0]
    ]


@pytest.mark.parametrize(
    ("megabytes", "most", "found"),
    [(10, 64, 1), (140, 64, 4), (140, 2, 2), (1400, 2, 11), (64 << 10, 64, 512)],
    ids=["little", "on a cluster", "with two cores", "much with two cores", "much on a cluster"],
)
def test_tasks_are_many_enough_for_all_cores_and_not_small(megabytes: int, most: int, found: int) -> None:
    files = [File(0, None, 1 << 20, megabytes << 20)]
    assert len(task_plans(plan(1), files, [], most=most)) == found


def test_nothing_to_read_is_one_task() -> None:
    [task] = task_plans(plan(0), [], [])
    assert list(task.batches()) == []


def test_parts_of_files_are_all_rows(lake: Lake) -> None:
    options = ReadOptions.of({"root": lake.root, "path": "air.flights", "partition_size": "600"})
    found = tasks(take_snapshot(options), options, ["carrier", "flight"], [])
    assert len(found) > 8
    rows = pa.Table.from_batches(batch for task in found for batch in task.batches())
    assert sorted_rows(rows) == sorted_rows(flights(80).select(["carrier", "flight"]))


def test_wide_rows_come_in_small_batches() -> None:
    [task] = task_plans(plan(1), [File(0, None, 10, 100 << 20)], [], 1 << 30)
    assert task.batch_rows == 1
