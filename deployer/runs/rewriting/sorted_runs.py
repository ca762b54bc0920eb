"""Sorted runs of a table's rows, which are read piece by piece while they are merged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from deployer.runs.rewriting.merging import merge_order

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

STREAM_BYTES = 1_000_000  #: a smaller file is read as a whole, because opening it costs more than holding it
HELD_BYTES = 32_000_000  #: if all files together are not larger, each is read as a whole
BUFFER_BYTES = 16_000_000  #: the bytes that Lance reads ahead of each file
GUESSED_ROW_BYTES = 64
ROWS_READ_AHEAD = 1_048_576  #: bytes of all runs together
_BATCH_ROWS = (1024, 16_384)


class Run(Protocol):
    """A run of sorted rows. `take` returns the next rows."""

    rows: int

    def take(self, rows: int) -> list[pa.RecordBatch]: ...


class BufferedRows:
    """A run that is in memory."""

    def __init__(self, table: pa.Table) -> None:
        self.rows, self._table, self._place = table.num_rows, table, 0

    def take(self, rows: int) -> list[pa.RecordBatch]:
        found: list[pa.RecordBatch] = self._table.slice(self._place, rows).to_batches()
        self._place += rows
        return found


class Streamed:
    """A run that is read as its rows are taken. Only its first batch is read in advance, by the executor `begun`."""

    def __init__(self, batches: Iterator[pa.RecordBatch], rows: int, begun: Executor) -> None:
        self.rows, self._batches, self._place = rows, batches, 0
        self._first: Future[pa.RecordBatch] | None = begun.submit(next, batches) if rows else None
        self._now: Any = None

    def take(self, rows: int) -> list[pa.RecordBatch]:
        found = []
        while rows:
            if self._first is not None:
                self._now, self._first = self._first.result(), None
            if self._place == self._now.num_rows:
                self._now, self._place = next(self._batches), 0
            part = self._now.slice(self._place, rows)
            found.append(part)
            self._place += part.num_rows
            rows -= part.num_rows
        return found


@dataclass(frozen=True, slots=True)
class Runs:
    """The sorted runs to merge."""

    runs: tuple[Run, ...]
    schema: pa.Schema


def open_runs(
    dataset: LanceDataset, fragments: Sequence[int], in_order: frozenset[int], order: Sequence[str], threads: int
) -> tuple[Runs, pa.Table]:
    """Returns the rows of the fragments as runs that are sorted by the columns `order`, and these columns of all rows,
    run by run.

    `in_order` has the fragments that are already sorted. Small fragments, and those that must be sorted, are one run in
    memory. Deleted rows are left out.
    """
    found = [dataset.get_fragment(number) for number in fragments]
    sizes = {each.fragment_id: _size(each.metadata) for each in found}
    at_once = sum(sizes.values()) <= HELD_BYTES
    held = [
        each for each in found if at_once or each.fragment_id not in in_order or sizes[each.fragment_id] < STREAM_BYTES
    ]
    apart = {each.fragment_id for each in held}
    streamed = [each for each in found if each.fragment_id not in apart]
    runs: list[Run] = []
    keys = []
    schema = rows_of(dataset, found[:1]).projected_schema
    least, most = _BATCH_ROWS
    batch = max(least, min(most, ROWS_READ_AHEAD // max(1, len(streamed))))
    ahead = {"batch_size": batch, "batch_readahead": 1, "io_buffer_size": BUFFER_BYTES}
    begun = ThreadPoolExecutor(threads, "open")  # opening a hundred files takes longer than sorting their keys
    of_files = [
        Streamed(iter(rows_of(dataset, [each], **ahead).to_batches()), each.count_rows(), begun) for each in streamed
    ]
    begun.shutdown(wait=False)
    if held:
        table = _sorted(rows_of(dataset, held).to_table(), order)
        runs.append(BufferedRows(table))
        keys.append(table.select(list(order)))
    if streamed:
        keys.append(rows_of(dataset, streamed, columns=list(order)).to_table().select(list(order)))
    return Runs((*runs, *of_files), schema), pa.concat_tables(keys) if len(keys) > 1 else keys[0]


def _size(fragment: Any) -> int:
    """Returns the size of a fragment in bytes. Lance does not record it for pages that its own compaction copied; then
    it is estimated from the number of rows."""
    known = sum(file.file_size_bytes or 0 for file in fragment.files)
    return int(known or fragment.physical_rows * GUESSED_ROW_BYTES)


def rows_of(dataset: LanceDataset, fragments: Sequence[Any], **options: Any) -> Any:
    """Returns a scanner of the fragments' live rows, in their order.

    It returns row ids only where these are stable; other row ids are positions, which change.
    """
    return dataset.scanner(
        fragments=list(fragments),
        scan_in_order=True,
        blob_handling="all_binary",
        with_row_id=bool(dataset.has_stable_row_ids),
        **options,
    )


def _sorted(table: pa.Table, order: Sequence[str]) -> pa.Table:
    table = table.combine_chunks()
    return table.take(pa.array(merge_order(table.select(list(order)))))
