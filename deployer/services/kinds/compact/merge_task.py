"""Merges the fragments of one task on a table whose rows are in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.files.row_ids import ROW_ID, with_ids, without_ids
from deployer.datasets.files.writer import Layout, WrittenFragment, write_merged
from deployer.datasets.ordering.clustering import FileClustering
from deployer.errors import DeployerError
from deployer.runs.rewriting.executor import OnRows
from deployer.runs.rewriting.merging import merge_order, runs_of
from deployer.runs.rewriting.sorted_runs import Runs, open_runs, rows_of
from deployer.runs.rewriting.tasks import Sizes, files_of
from deployer.services.kinds.compact.parallel_writer import ahead, deal
from deployer.tables.layout.partitions.key_ranges import Ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

    _Window = tuple[list[pa.RecordBatch], NDArray[np.int64] | None]  #: rows, and their new order, if any

WINDOW_ROWS = 65_536  #: the number of rows that are merged at a time


@dataclass(frozen=True, slots=True)
class Merge:
    """A task on a table with keys, with everything that a process needs to run it.

    `ranges` has the leaves that the rows may belong to. With `clustered`, the rows keep their present order, which is
    not the order of the keys; the task then has one fragment.
    """

    version: int
    fragments: tuple[int, ...]
    in_order: frozenset[int]
    ranges: Ranges
    layout: Layout
    sizes: Sizes
    rows: int
    bytes: int
    clustered: FileClustering | None = None

    def done(self, dataset: LanceDataset, on_rows: OnRows, threads: int) -> list[WrittenFragment]:
        return merged(dataset, self, on_rows, threads)


def merged(dataset: LanceDataset, task: Merge, on_rows: OnRows, threads: int) -> list[WrittenFragment]:
    """Writes the rows of the task's fragments in the order of their keys, with separate files for each leaf.

    Commits nothing. `dataset` is open at the task's version. Memory holds the keys of all rows, and the rows of each
    file that are read ahead.
    """
    try:
        return _as_they_are(dataset, task, on_rows) if task.clustered else _merged(dataset, task, on_rows, threads)
    except (OSError, RuntimeError, ValueError) as failure:  # Arrow's errors are of these kinds, too
        reason = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
        raise DeployerError(
            f"rows cannot be merged: {reason}",
            where=dataset.uri,
            remedy="`deployer state verify` lists what is damaged",
        ) from failure


def _merged(dataset: LanceDataset, task: Merge, on_rows: OnRows, threads: int) -> list[WrittenFragment]:
    runs, keys = open_runs(dataset, task.fragments, task.in_order, task.layout.order, threads)
    if not keys.num_rows:
        return []
    places = merge_order(keys)
    stored = pa.schema([field for field in runs.schema if field.name != ROW_ID])
    layout = replace(task.layout, schema=stored.serialize().to_pybytes())

    def write(partition: str, batches: Iterator[pa.RecordBatch]) -> list[WrittenFragment]:
        ids: list[pa.Array] = []
        return with_ids(write_merged(layout, without_ids(batches, ids), partition, dataset), ids)

    files = [(rows, partial(write, name)) for name, rows in _files(task, keys, places)]
    del keys  # releases their memory for the rows
    with closing(ahead(_joined, _windows(runs, places, on_rows), threads)) as windows:
        return [each for made in deal(chain.from_iterable(windows), files, threads) for each in made]


def _as_they_are(dataset: LanceDataset, task: Merge, on_rows: OnRows) -> list[WrittenFragment]:
    """Writes the live rows in their present order."""
    scanner = rows_of(dataset, [dataset.get_fragment(number) for number in task.fragments])
    stored = pa.schema([field for field in scanner.projected_schema if field.name != ROW_ID])
    most = -(-task.rows // files_of(task.rows, task.bytes, task.sizes))
    own = replace(task.layout, schema=stored.serialize().to_pybytes(), max_rows_per_file=most)
    ids: list[pa.Array] = []

    def reported() -> Iterator[pa.RecordBatch]:
        for batch in scanner.to_batches():
            on_rows(batch.num_rows)
            yield batch

    made = write_merged(own, without_ids(reported(), ids), task.ranges.partitions[0], dataset, in_order=False)
    return [replace(each, clustered=task.clustered) for each in with_ids(made, ids)]


def _files(task: Merge, keys: pa.Table, places: NDArray[np.int64]) -> Iterator[tuple[str, int]]:
    """Yields the leaf and the number of rows of each file, in the order of the merged rows."""
    for partition, rows in _segments(task, keys, places):
        most = -(-rows // files_of(rows, task.bytes * rows // len(places), task.sizes))
        for start in range(0, rows, most):
            yield partition, min(most, rows - start)


def _segments(task: Merge, keys: pa.Table, places: NDArray[np.int64]) -> list[tuple[str, int]]:
    """Returns the leaves that get merged rows, each with its number of rows, in the order of the leaves."""
    names = task.ranges.partitions
    if len(names) == 1:
        return [(names[0], len(places))]
    row_keys = task.layout.row_keys
    splitter = task.ranges.splitter(keys.schema, row_keys)
    numbers = splitter.ranges([keys[name].combine_chunks() for name in row_keys], keys.num_rows)
    counts = np.bincount(numbers, minlength=len(names))
    return [(names[i], int(count)) for i, count in enumerate(counts) if count]


def _windows(runs: Runs, places: NDArray[np.int64], on_rows: OnRows) -> Iterator[_Window]:
    """Yields the rows of all runs in the order of `places`, `WINDOW_ROWS` at a time."""
    counts = [run.rows for run in runs.runs]
    run_of, taken = runs_of(counts), np.cumsum([0, *counts[:-1]])  # `taken`: the place of each run's next row
    whole = len(counts) == 1 and bool((np.diff(places) > 0).all())
    for start in range(0, len(places), WINDOW_ROWS):
        window = places[start : start + WINDOW_ROWS]
        if whole:
            yield runs.runs[0].take(len(window)), None
        else:
            sources = run_of[window]
            numbers = np.bincount(sources, minlength=len(counts))
            parts = [part for i in np.flatnonzero(numbers) for part in runs.runs[i].take(int(numbers[i]))]
            here = window - taken[sources] + (np.cumsum(numbers) - numbers)[sources]
            taken += numbers
            yield parts, here
        on_rows(len(window))


def _joined(window: _Window) -> list[pa.RecordBatch]:
    parts, places = window
    return parts if places is None else _taken(parts, places)


def _taken(parts: list[pa.RecordBatch], places: NDArray[np.int64]) -> list[pa.RecordBatch]:
    """Returns the rows at these places. Places count the rows of all parts, in their order."""
    pool = pa.system_memory_pool()  # Arrow's own pool returns the memory of each window and requests it again
    try:
        whole = pa.concat_batches(parts, memory_pool=pool)
        return [pc.take(whole, pa.array(places), boundscheck=False, memory_pool=pool)]
    except pa.ArrowInvalid:  # texts of more than 2 GB in total do not fit in one array
        found: list[pa.RecordBatch] = pa.Table.from_batches(parts).take(pa.array(places)).to_batches()
        return found
