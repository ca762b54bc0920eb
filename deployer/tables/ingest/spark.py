"""Loads as a Spark job of two stages: tasks read and check splits, then tasks sort and write ranges of keys.

Between the stages, Spark transfers rows as Arrow IPC messages, one for each batch and range. The messages are opaque
bytes to Spark: rows are never converted to Spark's own rows, so that every Arrow type is preserved. Tables without keys
need no second stage.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.datasets.files.writer import WrittenFragment, write_stream
from deployer.errors import DeployerError
from deployer.tables.ingest.driver import parted
from deployer.tables.ingest.files.columnar import ALIGNED
from deployer.tables.ingest.files.model import Split
from deployer.tables.ingest.keys.unique import Duplicates
from deployer.tables.ingest.loading import LoadedFragments, LoadPlan
from deployer.tables.ingest.range_writer import write_range
from deployer.tables.ingest.readers.splits import SplitReport, checked_rows
from deployer.tables.ingest.rows.load_functions import with_trust

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUN_BYTES = 512 * 1024 * 1024  #: bytes of rows that a task sorts in memory at a time
MESSAGE_BYTES = 8 * 1024 * 1024  #: bytes of rows that are collected before they are split by range
MESSAGES_A_BATCH = "8"  # the messages in one Arrow batch of Spark; its default of 10,000 would be gigabytes

Reports = dict[int, SplitReport]


@dataclass(slots=True)
class SparkLoad:
    """One load on a session. Tasks add to `reports` when they end. `refused` is true if the load cannot be committed
    according to these reports."""

    session: SparkSession
    plan: LoadPlan

    def __post_init__(self) -> None:
        from pyspark import AccumulatorParam

        class Merged(AccumulatorParam[Reports]):
            def zero(self, value: Reports) -> Reports:
                return {}

            def addInPlace(self, value1: Reports, value2: Reports) -> Reports:  # noqa: N802 (Spark's name)
                value1.update(value2)  # a task that ran twice reports the same values twice
                return value1

        self._reports = self.session.sparkContext.accumulator({}, Merged())

    _reports: Any = None

    @property
    def reports(self) -> Reports:
        return dict(self._reports.value)

    @property
    def rows(self) -> int:
        return sum(report.rows for report in self.reports.values())

    @property
    def refused(self) -> bool:
        """Returns whether the load cannot be committed. An error refuses it immediately; bad rows refuse it once all
        splits have reported theirs."""
        reports = self.reports
        failed = any(report.error for report in reports.values())
        return failed or (len(reports) == len(self.plan.splits) and self.plan.refuses(reports.values()))

    def run(self) -> LoadedFragments:
        """Runs the job. Raises Spark's errors when a task fails or the job is cancelled."""
        before = self.session.conf.get(BATCH_SETTING)
        self.session.conf.set(BATCH_SETTING, MESSAGES_A_BATCH)
        try:
            rows = (self._gathered() if self.plan.layout.order else self._streamed()).collect()
        finally:
            self.session.conf.set(BATCH_SETTING, before or "10000")
        found = [pickle.loads(row["written"]) for row in rows]  # noqa: S301 (made by our tasks)
        duplicates = reduce(Duplicates.joined, (each for _, each in found), Duplicates())
        return LoadedFragments(tuple(each for written, _ in found for each in written), self.reports, duplicates)

    def _gathered(self) -> Any:
        ranges = len(self.plan.ranges.partitions)
        keys = partition_keys(ranges)
        read = with_trust(_ReadTask(self.plan, tuple(keys), self._reports))
        write = _WriteTask(self.plan, {key: number for number, key in enumerate(keys)})
        splits = self.session.range(0, len(self.plan.splits), 1, max(1, len(self.plan.splits)))
        messages = splits.mapInArrow(read, "range int, rows binary").repartition(ranges, "range")
        return messages.mapInArrow(write, "written binary")

    def _streamed(self) -> Any:
        groups = _groups(self.plan, self.session.sparkContext.defaultParallelism)
        write = with_trust(_StreamTask(self.plan, groups, self._reports))
        return self.session.range(0, len(groups), 1, max(1, len(groups))).mapInArrow(write, "written binary")


BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"


def _groups(plan: LoadPlan, parallelism: int) -> tuple[tuple[Split, ...], ...]:
    """Returns groups of neighbouring splits, one group for each task. There are as many groups as cores, or more where
    files would become too large.

    A load with a ledger has one group for each split, so that a resumed load does the same work for each split.
    """
    if plan.ledger is not None:
        return tuple((split,) for split in plan.splits if split.number not in plan.finished)
    rows = sum(split.rows for split in plan.splits)
    wanted = max(min(parallelism, len(plan.splits)), math.ceil(rows / plan.layout.max_rows_per_file), 1)
    share = max(1, sum(split.bytes for split in plan.splits)) / wanted
    groups: list[list[Split]] = [[]]
    size = 0
    for split in plan.splits:
        if groups[-1] and size >= share * len(groups):
            groups.append([])
        groups[-1].append(split)
        size += split.bytes
    return tuple(map(tuple, groups))


class _ReadTask:
    """The first stage: reads the good rows of splits, and sends them as messages to their ranges."""

    def __init__(self, plan: LoadPlan, keys: tuple[int, ...], reports: Any) -> None:
        self._plan, self._keys, self._reports = plan, keys, reports

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        splitter = self._plan.ranges.splitter(self._plan.layout.arrow_schema, self._plan.layout.row_keys)
        for number in ids_of(batches):
            split = self._plan.splits[number]
            report = SplitReport(split.number)
            for rows in larger(checked_rows(split, self._plan.reading, report)):
                keys = [rows.column(name) for name in self._plan.layout.row_keys]
                for place, part in parted(rows, splitter.ranges(keys, rows.num_rows)):
                    if place not in self._plan.finished:
                        yield message(self._keys[place], part)
            self._reports.add({split.number: report})


