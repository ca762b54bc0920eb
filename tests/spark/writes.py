"""Writes without Spark: both halves of the writers, called as Spark calls them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row
from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.sql.types import StructType

from deployer.spark.exchange import exchanged
from deployer.spark.type_mapping import exchange_type, spark_schema
from deployer.spark.writing import writers
from deployer.spark.writing.task import TaskMessage
from deployer.specs.types.arrow import columns_of
from tests.tables.lakes import FLIGHTS, Lake, flights


def as_spark(rows: pa.Table) -> tuple[StructType, list[pa.RecordBatch]]:
    """The rows as Spark has them: its schema, and Arrow's batches."""
    columns = columns_of(rows.schema)
    target = pa.schema([pa.field(each.name, exchange_type(each.type), each.nullable) for each in columns])
    return spark_columns(rows.schema), [exchanged(batch, target, "the rows") for batch in rows.to_batches()]


def spark_columns(schema: pa.Schema) -> StructType:
    """The columns as Spark has them."""
    return spark_schema(columns_of(schema))


def as_stream_rows(writer: Any, rows: pa.Table) -> Iterator[Any]:
    """The rows as Spark gives them to a stream's writer: Arrow's batches, and from release 4.0 rows of Python's."""
    columns, batches = as_spark(rows)
    return python_rows(columns, batches) if isinstance(writer, writers.RowStreamWriter) else iter(batches)


def python_rows(columns: StructType, batches: Sequence[pa.RecordBatch]) -> Iterator[Row]:
    """The rows of Arrow's batches as Spark's rows have them in Python."""
    converters = [ArrowTableToRowsConversion._create_converter(field.dataType) for field in columns.fields]
    for batch in batches:
        for row in batch.to_pylist():
            yield Row(*(convert(value) for convert, value in zip(converters, row.values(), strict=True)))


class Write:
    """A write of Arrow rows, each table of which is one task's."""

    def __init__(self, lake: Lake, tasks: Sequence[pa.Table], *, overwrite: bool = False, **options: Any) -> None:
        schema = tasks[0].schema if tasks else FLIGHTS
        self.tasks = tasks
        self.writer = writers.table_writer(_options(lake, options), spark_columns(schema), overwrite=overwrite)

    def attempt(self, number: int) -> TaskMessage:
        """One attempt of a task."""
        with in_task(number):
            return self.writer.write(iter(as_spark(self.tasks[number])[1]))

    def run(self) -> None:
        """All tasks once, and the commit; `abort` where that raises, as Spark does it."""
        messages = [self.attempt(number) for number in range(len(self.tasks))]
        try:
            self.writer.commit([*messages])
        except BaseException:
            self.writer.abort([*messages])
            raise


class Stream:
    """A stream whose batches the test numbers. Each half of a batch has a writer of its own, as with Spark."""

    def __init__(self, lake: Lake, schema: pa.Schema = FLIGHTS, query: str = "q", **options: Any) -> None:
        self.options, self.schema, self.query = _options(lake, options), schema, query

    def writer(self) -> Any:
        return writers.stream_writer(self.options, spark_columns(self.schema), overwrite=False)

    def tasks(self, batch: int, tables: Sequence[pa.Table]) -> list[TaskMessage]:
        writer, messages = self.writer(), []
        for number, table in enumerate(tables):
            with in_task(number, self.query, batch):
                messages.append(writer.write(as_stream_rows(writer, table)))
        return messages

    def run(self, batch: int, *tables: pa.Table) -> None:
        messages = self.tasks(batch, tables)
        try:
            self.writer().commit([*messages], batch)
        except BaseException:
            self.writer().abort([*messages], batch)
            raise


def _options(lake: Lake, options: Mapping[str, Any]) -> dict[str, str]:
    return {"root": lake.root, "path": "air.flights", **{name: str(value) for name, value in options.items()}}


class _Context:
    def __init__(self, number: int, query: str, batch: int) -> None:
        self._number, self._of_stream = number, {writers.QUERY: query, writers.BATCH: str(batch)}

    def partitionId(self) -> int:  # noqa: N802 (Spark's name)
        return self._number

    def getLocalProperty(self, name: str) -> str:  # noqa: N802 (Spark's name)
        return self._of_stream[name]


@contextmanager
def in_task(number: int, query: str = "", batch: int = 0) -> Iterator[None]:
    """What Spark tells its tasks."""
    with patch.object(TaskContext, "get", lambda: _Context(number, query, batch)):
        yield


def uncommitted(lake: Lake, name: str = "flights") -> set[str]:
    """Files below the dataset that no version needs: data, deletions and notes of tasks."""
    opened = lake.open(name).opened
    location = Path(opened.location)
    dataset = opened.dataset()
    needed = {f"data/{file.path}" for each in dataset.get_fragments() for file in each.metadata.files}
    for version in dataset.versions():
        older = dataset.checkout_version(version["version"])
        needed |= {f"data/{file.path}" for each in older.get_fragments() for file in each.metadata.files}
        files = [(each.metadata.id, each.metadata.deletion_file) for each in older.get_fragments()]
        needed |= {file.path(number) for number, file in files if file is not None}
    found = {
        path.relative_to(location).as_posix()
        for folder in ("data", "_deletions", "_writing")
        for path in (location / folder).rglob("*")
        if path.is_file()
    }
    return found - needed


def batch_rows(start: int, rows: int) -> list[pa.Table]:
    """The rows of a batch of a stream as two tasks have them."""
    return [flights(rows // 2, start), flights(rows - rows // 2, start + rows // 2)]
