"""Arranges the rows of one task that fits in memory, and writes them as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.errors import DeployerError
from deployer.live.clustered import Clustered, bounds_of
from deployer.services.cluster.arrangement import Arrangement
from deployer.services.cluster.scales import Scale
from deployer.services.compact.planning import Sizes, files_of
from deployer.services.compact.reading import rows_of
from deployer.services.row_ids import ROW_ID, with_ids, without_ids
from deployer.services.work import OnRows
from deployer.tables.ingest.ranges import Ranges
from deployer.tables.writer import Layout, Written, write_merged

if TYPE_CHECKING:
    import lance
    from numpy.typing import NDArray

WINDOW_ROWS = 65_536  #: rows that are taken at a time


@dataclass(frozen=True, slots=True)
class Arrange:
    """A task, as much as a process needs to do it. `ranges` are the leaves that its rows may go to."""

    version: int
    fragments: tuple[int, ...]
    ranges: Ranges
    layout: Layout
    arrangement: Arrangement
    scales: tuple[Scale, ...]
    sizes: Sizes
    rows: int
    bytes: int

    def done(self, dataset: lance.LanceDataset, on_rows: OnRows, threads: int) -> list[Written]:
        """All of it in memory."""
        with in_words(dataset.uri):
            return arranged(self, self._read(dataset, on_rows), dataset, on_rows, threads)

    def _read(self, dataset: lance.LanceDataset, on_rows: OnRows) -> pa.Table:
        scanner = rows_of(dataset, [dataset.get_fragment(number) for number in self.fragments])
        batches = []
        for batch in scanner.to_batches():
            on_rows(0)
            batches.append(batch)
        return pa.Table.from_batches(batches, scanner.projected_schema)


class in_words:  # noqa: N801 -- reads as a statement
    """Errors of Lance and Arrow as ours."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if isinstance(failure, OSError | RuntimeError | ValueError):  # Arrow's errors are of these kinds, too
            said = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
            raise DeployerError(
                f"rows cannot be arranged: {said}",
                where=self._where,
                remedy="`deployer state verify` says what is damaged",
            ) from failure


def arranged(
    task: Arrange, rows: pa.Table, dataset: lance.LanceDataset | None, on_rows: OnRows, threads: int = 1
) -> list[Written]:
    """Writes rows of the task in its order, each leaf's apart, as files of even sizes, several at a time."""
    if not rows.num_rows:
        return []
    with ThreadPoolExecutor(threads, "combine") as pool:
        # Not by Arrow's own pool, which asks for huge pages: a machine that is short of them stalls.
        whole = pool.submit(rows.combine_chunks, pa.system_memory_pool())
        places = task.arrangement.sorted_places(rows, task.scales)
        rows = whole.result()
    parts = [
        (leaf, part)
        for leaf, own in _by_leaf(task, rows, places)
        for part in np.array_split(own, files_of(len(own), task.bytes * len(own) // max(1, task.rows), task.sizes))
    ]
    if threads == 1 or len(parts) == 1:
        return [each for leaf, part in parts for each in _write(task, rows, part, leaf, dataset, on_rows)]
    with ThreadPoolExecutor(threads, "arrange") as pool:
        futures = [pool.submit(_write, task, rows, part, leaf, dataset, on_rows) for leaf, part in parts]
        try:
            return [each for future in futures for each in future.result()]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _by_leaf(task: Arrange, rows: pa.Table, places: NDArray[np.int64]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    names = task.ranges.partitions
    if len(names) == 1:
        yield names[0], places
        return
    row_keys = task.layout.row_keys
    splitter = task.ranges.splitter(rows.schema, row_keys)
    numbers = splitter.ranges([rows[name].combine_chunks() for name in row_keys], rows.num_rows)[places]
    for number in np.unique(numbers):
        yield names[int(number)], places[numbers == number]


def _write(
    task: Arrange,
    rows: pa.Table,
    places: NDArray[np.int64],
    leaf: str,
    dataset: lance.LanceDataset | None,
    on_rows: OnRows,
) -> list[Written]:
    """The rows at these places, in their order, as one file unless it becomes too large."""
    stored = pa.schema([field for field in rows.schema if field.name != ROW_ID])
    layout = replace(task.layout, schema=stored.serialize().to_pybytes())
    ids: list[pa.Array] = []

    def windows() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(places), WINDOW_ROWS):
            part = places[start : start + WINDOW_ROWS]
            on_rows(len(part))
            yield from rows.take(pa.array(part)).to_batches()

    in_order = task.arrangement.keeps_order
    made = with_ids(write_merged(layout, without_ids(windows(), ids), leaf, dataset, in_order=in_order), ids)
    return list(_marked(task.arrangement, rows, places, made))


def _marked(
    arrangement: Arrangement, rows: pa.Table, places: NDArray[np.int64], made: Sequence[Written]
) -> Iterator[Written]:
    """The files with what is to be known of their columns."""
    keys = arrangement.keys(rows)
    start = 0
    for each in made:
        own = pa.array(places[start : start + each.rows])
        start += each.rows
        bounds = bounds_of([column.take(own) for column in keys], arrangement.kinds)
        yield replace(each, clustered=Clustered(arrangement.name, *bounds)) if bounds else each
