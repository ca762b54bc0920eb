"""Copies rows of one pinned version of a table into fragments of another key order, range by range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from deployer.datasets.files.writer import WrittenFragment, write_sorted, write_stream
from deployer.errors import Refused
from deployer.platform.system.progress import OnProgress, Progress
from deployer.tables.evolution.rewrite.progress import RangeLedger
from deployer.tables.ingest.driver import FLUSH_BYTES, parted
from deployer.tables.ingest.engine_choice import SMALL_BYTES, SMALL_ROWS
from deployer.tables.ingest.files.model import Split
from deployer.tables.ingest.loading import LoadPlan
from deployer.tables.ingest.readers.splits import SplitReport, checked_rows
from deployer.tables.ingest.request import LoadWithSpark
from deployer.tables.ingest.rows.bad_rows import BadRows


def copy_rows(
    plan: LoadPlan, ledger: RangeLedger, with_spark: LoadWithSpark | None, on_progress: OnProgress, address: str
) -> tuple[WrittenFragment, ...]:
    """Writes the parts that the ledger lacks, with Spark for large ones; returns everything that the round wrote.

    Raises Refused when rows do not fit the new keys.
    """
    plan = replace(plan, ledger=ledger, finished=frozenset(ledger.finished()))
    rows, size = sum(split.rows for split in plan.splits), sum(split.bytes for split in plan.splits)
    left = set(_units(plan)) - plan.finished
    if left and rows:
        copied = _CopyProgress(ledger, rows, bool(plan.layout.order), on_progress)
        if with_spark is not None and (rows > SMALL_ROWS or size > SMALL_BYTES):
            loaded = with_spark(plan, lambda now: copied.report(now.rows))
            _refuse([report.bad for report in loaded.reports.values()], address)
        else:
            _copy_here(plan, sorted(left), copied, address)
    found = ledger.finished()
    return tuple(each for number in sorted(found) for each in found[number])


@dataclass(slots=True)
class _CopyProgress:
    """The number of copied rows of a round. Rows that have an order are all read before the first is written."""

    ledger: RangeLedger
    total: int
    has_order: bool
    on_progress: OnProgress
    _rows: dict[int, int] = field(default_factory=dict)  #: written rows, by the number of their range
    _before: int = 0  #: ranges that an earlier run wrote

    def __post_init__(self) -> None:
        self._rows = self.ledger.rows()
        self._before = len(self._rows)

    def report(self, read: int) -> None:
        """Reports progress; `read` is the number of rows read so far."""
        self._rows |= self.ledger.rows(besides=self._rows.keys())
        if self.has_order and len(self._rows) == self._before and read < self.total:
            self.on_progress(Progress("reading", read, self.total))
        else:
            self.on_progress(Progress("writing", sum(self._rows.values()), self.total))


def _units(plan: LoadPlan) -> Sequence[int]:
    """Returns the units that are written and noted separately: ranges of ordered rows, otherwise splits."""
    if plan.layout.order:
        return range(len(plan.ranges.partitions))
    return [split.number for split in plan.splits]


def _copy_here(plan: LoadPlan, left: Sequence[int], copied: _CopyProgress, address: str) -> None:
    """Copies the rows in this process. The source is read once for each `FLUSH_BYTES` of it, so that memory is
    bounded."""
    ledger = plan.ledger
    assert ledger is not None  # noqa: S101
    if not plan.layout.order:
        wanted = [split for split in plan.splits if split.number in left]
        for split in wanted:
            report = SplitReport(split.number)
            written = write_stream(plan.layout, _checked(plan, split, report), plan.ranges.partitions[0])
            ledger.record(split.number, written)
            copied.report(0)
            _refuse([report.bad], address)
        return
    passes = 1 + sum(split.bytes for split in plan.splits) // FLUSH_BYTES
    share = -(-len(left) // passes)
    for start in range(0, len(left), share):
        group = left[start : start + share]
        held = _gathered(plan, frozenset(group), copied, address)
        for number in group:
            rows = pa.Table.from_batches(held.pop(number, []), plan.layout.arrow_schema)
            ledger.record(number, write_sorted(plan.layout, rows, plan.ranges.partitions[number]))
            copied.report(0)


def _gathered(
    plan: LoadPlan, wanted: frozenset[int], copied: _CopyProgress, address: str
) -> dict[int, list[pa.RecordBatch]]:
    splitter = plan.ranges.splitter(plan.layout.arrow_schema, plan.layout.row_keys)
    held: dict[int, list[pa.RecordBatch]] = {}
    reports = [SplitReport(split.number) for split in plan.splits]
    for split, report in zip(plan.splits, reports, strict=True):
        for batch in _checked(plan, split, report):
            keys = [batch.column(name) for name in plan.layout.row_keys]
            for number, part in parted(batch, splitter.ranges(keys, batch.num_rows)):
                if number in wanted:
                    held.setdefault(number, []).append(part)
        copied.report(sum(each.rows for each in reports))
    _refuse([report.bad for report in reports], address)
    return held


def _checked(plan: LoadPlan, split: Split, report: SplitReport) -> Iterator[pa.RecordBatch]:
    yield from checked_rows(split, plan.reading, report)
    if report.error is not None:
        raise report.error.as_error()


def _refuse(found: Sequence[BadRows], address: str) -> None:
    count = sum(each.rows for each in found)
    if count:
        first = next(problem for each in found for problem in each.problems)
        raise Refused(
            f"{count:,} row{'s' if count != 1 else ''} cannot be kept under the new keys, such as one whose column "
            f"{first.column!r} {first.reason}; the table is unchanged",
            where=address,
            remedy="fix these rows, or choose other keys",
        )
