"""PySpark's writers of tables: for DataFrames, and for the batches of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from deployer.compute.spark.reused_workers import freezes_modules
from deployer.errors import DeployerError, InvalidInput
from deployer.spark.type_mapping import column_of, exchange_type
from deployer.spark.writing.finish import Write
from deployer.spark.writing.options import WriteOptions
from deployer.spark.writing.plan import WritePlan, of_batch, plan_write
from deployer.spark.writing.python_rows import row_batches
from deployer.spark.writing.remedies import reports_in_options
from deployer.spark.writing.task import TaskMessage, write_task

if TYPE_CHECKING:
    from collections.abc import Mapping

QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"  #: Spark's local properties of a stream's tasks


class TableWriter(DataSourceArrowWriter):
    """Writes one DataFrame. Spark makes one on the driver and sends it to all tasks."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    @freezes_modules
    @reports_in_options
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Writes the rows of one task, as files that are not committed yet."""
        return write_task(self._plan, iterator, _partition())

    @freezes_modules
    @reports_in_options
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commits the rows of all tasks as one version, or none. Spark calls `abort` where it raises."""
        write = self._write()
        if write.commit(_of_tasks(messages)) is not None and not self._plan.is_done:
            write.run_services()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes all files that tasks wrote, also those of tasks that failed."""
        self._write().abort()

    def _write(self) -> Write:
        assert self._plan.job_id is not None  # noqa: S101 (only batches of streams have none)
        return Write(self._plan, self._plan.job_id, bad_rows=self._plan.options.bad_rows)


class _StreamWriter:
    """Writes the batches of a stream. Spark makes one for each batch on the driver, and another one to commit it.

    A batch is identified by its number and the id of its query, which Spark stores in the checkpoint. Spark passes them
    only to tasks.
    """

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    @freezes_modules
    @reports_in_options
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessage:
        """Writes the rows of one task, as files that are not committed yet."""
        query, batch = _batch_of_task()
        return write_task(of_batch(self._plan, query, batch), iterator, _partition(), query)

    @freezes_modules
    @reports_in_options
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Commits a batch once, even if Spark repeats it."""
        found = _of_tasks(messages)
        if not found:
            return
        write = self._write(found[0].owner, batchId)
        if write.commit(found) is not None:
            write.run_services()

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 (Spark's name)
        """Removes the files of a batch that failed. Tasks that fail remove their own; files of killed tasks are removed
        with the next attempt of the batch, if no task sent a message."""
        found = _of_tasks(messages)
        if found:
            self._write(found[0].owner, batchId).abort()

    def _write(self, query: str, batch: int) -> Write:
        folder = self._plan.options.bad_rows
        bad_rows = None if folder is None else f"{folder.rstrip('/')}/{query}-{batch}.jsonl"
        plan = of_batch(self._plan, query, batch)
        return Write(plan, f"stream-{query}-{batch}", query, bad_rows, all_may_be_bad=True)


class RowStreamWriter(_StreamWriter, DataSourceStreamWriter):
    """Converts Spark's rows to Arrow batches; release 4.0 has no Arrow batches for streams."""

    def __init__(self, plan: WritePlan, schema: StructType) -> None:
        super().__init__(plan)
        self._schema = schema

    def write(self, iterator: Iterator[Any]) -> TaskMessage:
        """Writes the rows of one task, as files that are not committed yet."""
        return super().write(row_batches(iterator, self._schema, columns_from_spark(self._schema)))


if hasattr(datasource, "DataSourceStreamArrowWriter"):  # since 4.1

    class ArrowStreamWriter(_StreamWriter, datasource.DataSourceStreamArrowWriter):
        """Takes Arrow's batches from Spark."""


@reports_in_options
def table_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> TableWriter:
    """Returns the writer of one DataFrame. Raises as `plan_write`."""
    return TableWriter(plan_write(WriteOptions.of(options, overwrite=overwrite), columns_from_spark(schema)))


@reports_in_options
def stream_writer(options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> DataSourceStreamWriter:
    """Returns the writer of one batch of a stream. Raises as `plan_write`."""
    given = WriteOptions.of(options, overwrite=overwrite, stream=True)
    plan = plan_write(given, columns_from_spark(schema), stream=True)
    arrow = hasattr(datasource, "DataSourceStreamArrowWriter")
    return ArrowStreamWriter(plan) if arrow else RowStreamWriter(plan, schema)


def columns_from_spark(schema: StructType) -> pa.Schema:
    """Returns the columns with the Arrow types in which Spark gives them. Raises InvalidInput for types tables cannot
    have."""
    for field in schema.fields:
        if "variant" in field.dataType.simpleString():
            raise InvalidInput(
                f"column {field.name!r} has Spark's type {field.dataType.simpleString()}, which is not written",
                remedy="write it as JSON: to_json(column)",
            )
    return pa.schema([pa.field(f.name, exchange_type(column_of(f).type), f.nullable) for f in schema.fields])


def _of_tasks(messages: Sequence[WriterCommitMessage | None]) -> list[TaskMessage]:
    return [each for each in messages if isinstance(each, TaskMessage)]


def _partition() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _batch_of_task() -> tuple[str, int]:
    """Returns the id of the task's query, and the number of its batch."""
    context = TaskContext.get()
    query, batch = (context.getLocalProperty(name) if context else None for name in (QUERY, BATCH))
    if not query or not batch:
        raise DeployerError(
            "Spark does not give a task its query and batch, so its rows cannot be written exactly once",
            remedy="write the stream with `foreachBatch`, and each batch as a DataFrame with a `job_id`",
        )
    return query, int(batch)
