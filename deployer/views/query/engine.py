"""Runs SQL with DataFusion over streamed rows and over tables in memory."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from deployer.datasets.errors import first_line
from deployer.errors import InvalidInput
from deployer.views.query.parsing.scope import stored_type
from deployer.views.query.program import quoted

ROWS_TABLE = "rows"  #: the name of the streamed rows in SQL
PART_ROWS = 262_144  #: rows of a stream that are computed at once
BATCH_ROWS = 65_536  #: rows of a batch that is joined from smaller ones
BATCH_BYTES = 32 << 20  #: bytes from which on such a batch is complete, even with fewer rows


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of batches, which can be read only once."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def run_sql(sql: str, tables: Mapping[str, pa.Table | Stream]) -> Stream:
    """Returns the result of a SELECT over tables by their names, in the order of the rows.

    One table may be a stream. Then the SELECT must have no aggregates, because it is computed for one part of the
    stream after another. DataFusion uses one partition: with several, it was slower and sometimes blocked forever while
    Lance wrote the result (measured on 2 cores). Raises InvalidInput for a query that cannot be planned and, while the
    result is read, for values for which an expression fails.
    """
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(1))
    for name, table in tables.items():
        held = table.schema.empty_table() if isinstance(table, Stream) else table
        _register(context, name, held.to_batches() or [pa.RecordBatch.from_pylist([], held.schema)])
    try:
        plan = context.sql(sql)
        planned = plan.schema()
    except Exception as failure:  # of what kind DataFusion does not say
        raise InvalidInput(
            f"the query cannot be planned: {first_line(failure)}",
            remedy="correct the query, or the tables that it reads",
        ) from failure
    schema = pa.schema([pa.field(each.name, stored_type(each.type)) for each in planned])
    streams = [(name, table) for name, table in tables.items() if isinstance(table, Stream)]
    if not streams:
        return Stream(schema, _batches(lambda: plan, schema))
    [(name, stream)] = streams
    return Stream(schema, _in_parts(context, sql, schema, name, stream))


def run_table(sql: str, tables: Mapping[str, pa.Table | Stream]) -> pa.Table:
    """Returns the result of a SELECT in memory. Raises InvalidInput for the same reasons as `run_sql`."""
    found = run_sql(sql, tables)
    return pa.Table.from_batches(found.batches, found.schema)


def _register(context: Any, name: str, batches: list[pa.RecordBatch]) -> None:
    context.register_record_batches(name, [batches])


def _in_parts(context: Any, sql: str, schema: pa.Schema, name: str, stream: Stream) -> Iterator[pa.RecordBatch]:
    for part in gathered(stream.batches, PART_ROWS):
        context.deregister_table(name)
        _register(context, name, [part])
        yield from _batches(lambda: context.sql(sql), schema)


def _batches(planned: Callable[[], Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    try:
        for batch in planned().collect():
            if batch.num_rows:
                yield fitted(batch, schema)
    except Exception as failure:  # of what kind DataFusion does not say
        raise InvalidInput(
            f"the query fails for a row: {first_line(failure)}",
            remedy="correct the query, such as by nullif(x, 0) or TRY_CAST(x AS …), or the rows of the source",
        ) from failure


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Returns a batch with the columns of the schema, in its order and types."""
    arrays = [_fitted(batch.column(each.name), each.type) for each in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _fitted(values: Any, kind: pa.DataType) -> Any:
    if values.type == kind:
        return values
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, values.cast(kind.storage_type))
    return values.cast(kind)


def gathered(batches: Iterator[pa.RecordBatch], rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """Yields the rows in batches of about this many rows, or fewer where rows are large."""
    held, count, size = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        held.append(batch)
        count, size = count + batch.num_rows, size + int(batch.nbytes)
        if count >= rows or size >= BATCH_BYTES:
            yield pa.concat_batches(held) if len(held) > 1 else held[0]
            held, count, size = [], 0, 0
    if held:
        yield pa.concat_batches(held)


def select_sql(columns: Sequence[tuple[str, str]], source: str, conditions: Sequence[str]) -> str:
    """Returns the SQL of a SELECT of named values, for the rows that match all conditions."""
    selected = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in columns)
    where = " AND ".join(f"({each})" for each in conditions)
    return f"SELECT {selected} FROM {source}" + (f" WHERE {where}" if where else "")  # noqa: S608


def in_own_thread(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields batches that a separate thread computes, at most one ahead, while the caller writes the previous batch."""
    ready: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(1)
    ended = threading.Event()

    def put(item: pa.RecordBatch | BaseException | None) -> bool:
        while not ended.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def compute() -> None:
        try:
            for batch in batches:
                if not put(batch):
                    return
        except BaseException as failure:
            put(failure)
        else:
            put(None)

    thread = threading.Thread(target=compute, name="deployer-view", daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        ended.set()
        thread.join()
