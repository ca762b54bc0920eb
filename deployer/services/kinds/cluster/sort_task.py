"""Arranges the rows of one task that fits in memory, and writes them as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.files.row_ids import ROW_ID, with_ids, without_ids
from deployer.datasets.files.writer import Layout, WrittenFragment, write_merged
from deployer.datasets.ordering.clustering import FileClustering, bounds_of
from deployer.errors import DeployerError
from deployer.runs.rewriting.executor import OnRows
from deployer.runs.rewriting.sorted_runs import rows_of
from deployer.runs.rewriting.tasks import Sizes, files_of
from deployer.services.kinds.cluster.layout import Arrangement
from deployer.services.kinds.cluster.quantile_ranks import Scale
from deployer.tables.layout.partitions.key_ranges import Ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

WINDOW_ROWS = 65_536  #: the number of rows that are taken at a time


@dataclass(frozen=True, slots=True)
class Arrange:
    """A task with everything that a process needs to run it. `ranges` has the leaves that the rows may belong to."""

    version: int
    fragments: tuple[int, ...]
    ranges: Ranges
    layout: Layout
    arrangement: Arrangement
    scales: tuple[Scale, ...]
    sizes: Sizes
    rows: int
    bytes: int

    def done(self, dataset: LanceDataset, on_rows: OnRows, threads: int) -> list[WrittenFragment]:
        """Reads all rows of the task into memory, writes them in order, and returns the written fragments."""
        with translated_errors(dataset.uri):
            return arranged(self, self._read(dataset, on_rows), dataset, on_rows, threads)

    def _read(self, dataset: LanceDataset, on_rows: OnRows) -> pa.Table:
        scanner = rows_of(dataset, [dataset.get_fragment(number) for number in self.fragments])
        batches = []
        for batch in scanner.to_batches():
            on_rows(0)
            batches.append(batch)
        return pa.Table.from_batches(batches, scanner.projected_schema)


class translated_errors:  # noqa: N801 -- reads as a statement
    """A context that raises errors of Lance and Arrow as DeployerError."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if isinstance(failure, OSError | RuntimeError | ValueError):  # Arrow's errors are of these kinds, too
            reason = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
            raise DeployerError(
                f"rows cannot be arranged: {reason}",
                where=self._where,
                remedy="`deployer state verify` lists what is damaged",
            ) from failure


def arranged(
    task: Arrange, rows: pa.Table, dataset: LanceDataset | None, on_rows: OnRows, threads: int = 1
) -> list[WrittenFragment]:
    """Writes rows of the task in its order, as files of about equal size, several files at a time.

    Each file has rows of one leaf.
    """
    if not rows.num_rows:
        return []
    leaves, places = _by_leaf(task, rows, task.arrangement.sorted_places(rows, task.scales))
    schema, columns = rows.schema, rows.columns
    del rows
    with ThreadPoolExecutor(threads, "arrange") as pool:
        # A whole column is taken at a time: its values stay in the processor's cache; those of whole rows would not.
        taken = pool.map(_taken, columns, [on_rows] * len(columns), [pa.array(places)] * len(columns))
        columns.clear()  # the memory of a column is released once it is taken
        found = pa.table([*taken], schema.names)
        futures = [
            pool.submit(_write, task, found.slice(start, count), schema, leaf, dataset, on_rows)
            for leaf, start, count in _files(task, leaves)
        ]
        try:
            return [each for future in futures for each in future.result()]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _taken(column: pa.ChunkedArray, on_rows: OnRows, places: pa.Array) -> pa.Array:
    """Returns the column's values at these places. They have 64-bit offsets where 32 bits are too few for all
    values."""
    on_rows(0)
    # Arrow's own pool is not used: it requests huge pages, and a machine that has few of them stalls.
    pool = pa.system_memory_pool()
    try:
        whole = pa.concat_arrays(column.chunks, memory_pool=pool)
    except pa.ArrowInvalid:
        large = pa.large_string() if pa.types.is_string(column.type) else pa.large_binary()
        whole = pa.concat_arrays(column.cast(large).chunks, memory_pool=pool)
    return pc.take(whole, places, boundscheck=False, memory_pool=pool)


def _by_leaf(
    task: Arrange, rows: pa.Table, places: NDArray[np.int64]
) -> tuple[list[tuple[str, int]], NDArray[np.int64]]:
    """Returns the leaves with the number of rows that each gets, and the places of the rows, ordered by leaf."""
    names = task.ranges.partitions
    if len(names) == 1:
        return [(names[0], len(places))], places
    row_keys = task.layout.row_keys
    splitter = task.ranges.splitter(rows.schema, row_keys)
    numbers = splitter.ranges([rows[name].combine_chunks() for name in row_keys], rows.num_rows)[places]
    counts = np.bincount(numbers, minlength=len(names))
    leaves = [(names[i], int(count)) for i, count in enumerate(counts) if count]
    return leaves, places[np.argsort(numbers, kind="stable")]


def _files(task: Arrange, leaves: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int, int]]:
    """Yields for each file to be written its leaf, its first row and its number of rows."""
    start = 0
    for leaf, rows in leaves:
        files = files_of(rows, task.bytes * rows // max(1, task.rows), task.sizes)
        for number in range(files):
            count = rows // files + (number < rows % files)
            yield leaf, start, count
            start += count


def _write(
    task: Arrange,
    rows: pa.Table,
    schema: pa.Schema,
    leaf: str,
    dataset: LanceDataset | None,
    on_rows: OnRows,
) -> list[WrittenFragment]:
    """Writes the rows in their order, as one file, or as several where one would be too large."""
    stored = pa.schema([field for field in schema if field.name != ROW_ID])
    layout = replace(task.layout, schema=stored.serialize().to_pybytes())
    ids: list[pa.Array] = []

    def windows() -> Iterator[pa.RecordBatch]:
        for batch in rows.to_batches(WINDOW_ROWS):
            on_rows(batch.num_rows)
            columns = [
                own if own.type == kind else own.cast(kind) for own, kind in zip(batch, schema.types, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    in_order = task.arrangement.keeps_order
    made = with_ids(write_merged(layout, without_ids(windows(), ids), leaf, dataset, in_order=in_order), ids)
    return list(_with_bounds(task.arrangement, rows, made))


def _with_bounds(
    arrangement: Arrangement, rows: pa.Table, made: Sequence[WrittenFragment]
) -> Iterator[WrittenFragment]:
    """Yields the files with the bounds of their columns."""
    keys = arrangement.keys(rows)
    start = 0
    for each in made:
        bounds = bounds_of([column.slice(start, each.rows) for column in keys], arrangement.kinds)
        start += each.rows
        yield replace(each, clustered=FileClustering(arrangement.name, *bounds)) if bounds else each
