"""Arranges the rows of a task that does not fit in memory.

The rows are first divided by ranges of the curve, each of which fits in memory. In this process the parts go through
files in a temporary folder; with Spark they go through its shuffle, as Arrow messages.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.writer import WrittenFragment
from deployer.platform.files.temporary import temporary_folder
from deployer.runs.rewriting.executor import OnRows, collected, no_row_progress
from deployer.runs.rewriting.sorted_runs import rows_of
from deployer.runs.rewriting.tasks import files_of
from deployer.services.kinds.cluster.sort_task import Arrange, arranged, translated_errors
from deployer.tables.ingest.driver import parted
from deployer.tables.ingest.files.columnar import ALIGNED
from deployer.tables.ingest.spark import (
    BATCH_SETTING,
    MESSAGES_A_BATCH,
    ids_of,
    larger,
    message,
    partition_keys,
    result,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset

HELD_BYTES = 512_000_000  #: the largest size of the files of a task that is arranged in memory


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A task on one leaf, and the positions on the curve at which its rows are divided into ranges."""

    task: Arrange
    splits: NDArray[np.uint64]

    @staticmethod
    def of(task: Arrange, sample: list[pa.ChunkedArray]) -> Shuffle:
        """Adds one range for each new file. By a sample of the columns, the ranges have about the same number of
        rows."""
        found = np.sort(task.arrangement.positions(sample, task.scales))
        ranges = files_of(task.rows, task.bytes, task.sizes)
        ends = [len(found) * number // ranges for number in range(1, ranges)]
        return Shuffle(task, np.unique(found[ends]) if len(found) else np.zeros(0, np.uint64))

    @property
    def version(self) -> int:
        return self.task.version

    @property
    def rows(self) -> int:
        return self.task.rows

    @property
    def ranges(self) -> int:
        return len(self.splits) + 1

    def done(self, dataset: LanceDataset, on_rows: OnRows, threads: int) -> list[WrittenFragment]:
        """Shuffles through files in a temporary folder."""
        with temporary_folder("cluster") as folder, translated_errors(dataset.uri):
            self._spill(dataset, folder, on_rows)
            return [
                each
                for path in sorted(folder.glob("*.arrow"))
                for each in self.gathered(_spilled(path), dataset, on_rows, threads)
            ]

    def _spill(self, dataset: LanceDataset, folder: Path, on_rows: OnRows) -> None:
        writers: dict[int, pa.ipc.RecordBatchFileWriter] = {}
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        try:
            for batch in rows_of(dataset, [dataset.get_fragment(each) for each in self.task.fragments]).to_batches():
                on_rows(0)
                for number, part in self.parted(batch):
                    if number not in writers:
                        path = str(folder / f"{number:06}.arrow")
                        writers[number] = pa.ipc.new_file(path, batch.schema, options=options)
                    writers[number].write_batch(part)
        finally:
            for writer in writers.values():
                writer.close()

    def parted(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yields the rows of each range with the number of the range."""
        arrangement = self.task.arrangement
        found = arrangement.positions(arrangement.keys(batch), self.task.scales)
        yield from parted(batch, np.searchsorted(self.splits, found, side="right"))

    def gathered(
        self, rows: pa.Table, dataset: LanceDataset | None, on_rows: OnRows, threads: int = 1
    ) -> list[WrittenFragment]:
        """Writes all rows of one range."""
        size = self.task.bytes * rows.num_rows // max(1, self.task.rows)
        return arranged(replace(self.task, rows=rows.num_rows, bytes=size), rows, dataset, on_rows, threads)


def _spilled(path: Path) -> pa.Table:
    with pa.ipc.open_file(str(path)) as reader:
        found = reader.read_all()
    path.unlink()
    return found


def shuffled(session: SparkSession, location: str, shuffle: Shuffle, on_rows: OnRows) -> list[WrittenFragment]:
    """Writes the rows with a Spark job of two stages, as loads do: a task for each fragment, then one for each
    range."""
    keys = partition_keys(shuffle.ranges)
    count = len(shuffle.task.fragments)
    before = session.conf.get(BATCH_SETTING)
    session.conf.set(BATCH_SETTING, MESSAGES_A_BATCH)
    try:
        fragments = session.range(0, count, 1, count)
        messages = fragments.mapInArrow(_Scatter(location, shuffle, tuple(keys)), "range int, rows binary")
        frame = messages.repartition(shuffle.ranges, "range").mapInArrow(_Gather(location, shuffle), "written binary")
        found = collected(session, frame, location, shuffle.rows, on_rows)
    finally:
        session.conf.set(BATCH_SETTING, before or "10000")
    return [each for row in found for each in pickle.loads(row["written"])]  # noqa: S301 (made by our tasks)


@dataclass(frozen=True, slots=True)
class _Scatter:
    """The first stage: it turns the rows of a fragment into messages for their ranges."""

    location: str
    shuffle: Shuffle
    keys: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dataset = open_dataset(self.location, self.shuffle.version)
        for number in ids_of(batches):
            fragment = dataset.get_fragment(self.shuffle.task.fragments[number])
            for rows in larger(rows_of(dataset, [fragment]).to_batches()):
                for place, part in self.shuffle.parted(rows):
                    yield message(self.keys[place], part)


@dataclass(frozen=True, slots=True)
class _Gather:
    """The second stage: it arranges and writes the rows of one range."""

    location: str
    shuffle: Shuffle

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [
            rows
            for batch in batches
            for sent in batch.column(1)
            for rows in pa.ipc.open_stream(sent.as_buffer(), options=ALIGNED)
        ]
        dataset = open_dataset(self.location, self.shuffle.version)
        yield result(self.shuffle.gathered(pa.Table.from_batches(held), dataset, no_row_progress) if held else [])
