"""The data source `deployer` of Spark, for `spark.read.format("deployer")`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructType

from deployer.compute.spark.reused_workers import freeze_modules, freezes_modules
from deployer.errors import DeployerError, InvalidInput
from deployer.spark.exchange import exchanged
from deployer.spark.options import ReadOptions
from deployer.spark.reading.feed_readers import ChangesReader, ChangesStreamReader, RefusedStream
from deployer.spark.reading.feed_source import FeedSource, checked_range, feed_source
from deployer.spark.reading.filters import conditions
from deployer.spark.reading.partitions import TASKS, TaskPlan
from deployer.spark.reading.snapshot import Snapshot, selected, take_snapshot, tasks
from deployer.spark.reporting import reports_errors
from deployer.spark.type_mapping import exchange_type, spark_schema, spark_type
from deployer.spark.writing.writers import stream_writer, table_writer
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.types import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


# : Bytes of an Arrow batch at most. for any value but the largest number, Spark adds up all columns of a batch after
# each row
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
UNLIMITED = str(2**31 - 1)


def register(spark: SparkSession, *, narrow_rows: bool = False) -> None:
    """Registers `spark.read.format("deployer")` with the session, and lets Spark pass filters where its release
    supports it.

    `narrow_rows`: rows of DataFrames in this session have at most a few kilobytes. Arrow batches from Spark to Python
    then have 10,000 rows, whatever their size, which makes writes faster. The Python of the session's workers needs
    deployer, as in jobs that deployer starts.
    """
    spark.dataSource.register(_source_for(spark))
    if hasattr(datasource, "Filter"):  # since 4.1, where it is off by default
        spark.conf.set(PUSHDOWN, "true")
    if narrow_rows:
        spark.conf.set(BATCH_BYTES, UNLIMITED)


class DeployerDataSource(DataSource):
    """A table of a lake, at one version: the newest when the DataFrame is loaded, unless its options name another. With
    the option `since`, the changes of the table.

    `tasks` is the number of tasks of a small read.
    """

    tasks = TASKS
    _snapshot: Snapshot | None = None
    _feed: FeedSource | None = None

    @classmethod
    def name(cls) -> str:
        return "deployer"

    @freezes_modules
    @reports_errors
    def schema(self) -> StructType:
        """Returns the columns to read. Spark calls this once, when a DataFrame is loaded, and keeps this object for
        queries."""
        options = ReadOptions.of(self.options)
        if options.since is not None:
            self._feed = feed_source(options)
            return spark_schema(self._feed.columns)
        self._snapshot = take_snapshot(options)
        return spark_schema(self._snapshot.selected(options.columns))

    @freezes_modules
    @reports_errors
    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns the reader of one query. Raises InvalidInput for a user's `schema` that does not fit the table."""
        options = ReadOptions.of(self.options)
        if options.since is not None:
            checked_range(options, stream=False)
            feed = self._feed or feed_source(options)
            return ChangesReader(feed, _columns(feed.columns, schema, feed.address))
        snapshot = self._snapshot or take_snapshot(options)
        columns = _columns(snapshot.columns, schema, f"table/{snapshot.name}")
        return TableReader(options, snapshot, columns, self.tasks)

    @freezes_modules
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Returns the reader of a stream of changes; for invalid options, a reader that raises at the first call,
        because Spark 4.3 replaces errors of this method by its own."""
        try:
            return self._stream_reader(schema)
        except DeployerError as error:
            return RefusedStream(error)

    @reports_errors
    def _stream_reader(self, schema: StructType) -> DataSourceStreamReader:
        options = ReadOptions.of(self.options)
        checked_range(options, stream=True)
        feed = self._feed or feed_source(options)
        return ChangesStreamReader(feed, _columns(feed.columns, schema, feed.address))

    @freezes_modules
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Returns the writer of one DataFrame. Raises InvalidInput for columns and options that do not fit the
        table."""
        return table_writer(self.options, schema, overwrite=overwrite)

    @freezes_modules
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Returns the writer of one batch of a stream. Raises as `writer`."""
        return stream_writer(self.options, schema, overwrite=overwrite)


def _source_for(spark: SparkSession) -> type[DeployerDataSource]:
    """Returns the data source for a session. A local session has a task for each core, as for Spark's own files:
    starting a task takes as long as reading a few columns of 16 MB. A cluster may get more cores after the session
    begins."""
    context = getattr(spark, "sparkContext", None)  # sessions of Spark Connect have none
    if context is None or not context.master.startswith("local["):
        return DeployerDataSource
    # A class that no module has is sent to other processes with its attributes.
    return type(DeployerDataSource.__name__, (DeployerDataSource,), {"tasks": context.defaultParallelism})


def _columns(known: Sequence[Column], schema: StructType, address: str) -> tuple[Column, ...]:
    columns = selected(known, schema.names, address)
    for column, field in zip(columns, schema.fields, strict=True):
        if spark_type(column.type) != field.dataType or (column.nullable and not field.nullable):
            null = "" if column.nullable else " not null"
            raise InvalidInput(
                f"column {column.name!r} is not as the schema has it: {spark_type(column.type).simpleString()}{null}",
                where=address,
                remedy="leave `.schema(…)` out, name columns by the option `columns`, and cast them afterwards",
            )
    return columns


class TablePartition(InputPartition):
    """The input of one task."""

    def __init__(self, task: TaskPlan) -> None:
        super().__init__(None)
        self.task = task

    def __repr__(self) -> str:
        return f"TablePartition({len(self.task.pieces)} pieces, {self.task.bytes:,} bytes)"


class TableReader(DataSourceReader):
    """Reads the columns of a snapshot. Spark makes one for each query on the driver, and sends it to all tasks."""

    def __init__(
        self, options: ReadOptions, snapshot: Snapshot, columns: Sequence[Column], most_tasks: int = TASKS
    ) -> None:
        self._options, self._snapshot, self._columns = options, snapshot, tuple(columns)
        self._tasks = most_tasks
        self._conditions: tuple[str, ...] = ()

    @freezes_modules
    def pushFilters(self, filters: list[Any]) -> list[Any]:  # noqa: N802 (Spark's name)
        """Converts the filters that Lance can apply; Spark applies all of them again."""
        schema = arrow_schema(self._snapshot.columns)
        self._conditions = tuple(conditions(filters, schema, truncates=self._options.truncates))
        return filters

    @freezes_modules
    @reports_errors
    def partitions(self) -> Sequence[InputPartition]:
        """Returns the tasks, which have only fragments that can contain matching rows."""
        names = [column.name for column in self._columns]
        found = tasks(self._snapshot, self._options, names, self._conditions, self._tasks)
        return [TablePartition(task) for task in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the rows of one partition, in Arrow's batches."""
        assert isinstance(partition, TablePartition)  # noqa: S101 (of `partitions`)
        return self._batches(partition.task)

    def _batches(self, task: TaskPlan) -> Iterator[pa.RecordBatch]:
        target = pa.schema([pa.field(c.name, exchange_type(c.type), c.nullable) for c in self._columns])
        address, truncates = f"table/{self._snapshot.name}", self._options.truncates
        try:
            for batch in task.batches():
                yield exchanged(batch, target, address, truncates=truncates)
        except DeployerError as error:
            raise error.with_traceback(None) from None
        finally:
            freeze_modules()
