"""Changes of tables in a Spark session: batches and streams, and a copy of a table that a stream keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from deployer.errors import InvalidInput
from deployer.spark import apply_changes, register
from deployer.spark.reading.feed_readers import HAS_LIMITS
from deployer.tables.changes.feed import open_feed
from tests.spark.test_read import rows_of
from tests.tables.changes.random_changes import SCHEMA, RandomChanges, by_key
from tests.tables.lakes import Lake, flights

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SPLITS = ((20,), (40,))


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    register(spark)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    return spark


def keep_copy(session: SparkSession, lake: Lake, checkpoint: Path, **options: str) -> int:
    """Runs queries that apply all there is to `air.copy`; gives the number of their batches. Before release 4.2 a query
    that ends has one batch."""
    done = -1
    while done < (done := _run_once(session, lake, checkpoint, **options)) and not HAS_LIMITS:
        pass
    return done


def _run_once(session: SparkSession, lake: Lake, checkpoint: Path, **options: str) -> int:
    read = session.readStream.format("deployer").option("root", lake.root).options(**options).load("air.rows")
    writer = read.writeStream.foreachBatch(apply_changes(lake.root, "air.copy"))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return len(list((checkpoint / "commits").glob("[0-9]*")))


def forget_last_commit(checkpoint: Path) -> None:
    """Leaves the checkpoint as if the driver had died after the last batch was written, and before it was noted."""
    commits = checkpoint / "commits"
    last = max((each for each in commits.iterdir() if each.name.isdecimal()), key=lambda each: int(each.name))
    for each in commits.glob(f"*{last.name}*"):
        each.unlink()


def copied(lake: Lake, name: str) -> dict[int, Any]:
    return dict(by_key(lake.open(name).scan().to_table().to_pylist()))


def run(session: SparkSession, lake: Lake, checkpoint: Path, seed: int, rounds: int, **options: str) -> None:
    for name in ("rows", "copy"):
        lake.table(SCHEMA, ("id",), splits=SPLITS, name=name, unique=True)
    changes = RandomChanges(lake, seed)
    changes.add()
    for number in range(rounds):
        keep_copy(session, lake, checkpoint, **options)
        assert copied(lake, "copy") == copied(lake, "rows"), (seed, number)
        for _ in range(4):
            changes.step()
        if number % 2:
            changes.clean()
            forget_last_commit(checkpoint)
    keep_copy(session, lake, checkpoint, **options)
    assert copied(lake, "copy") == copied(lake, "rows"), seed


@pytest.mark.full
def test_a_stream_keeps_a_copy_equal_through_changes_and_restarts(
    session: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    run(session, lake, tmp_path / "checkpoint", 1, 3, since="snapshot", max_versions="3")


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_a_stream_keeps_a_copy_equal_for_long(session: SparkSession, lake: Lake, tmp_path: Path, seed: int) -> None:
    options = {"max_versions": "1"} if seed % 2 else {}
    run(session, lake, tmp_path / "checkpoint", seed, 8, since="0", **options)


def changes_of(session: SparkSession, lake: Lake, table: str, **options: str) -> DataFrame:
    return session.read.format("deployer").option("root", lake.root).options(**options).load(table)


def test_changes_are_read_as_frames(session: SparkSession, lake: Lake) -> None:
    lake.table()
    for start in (0, 20):
        lake.ingest(lake.file(flights(40, start)), mode="upsert", on=("carrier", "flight"))
    frame = changes_of(session, lake, "air.flights", since="0", partition_size="1")
    feed = open_feed(lake.open().opened, 0).to_table()
    assert frame.schema.names == feed.schema.names
    assert frame.groupBy("_change").count().collect() and len(rows_of(frame)) == feed.num_rows == 80
    counted = {(row["_commit_version"], row["_change"]): row["count"] for row in _counted(frame)}
    assert counted == {(2, "insert"): 40, (3, "update"): 20, (3, "insert"): 20}
    found = changes_of(session, lake, "air.flights", since="2", until="3", columns="flight").where("_change = 'update'")
    assert found.count() == 20


def _counted(frame: DataFrame) -> list[Any]:
    return frame.groupBy("_commit_version", "_change").count().collect()


def test_a_stream_tells_which_versions_are_gone(session: SparkSession, lake: Lake, tmp_path: Path) -> None:
    for name in ("rows", "copy"):
        lake.table(SCHEMA, ("id",), splits=SPLITS, name=name, unique=True)
    changes = RandomChanges(lake, 1)
    changes.add()
    changes.add()
    changes.clean()
    with pytest.raises(StreamingQueryException, match="the oldest version that changes can be read since is 3"):
        keep_copy(session, lake, tmp_path / "checkpoint", since="1", lease="none")


def test_a_stream_that_cannot_begin_ends_with_the_reason(session: SparkSession, lake: Lake, tmp_path: Path) -> None:
    lake.table()
    stream = session.readStream.format("deployer").option("root", lake.root).load("air.flights")
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException, match="the option `since` does not say from where") as raised:
        query.trigger(availableNow=True).start().awaitTermination()
    assert "another exception occurred" not in str(raised.value)


def test_changes_are_applied_by_unique_keys(lake: Lake) -> None:
    lake.table()
    with pytest.raises(InvalidInput, match="changes are applied by unique row keys, and the table has none"):
        apply_changes(lake.root, "air.flights")
