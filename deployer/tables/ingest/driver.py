"""Loads in this process, without Spark, which is the fastest way for small sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.datasets.files.writer import Layout, WrittenFragment, discard, write_stream
from deployer.datasets.ordering.sort_order import Splitter
from deployer.platform.system.progress import OnProgress, Progress
from deployer.tables.ingest.keys.unique import Duplicates, UniqueLoad
from deployer.tables.ingest.loading import LoadedFragments, LoadPlan
from deployer.tables.ingest.range_writer import write_range
from deployer.tables.ingest.readers.splits import SplitReport, checked_rows
from deployer.tables.layout.partitions.key_ranges import Ranges

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

Held = dict[int, list[pa.RecordBatch]]  #: rows in memory that are not written yet, by the number of their range

FLUSH_BYTES = 1024 * 1024 * 1024  #: bytes of rows in memory from which on they are sorted and written


def load_in_driver(plan: LoadPlan, on_progress: OnProgress) -> LoadedFragments:
    """Writes the good rows of all splits. After a bad row that refuses the load, writes no more rows.

    Raises the error of the first split that has one.
    """
    reports = {split.number: SplitReport(split.number) for split in plan.splits}
    written, duplicates = write_rows(plan, _batches(plan, reports, on_progress), reports)
    if error := next((report.error for report in reports.values() if report.error), None):
        discard(plan.layout.location, written)
        raise error.as_error()
    return LoadedFragments(tuple(written), reports, duplicates)


def write_rows(
    plan: LoadPlan, batches: Iterator[pa.RecordBatch], reports: dict[int, SplitReport]
) -> tuple[list[WrittenFragment], Duplicates]:
    """Writes rows of the table. If the table has keys, the rows are sorted, and each range has separate files; about
    `FLUSH_BYTES` of rows are in memory."""
    if plan.layout.order:
        found = _gathered(plan, batches, reports)
        return found.written, found.duplicates
    return [*write_stream(plan.layout, batches, plan.ranges.partitions[0])], Duplicates()


def _batches(plan: LoadPlan, reports: dict[int, SplitReport], on_progress: OnProgress) -> Iterator[pa.RecordBatch]:
    rows = 0
    for done, split in enumerate(plan.splits):
        report = reports[split.number]
        for batch in checked_rows(split, plan.reading, report):
            rows += batch.num_rows
            yield batch
            on_progress(Progress("loading", done, len(plan.splits), "parts", rows))
        if report.error:  # raised after the writer is done: Lance would hide the error's type and message
            return
        on_progress(Progress("loading", done + 1, len(plan.splits), "parts", rows))


@dataclass(slots=True)
class FlushedRows:
    """The fragments that were written so far, by range, and the duplicates that were not written."""

    layout: Layout
    ranges: Ranges
    unique: UniqueLoad | None = None
    dataset: LanceDataset | None = None  #: the table's dataset, if it is already open
    duplicates: Duplicates = field(default_factory=Duplicates)
    _written: dict[int, list[WrittenFragment]] = field(default_factory=dict)

    @property
    def written(self) -> list[WrittenFragment]:
        return [each for number in sorted(self._written) for each in self._written[number]]

    def flush(self, held: Held) -> None:
        """Writes the rows of `held`, sorted and in separate files for each range, and empties `held`."""
        for number in sorted(held):
            rows, earlier = pa.Table.from_batches(held.pop(number)), self._written.setdefault(number, [])
            partition = self.ranges.partitions[number]
            written, duplicates = write_range(self.layout, rows, partition, self.unique, earlier, self.dataset)
            earlier += written
            self.duplicates = self.duplicates.joined(duplicates)


def _gathered(plan: LoadPlan, batches: Iterator[pa.RecordBatch], reports: dict[int, SplitReport]) -> FlushedRows:
    """Collects rows by range, and sorts and writes them each time `FLUSH_BYTES` are in memory."""
    splitter = plan.ranges.splitter(plan.layout.arrow_schema, plan.layout.row_keys)
    held: Held = {}
    size, flushed = 0, FlushedRows(plan.layout, plan.ranges, plan.unique)
    for batch in batches:
        hold(batch, plan.layout, splitter, held)
        size += batch.nbytes
        if size >= FLUSH_BYTES:
            flushed.flush(held)
            size = 0
    if not plan.refuses(reports.values()):
        flushed.flush(held)
    return flushed


def hold(batch: pa.RecordBatch, layout: Layout, splitter: Splitter, held: Held) -> None:
    """Adds the rows of the batch to `held`, under the numbers of their ranges."""
    keys = [batch.column(name) for name in layout.row_keys]
    for number, part in parted(batch, splitter.ranges(keys, batch.num_rows)):
        held.setdefault(number, []).append(part)


def parted(batch: pa.RecordBatch, numbers: np.ndarray) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields the rows of the batch for each range number. `numbers` has the range number of each row."""
    present = np.unique(numbers)
    if len(present) == 1:
        yield int(present[0]), batch
        return
    order = np.argsort(numbers, kind="stable")
    ordered = batch.take(pa.array(order))
    starts = np.searchsorted(numbers[order], present)
    for number, start, stop in zip(present, starts, [*starts[1:], len(order)], strict=True):
        yield int(number), ordered.slice(int(start), int(stop - start))