class _WriteTask:
    """The second stage: sorts and writes the rows of a range, in several runs if they do not fit in memory."""

    def __init__(self, plan: LoadPlan, numbers: dict[int, int]) -> None:
        self._plan, self._numbers = plan, numbers

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held: dict[int, list[pa.RecordBatch]] = {}
        size, written, duplicates = 0, dict[int, list[WrittenFragment]](), Duplicates()
        for batch in batches:
            for key, message in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                rows = list(pa.ipc.open_stream(message.as_buffer(), options=ALIGNED))
                held.setdefault(key, []).extend(rows)
                size += sum(each.nbytes for each in rows)
            if size >= RUN_BYTES:
                duplicates = duplicates.joined(self._flush(held, written))
                size = 0
        duplicates = duplicates.joined(self._flush(held, written))
        if self._plan.ledger is not None:
            for number, each in written.items():
                self._plan.ledger.record(number, each)
        yield result(([each for number in written for each in written[number]], duplicates))

    def _flush(self, held: dict[int, list[pa.RecordBatch]], written: dict[int, list[WrittenFragment]]) -> Duplicates:
        plan, found = self._plan, Duplicates()
        for key in sorted(held):
            rows, number = pa.Table.from_batches(held.pop(key)), self._numbers[key]
            earlier = written.setdefault(number, [])
            made, duplicates = write_range(plan.layout, rows, plan.ranges.partitions[number], plan.unique, earlier)
            earlier += made
            found = found.joined(duplicates)
        return found


class _StreamTask:
    """The only stage for a table without keys: writes rows in the order in which they are read."""

    def __init__(self, plan: LoadPlan, groups: tuple[tuple[Split, ...], ...], reports: Any) -> None:
        self._plan, self._groups, self._reports = plan, groups, reports

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in ids_of(batches):
            rows = self._rows(self._groups[number])
            written = write_stream(self._plan.layout, rows, self._plan.ranges.partitions[0])
            if self._plan.ledger is not None:
                self._plan.ledger.record(self._groups[number][0].number, written)
            yield result((written, Duplicates()))

    def _rows(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        for split in splits:
            report = SplitReport(split.number)
            yield from checked_rows(split, self._plan.reading, report)
            self._reports.add({split.number: report})


def ids_of(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    """Yields the numbers that a task receives."""
    for batch in batches:
        yield from batch.column(0).to_pylist()


def larger(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields batches of about `MESSAGE_BYTES` with the same rows, so that the parts for each range are not tiny."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in _smaller(batches):
        held.append(batch)
        size += batch.nbytes
        if size >= MESSAGE_BYTES:
            yield from _joined(held)
            held, size = [], 0
    yield from _joined(held)


def _smaller(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yields the batches, with batches of large values split, because an Arrow batch of messages must be smaller than
    2 GB."""
    for batch in batches:
        rows = max(1, batch.num_rows * 4 * MESSAGE_BYTES // max(1, batch.nbytes))
        yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _joined(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if len(batches) < 2:
        yield from batches
    else:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


def message(key: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Returns rows for the partition of `key` in the form that Spark transfers."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_batch(rows)
    return pa.RecordBatch.from_arrays([pa.array([key], pa.int32()), _binary(sink.getvalue())], ["range", "rows"])


def result(made: object) -> pa.RecordBatch:
    """Returns the result of a task in the form that the driver collects."""
    return pa.RecordBatch.from_arrays([_binary(pa.py_buffer(pickle.dumps(made)))], ["written"])


def _binary(data: pa.Buffer) -> pa.Array:
    """Returns an array with the buffer as its only binary value, without a copy."""
    offsets = pa.py_buffer(np.array([0, data.size], np.int32))
    return pa.Array.from_buffers(pa.binary(), 1, [None, offsets, data])


def partition_keys(count: int) -> list[int]:
    """Returns, for each of `count` partitions, an integer that `repartition(count, column)` assigns to that partition.

    Spark assigns by the remainder of Murmur3 (seed 42). With the numbers 0, 1, … some ranges would share a partition,
    and other partitions would be empty.
    """
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < count:
        found.setdefault(murmur3(candidate) % count, candidate)
        candidate += 1
    return [found[number] for number in range(count)]


def murmur3(value: int, seed: int = 42) -> int:
    """Returns Spark's `hash` of a 32-bit integer (Murmur3_x86_32) as a signed integer."""

    def rotated(bits: int, by: int) -> int:
        return ((bits << by) | (bits >> (32 - by))) & 0xFFFFFFFF

    block = rotated(value * 0xCC9E2D51 & 0xFFFFFFFF, 15) * 0x1B873593 & 0xFFFFFFFF
    mixed = (rotated(seed ^ block, 13) * 5 + 0xE6546B64) & 0xFFFFFFFF
    mixed ^= 4  # the length in bytes
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    mixed ^= mixed >> 16
    return mixed - (1 << 32) if mixed >> 31 else mixed


def first_error(reports: Reports) -> DeployerError | None:
    """Returns the error of the first split that has one; None where no split has one."""
    errors = (reports[number].error for number in sorted(reports))
    return next((error.as_error() for error in errors if error is not None), None)
