"""A range of rows in a batch that several recordings share, which is faster than thousands of small batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class RowRange:
    """A range of `count` rows of a batch, from row `start` on."""

    batch: pa.RecordBatch
    start: int
    count: int

    @staticmethod
    def of(batch: pa.RecordBatch) -> RowRange:
        """Returns the range of all rows of a batch."""
        return RowRange(batch, 0, batch.num_rows)

    @property
    def rows(self) -> pa.RecordBatch:
        whole = self.start == 0 and self.count == self.batch.num_rows
        return self.batch if whole else self.batch.slice(self.start, self.count)


def joined_ranges(ranges: Iterable[RowRange]) -> Iterator[RowRange]:
    """Yields the same rows in the same order, in the smallest number of ranges."""
    last: RowRange | None = None
    for each in ranges:
        if last is None:
            last = each
        elif each.batch is last.batch and each.start == last.start + last.count:
            last = RowRange(last.batch, last.start, last.count + each.count)
        else:
            yield last
            last = each
    if last is not None:
        yield last
