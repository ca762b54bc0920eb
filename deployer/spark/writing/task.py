"""The task's part of a write: it writes Spark's rows as sorted files, separately for each leaf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import WriterCommitMessage

from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.writer import WrittenFragment, reported_files, write_stream
from deployer.errors import DeployerError, NotFound
from deployer.platform.system.failpoints import reached
from deployer.spark.writing.file_notes import AttemptNotes
from deployer.spark.writing.from_spark import source_rows
from deployer.spark.writing.plan import WritePlan
from deployer.tables.ingest.driver import FlushedRows, Held, hold
from deployer.tables.ingest.keys.unique import Duplicates, with_places
from deployer.tables.ingest.readers.splits import SplitError, SplitReport
from deployer.tables.ingest.rows.check import check
from deployer.tables.ingest.rows.computed_values import Computing
from deployer.tables.ingest.rows.kept_rows import with_rows

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

RUN_BYTES = 512 * 1024 * 1024  #: rows that a task sorts in memory at a time


@dataclass
class TaskMessage(WriterCommitMessage):
    """The report of a task: its files, the report of its rows by the number of its partition, and rows with existing
    keys. `owner` is the stream that the rows are of; empty for other writes."""

    number: int
    report: SplitReport
    written: tuple[WrittenFragment, ...] = ()
    duplicates: Duplicates = field(default_factory=Duplicates)
    owner: str = ""


def write_task(plan: WritePlan, batches: Iterable[pa.RecordBatch], number: int, owner: str = "") -> TaskMessage:
    """Writes the good rows of the task `number`.

    An error of the rows is in the message, and the driver raises it. An attempt that raises removes its files.
    """
    message = TaskMessage(number, SplitReport(number), owner=owner)
    if plan.is_done:
        for _ in batches:  # Spark has them sent already
            pass
        return message
    notes = AttemptNotes(plan.location, plan.scope)
    try:
        with reported_files(notes.add):
            _write(plan, _checked(plan, batches, message.report), message)
    except BaseException:
        notes.remove_files()
        raise
    reached("spark.task.written")
    return message


def _write(plan: WritePlan, rows: Iterator[pa.RecordBatch], message: TaskMessage) -> None:
    layout, unique = plan.layout, plan.unique
    first = next(rows, None)
    if first is None:
        return
    dataset = _dataset(plan)
    rows = _chained(first, rows)
    if not layout.order:
        source = _Source(rows)
        message.written = tuple(write_stream(layout, source, plan.ranges.partitions[0], dataset))
        if source.failure is not None:
            raise source.failure
        return
    splitter = plan.ranges.splitter(layout.arrow_schema, layout.row_keys)
    held: Held = {}
    size, flushed = 0, FlushedRows(layout, plan.ranges, unique, dataset)
    for batch in rows:
        hold(batch, layout, splitter, held)
        size += batch.nbytes
        if size >= RUN_BYTES:
            flushed.flush(held)
            size = 0
    flushed.flush(held)
    message.written, message.duplicates = tuple(flushed.written), flushed.duplicates


def _dataset(plan: WritePlan) -> LanceDataset:
    """Returns the dataset at the plan's version, which opens faster than the newest, or at the newest if that version
    was removed."""
    try:
        return open_dataset(plan.location, plan.version)
    except NotFound:  # it was cleaned away
        return open_dataset(plan.location)


class _Source:
    """Rows that end at a read error, because Lance would hide the error's type and message."""

    def __init__(self, rows: Iterator[pa.RecordBatch]) -> None:
        self._rows, self.failure = rows, None

    failure: BaseException | None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._rows
        except Exception as failure:
            self.failure = failure


def _chained(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _checked(plan: WritePlan, batches: Iterable[pa.RecordBatch], report: SplitReport) -> Iterator[pa.RecordBatch]:
    """Yields the good rows. After an error, or bad rows that are not set aside, the write is refused and the other rows
    are only counted."""
    table, keys = plan.layout.arrow_schema, plan.layout.row_keys
    for batch in batches:
        if report.error is not None:
            continue
        try:
            source = source_rows(batch, report.rows + 1, table, plan.fields)
            report.rows += batch.num_rows
            found = check(source, table, keys, text=False, listed=plan.listed, computing=Computing(plan.layout.root))
            bad = found.bad.named(source.fields)
            if plan.listed is not None:
                report.bad = report.bad.joined(bad).first(plan.listed)
            elif bad.rows:
                report.bad = report.bad.joined(with_rows(bad, source, table, {}, plan.fields))
        except DeployerError as error:
            report.error = SplitError.of(error)
            continue
        if found.rows.num_rows and not (report.bad.rows and plan.listed is not None):
            yield with_places(found.rows, report.number, found.numbers) if plan.unique is not None else found.rows
