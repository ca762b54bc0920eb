"""Reading tables by `spark.read.format("deployer")`, compared with what pandas and Arrow read."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
import pyarrow as pa
import pytest

from deployer.spark import register
from deployer.spark.source import DeployerDataSource, _source_for
from deployer.spark.type_mapping import column_of
from deployer.specs.model import Storage
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.parser import parse_type
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.types.types import Column, Scalar
from tests.projects import REPOSITORY
from tests.spark.expected import as_spark, of_pandas
from tests.tables.lakes import Lake, flights
from tests.values import ALSO_STORED, array, nullable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ROWS = 120
TYPES = [*(row.text for row in TYPE_ROWS), *ALSO_STORED]
COLUMNS = (
    Column("id", Scalar("int64"), False),
    *(Column(f"c{i}", parse_type(text)) for i, text in enumerate(TYPES)),
)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """`air.flights` with 80 rows in four leaves, of two files each."""
    lake = Lake(tmp_path)
    lake.table()
    for start in (0, 40):
        lake.ingest(lake.file(flights(40, start)))
    return lake


def load(session: SparkSession, lake: Lake, table: str = "air.flights", **options: str) -> DataFrame:
    return session.read.format("deployer").option("root", lake.root).options(**options).load(table)


def rows_of(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def test_a_table_is_read_and_filtered(session: SparkSession, lake: Lake) -> None:
    frame = load(session, lake)
    lake.ingest(lake.file(flights(20, 80)))
    assert frame.count() == 80
    table = lake.open().scan("carrier = 'UA' AND delay > 10", at=3).to_table()
    found = frame.where("carrier = 'UA' AND delay > 10 AND price IS NOT NULL")
    assert sorted(found.toPandas()["flight"]) == sorted(table["flight"].to_pylist())
    with pytest.raises(Exception, match=r"deployer\.errors\.InvalidInput: .*there is no column 'carier'; did you mean"):
        load(session, lake, columns="carier")


@pytest.fixture
def every_type(tmp_path: Path) -> Lake:
    """`air.flights` with a column of every type, in two leaves."""
    lake = Lake(tmp_path)
    schema = arrow_schema(COLUMNS)
    lake.table(schema, ("id",), splits=((60,),), storage=Storage(data_storage_version="2.2"))
    values = [pa.array(range(ROWS), pa.int64())]
    values += [
        array(field.type, [nullable(column, i) for i in range(ROWS)])
        for column, field in zip(COLUMNS[1:], list(schema)[1:], strict=True)
    ]
    lake.ingest(lake.file_arrow(pa.Table.from_arrays(values, schema=schema)))
    return lake


def test_every_type_is_in_pandas_as_pandas_reads_it(session: SparkSession, every_type: Lake) -> None:
    found = load(session, every_type).toPandas().sort_values("id")
    own = every_type.open().scan().to_table().sort_by("id")
    for column, text in zip(COLUMNS, ["int64", *TYPES], strict=True):
        theirs = own.select([column.name]).to_pandas()[column.name]
        expected = [of_pandas(column.type, each) for each in theirs]
        assert [of_pandas(column.type, each) for each in found[column.name]] == expected, text
        assert text in ("null", "list<null>") or any(expected), text


def test_every_type_has_the_values_that_arrow_reads(session: SparkSession, every_type: Lake) -> None:
    lake = every_type
    frame = load(session, lake)
    assert tuple(column_of(field) for field in frame.schema.fields) == COLUMNS
    found = sorted(frame.collect(), key=lambda row: row["id"])
    assert len(found) == ROWS
    for place, (column, text) in enumerate(zip(COLUMNS, ["int64", *TYPES], strict=True)):
        if place:
            own = [_collected(as_spark(column.type, nullable(column, i))) for i in range(ROWS)]
            assert [_plain(row[place]) for row in found] == own, text


def _collected(value: Any) -> Any:
    """Returns a value of Arrow as `collect` has it: instants as local times of this process."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    if isinstance(value, dict):
        return {name: _collected(each) for name, each in value.items()}
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):
            return {_collected(key): _collected(each) for key, each in value}
        return [_collected(each) for each in value]
    return value


def _plain(value: Any) -> Any:
    from pyspark.sql import Row

    if isinstance(value, Row):
        return {name: _plain(each) for name, each in value.asDict().items()}
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()} or []
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return bytes(value) if isinstance(value, bytearray) else value


