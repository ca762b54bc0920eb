"""Writes and streams of a Spark session: what Spark's own part adds to the halves of the writers."""

from __future__ import annotations

import datetime as dt
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import functions

from deployer.spark import arranged, register
from deployer.spark.source import BATCH_BYTES
from deployer.specs.types.arrow import arrow_schema
from deployer.state.log.updates import SetSchema
from deployer.tables.maintenance.collect.garbage import collect
from deployer.tables.open_table import open_to_change
from tests.services.test_due import attach
from tests.spark.test_writes import keyed, rows_in
from tests.spark.writes import spark_columns, uncommitted
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows
from tests.tables.test_types import COLUMNS, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

pytestmark = pytest.mark.spark


def frame(spark: SparkSession, lake: Lake, rows: pa.Table, partitions: int = 3) -> DataFrame:
    """The rows in so many partitions."""
    folder = lake.folder / f"rows-{len(list(lake.folder.iterdir()))}"
    folder.mkdir()
    size = -(-rows.num_rows // partitions)
    for place in range(partitions):
        pq.write_table(rows.slice(place * size, size), folder / f"{place}.parquet")
    return spark.read.schema(spark_columns(rows.schema)).parquet(str(folder)).repartition(partitions)


def to_table(lake: Lake, found: DataFrame, **options: str) -> DataFrameWriter:
    return found.write.format("deployer").option("root", lake.root).options(**options)


def test_batches_of_narrow_rows_are_not_measured(spark: SparkSession, lake: Lake) -> None:
    before = spark.conf.get(BATCH_BYTES, None)
    try:
        register(spark, narrow_rows=True)
        assert spark.conf.get(BATCH_BYTES) == "2147483647"
        lake.table()
        to_table(lake, frame(spark, lake, flights(40))).mode("append").save("air.flights")
        assert rows_in(lake) == sorted_rows(flights(40))
    finally:
        spark.conf.unset(BATCH_BYTES)
    register(spark)
    assert spark.conf.get(BATCH_BYTES, None) == before


def test_frames_are_appended_merged_and_put_in_place_of_others(spark: SparkSession, lake: Lake) -> None:
    register(spark)
    lake.table()
    for _ in range(2):
        to_table(lake, frame(spark, lake, flights(40)), jobId="a").mode("append").save("air.flights")
    assert rows_in(lake) == sorted_rows(flights(40))
    to_table(lake, frame(spark, lake, flights(40, 20)), upsert="true").mode("append").save("air.flights")
    assert rows_in(lake) == keyed(flights(60))
    read = spark.read.format("deployer").option("root", lake.root).load("air.flights")
    to_table(lake, read.where("flight < 500")).mode("overwrite").save("air.flights")  # of itself
    assert rows_in(lake) == [row for row in sorted_rows(flights(60)) if row["flight"] < 500]
    assert not uncommitted(lake) and not lake.open().opened.state.intents


def test_every_type_goes_through_spark(spark: SparkSession, lake: Lake) -> None:
    register(spark)
    schema = arrow_schema(COLUMNS)
    lake.table(schema, ())
    lake.ingest(lake.file_arrow(rows_of(schema)))
    read = spark.read.format("deployer").option("root", lake.root).option("nanoseconds", "truncate").load("air.flights")
    lake.table(schema, (), name="copy")
    to_table(lake, read).mode("append").save("air.copy")
    found = lake.open("copy").scan().to_table().sort_by("id")
    rows = rows_of(schema).sort_by("id")
    for name, field in zip(schema.names, schema, strict=True):
        if "ns" not in str(field.type):
            assert found[name].to_pylist() == rows[name].to_pylist(), field


def test_a_task_that_is_killed_and_runs_again_adds_its_rows_once(spark: SparkSession, lake: Lake) -> None:
    register(spark)
    lake.table()
    mark = str(lake.folder / "killed")

    @functions.udf("int")
    def killed_once(flight: int) -> int:
        if flight == (17 * 7919) % 1000 and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return flight

    rows = frame(spark, lake, flights(40), 2).withColumn("flight", killed_once("flight"))
    try:
        to_table(lake, rows, jobId="k").mode("append").save("air.flights")
    except (PySparkException, Py4JJavaError):  # a local session does not repeat tasks; the job does
        assert lake.open().count() == 0
        to_table(lake, rows, jobId="k").mode("append").save("air.flights")
    assert Path(mark).exists() and rows_in(lake) == sorted_rows(flights(40))
    await_tasks(spark)  # of the first job, which Spark does not end with it: what they write is left to `table gc`
    opened = open_to_change(lake.root, "flights")
    collect(opened, grace=dt.timedelta(0), now=time.time() + 60)
    opened.store.close()
    assert rows_in(lake) == sorted_rows(flights(40)) and not uncommitted(lake)


def await_tasks(spark: SparkSession) -> None:
    tracker = spark.sparkContext._jsc.sc().statusTracker()  # PySpark's own has no executors
    while any(each.numRunningTasks() for each in tracker.getExecutorInfos()):
        time.sleep(0.05)


def test_errors_name_what_is_wrong(spark: SparkSession, lake: Lake) -> None:
    register(spark)
    lake.table()
    with pytest.raises(PySparkException, match=r"no column 'dely' \(did you mean 'delay'\?\)"):
        renamed = frame(spark, lake, flights(5)).withColumnRenamed("delay", "dely")
        to_table(lake, renamed).mode("append").save("air.flights")
    with pytest.raises(PySparkException, match="5 rows cannot be loaded, so nothing was"):
        bad = frame(spark, lake, flights(5)).withColumn("delay", functions.lit(10**6))
        to_table(lake, bad).mode("append").save("air.flights")
    assert lake.open().count() == 0 and not uncommitted(lake)


def test_arranged_rows_write_a_file_into_each_leaf(spark: SparkSession, lake: Lake) -> None:
    register(spark)
    lake.table()
    found = arranged(frame(spark, lake, flights(400), 8), lake.root, "air.flights", 8)
    to_table(lake, found).mode("append").save("air.flights")
    assert rows_in(lake) == sorted_rows(flights(400))
    assert lake.open().opened.state.files.count <= 8 + 4


def stream(spark: SparkSession, lake: Lake, source: Path, checkpoint: Path) -> Any:
    """Runs a stream over all files of a folder, each of which is a batch."""
    found = spark.readStream.schema(spark_columns(FLIGHTS)).option("maxFilesPerTrigger", 1).parquet(str(source))
    writer = found.writeStream.format("deployer").option("root", lake.root)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start("air.flights")
    query.awaitTermination()  # of all that is there; a time would end the wait and not the query
    return query


def put(source: Path, number: int) -> None:
    """Puts a file for one batch, whole at once."""
    source.mkdir(exist_ok=True)
    pq.write_table(flights(20, 20 * number), source / f".{number}")
    (source / f".{number}").rename(source / f"{number}.parquet")
    os.utime(source / f"{number}.parquet", (1e9 + number, 1e9 + number))


def test_a_stream_resumes_and_repeats_no_batch(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    register(spark)
    lake.table()
    attach(lake, {"commits": 3})
    for number in range(4):
        put(tmp_path / "source", number)
    stream(spark, lake, tmp_path / "source", tmp_path / "checkpoint")
    assert rows_in(lake) == sorted_rows(flights(80))
    assert [run.status for run in lake.open().opened.state.runs.values()] == ["SUCCEEDED"]
    for left in (tmp_path / "checkpoint" / "commits").glob("*3*"):  # as if the driver had died after its last commit
        left.unlink()
    put(tmp_path / "source", 4)
    stream(spark, lake, tmp_path / "source", tmp_path / "checkpoint")
    assert rows_in(lake) == sorted_rows(flights(100)) and not uncommitted(lake)
    schema = FLIGHTS.append(pa.field("gate", pa.string(), nullable=False))
    lake.store.commit(lake.open().opened.entry.table_id, [SetSchema(schema.serialize().to_pybytes(), 1)])
    put(tmp_path / "source", 5)
    with pytest.raises(StreamingQueryException, match="column 'gate' is missing, and the table needs it"):
        stream(spark, lake, tmp_path / "source", tmp_path / "checkpoint")