def test_numbers_that_are_none_and_ends_of_ranges(session: SparkSession, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    rows = pa.table(
        {
            "id": pa.array([0, 1, 2, 3, 4], pa.int64()),
            "x": pa.array([float("nan"), float("inf"), -float("inf"), -0.0, None], pa.float64()),
            "u": pa.array([0, 2**64 - 1, 1, 2, None], pa.uint64()),
            "i": pa.array([-(2**63), 2**63 - 1, 0, 1, None], pa.int64()),
            "d": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1582, 10, 10), dt.date(1970, 1, 1), None]),
        }
    )
    schema = rows.schema.set(0, rows.schema.field("id").with_nullable(False))
    lake.table(schema, ("id",), splits=())
    lake.ingest(lake.file_arrow(rows.cast(schema)))
    frame = load(session, lake).orderBy("id")
    own = lake.open().scan().to_table().sort_by("id").to_pylist()
    found = [row.asDict() for row in frame.collect()]
    assert repr([row["x"] for row in found]) == repr([row["x"] for row in own])
    for name in ("u", "i", "d"):
        assert [row[name] for row in found] == [row[name] for row in own]
    # as Spark judges them, not as Lance does
    assert [row.id for row in frame.where("x > 5").collect()] == [0, 1]
    assert [row.id for row in frame.where("x = 0.0").collect()] == [3]
    assert [row.id for row in frame.where("u = 18446744073709551615").collect()] == [1]
    assert [row.id for row in frame.where("i < -5").collect()] == [0]


def test_instants_are_shown_in_the_zone_of_the_session(session: SparkSession, lake: Lake) -> None:
    frame = load(session, lake)
    first = "cast(min(at) as string)"
    assert frame.selectExpr(first).first()[0].startswith("2013-05-01 12:00:00")  # type: ignore[index]
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert frame.selectExpr(first).first()[0].startswith("2013-05-01 21:00:00")  # type: ignore[index]
        below = frame.where("at < timestamp'2013-05-01 21:00:00.00001'")
        assert below.count() == 10
    finally:
        session.conf.set("spark.sql.session.timeZone", "UTC")


def test_all_scans_of_a_query_read_one_version(session: SparkSession, lake: Lake) -> None:
    frame = load(session, lake)
    frame.count()
    lake.ingest(lake.file(flights(20, 80)))
    assert frame.alias("a").join(frame.alias("b"), ["carrier", "flight"]).count() == 80
    assert frame.union(load(session, lake)).count() == 180


@pytest.mark.parametrize(
    "condition",
    [
        "carrier IN ('UA', 'AA')",
        "carrier LIKE 'U%'",
        "carrier = 'UA' AND (flight < 100 OR flight > 900)",
        "delay IS NULL",
        "NOT (delay <=> 5)",
        "price BETWEEN 1.5 AND 20.25",
        "at >= timestamp'2013-05-01 12:00:00.00003'",
        "at > '2013-05-01'",
        "flight % 2 = 0",
    ],
)
def test_filters_select_the_rows_that_spark_selects(session: SparkSession, lake: Lake, condition: str) -> None:
    copied = session.createDataFrame(load(session, lake).collect(), load(session, lake).schema)
    expected = rows_of(copied.where(condition))
    assert expected
    assert rows_of(load(session, lake).where(condition)) == expected


def test_a_local_session_has_a_task_for_each_core(session: SparkSession, lake: Lake) -> None:
    cores = session.sparkContext.defaultParallelism
    found = _source_for(session)
    assert found.tasks == cores and found.name() == "deployer"
    sent = cloudpickle.loads(cloudpickle.dumps(found))  # as Spark sends it to the processes that plan
    assert sent.tasks == cores and issubclass(sent, DeployerDataSource)


def test_sql_over_a_view(session: SparkSession, lake: Lake) -> None:
    load(session, lake, columns="carrier,delay").createOrReplaceTempView("flights")
    found = session.sql("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY carrier").collect()
    assert [tuple(row) for row in found] == [("9E", 16), ("AA", 16), ("B6", 16), ("DL", 16), ("UA", 16)]


def test_nothing_matches(session: SparkSession, lake: Lake) -> None:
    assert load(session, lake, keys="ZZ").collect() == []


@pytest.mark.own_session
def test_from_s3(on_s3: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path, on_s3)
    lake.table()
    lake.ingest(lake.file(flights(40)))
    command = [sys.executable, "-m", "tests.spark.s3_program", on_s3, "air.flights"]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["8"]
