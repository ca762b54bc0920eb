"""Reads the blobs that a function takes as inputs, a limited number of bytes at a time: by ranges of the blobs' files,
or each blob by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.columns.backfill.request import BlobReadStrategy
from deployer.errors import InvalidInput
from deployer.specs.types.types import Blob, Column, holds_blob
from deployer.tables.rows.matching import ADDRESS

if TYPE_CHECKING:
    from deployer.columns.fill.live_rows import Offsets
    from deployer.datasets.lance_types import LanceDataset

Joined = Iterator[tuple["Offsets", pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class BlobInputs:
    """The inputs that are blobs (`top`) or have blobs in a nested field (`nested`), and how they are read.

    At most `buffer` bytes of blobs are read at a time; a larger blob is read alone. The strategy `auto` reads ranges of
    the blobs' files where this is possible, `range` always does, and `legacy` opens each blob by itself.
    """

    top: tuple[str, ...]
    nested: tuple[str, ...]
    strategy: BlobReadStrategy
    buffer: int

    @staticmethod
    def of(columns: Sequence[Column], strategy: BlobReadStrategy, buffer: int, threads: int) -> BlobInputs:
        """Returns how the blobs among these columns are read. All `threads` of the process share the `buffer` bytes."""
        top = tuple(each.name for each in columns if isinstance(each.type, Blob))
        nested = tuple(each.name for each in columns if each.name not in top and holds_blob(each.type))
        return BlobInputs(top, nested, strategy, max(1, buffer // max(1, threads)))

    def check(self, dataset: LanceDataset) -> None:
        """Raises InvalidInput for blobs that the strategy cannot read."""
        if self.nested and self.strategy == "range":
            raise InvalidInput(
                f"column {self.nested[0]} has blobs in a nested field of files of format "
                f"{dataset.data_storage_version}, which cannot be read by ranges",
                remedy='leave blob_read_strategy out, or give "auto"',
            )

    @property
    def handling(self) -> dict[str, Any]:
        """The arguments of a scan: it returns positions and sizes of top-level blobs, which `joined` reads, or the
        blobs' bytes."""
        if self.top and not self.nested:
            return {"blob_handling": "blobs_descriptions"}
        return {"blob_handling": "all_binary"} if self.nested else {}

    def scanned(self, inputs: Sequence[str]) -> list[str]:
        """Returns the columns to scan, without duplicates: several parameters may read one column."""
        return list(dict.fromkeys(inputs))

    def joined(
        self, dataset: LanceDataset, offsets: Offsets, batch: pa.RecordBatch, inputs: Sequence[str], fragment_id: int
    ) -> Joined:
        """Yields the rows with the bytes of their blobs, in parts of at most `buffer` bytes of blobs."""
        names = self.scanned(inputs)
        if not self.top or self.nested:
            yield offsets, batch.select(names)
            return
        sizes = sum(_sizes(batch.column(name)) for name in self.top)
        for start, stop in _parts(np.asarray(sizes), self.buffer):
            part = batch.slice(start, stop - start)
            addresses = part.column(ADDRESS).to_pylist()
            columns = [
                self._read(dataset, name, addresses, part.column(name)) if name in self.top else part.column(name)
                for name in names
            ]
            yield offsets[start:stop], pa.RecordBatch.from_arrays(columns, names=names)

    def _read(self, dataset: LanceDataset, name: str, addresses: Sequence[int], places: pa.Array) -> pa.Array:
        """Returns the bytes of one column's blobs; null where a row has no blob."""
        wanted = [row for row, there in zip(addresses, pc.is_valid(places).to_pylist(), strict=True) if there]
        if not wanted:
            return pa.nulls(len(addresses), pa.large_binary())
        if self.strategy == "legacy":
            opened = dataset.take_blobs(name, addresses=wanted)
            found = {row: each.readall() for row, each in zip(wanted, opened, strict=True) if each is not None}
        else:
            read = dataset.read_blobs(name, addresses=wanted, io_buffer_size=self.buffer, preserve_order=True)
            found = {row: blob for row, blob in read if blob is not None}
        return pa.array([found.get(row) for row in addresses], pa.large_binary())


def _sizes(places: pa.StructArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    found = pc.fill_null(pc.struct_field(places, "size"), 0)
    sizes: np.ndarray[Any, np.dtype[np.int64]] = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


def _parts(sizes: np.ndarray[Any, np.dtype[np.int64]], most: int) -> Iterator[tuple[int, int]]:
    """Yields ranges of rows with at most `most` bytes; a larger row is a range of its own."""
    start = total = 0
    for place, size in enumerate(sizes.tolist()):
        if place > start and total + size > most:
            yield start, place
            start, total = place, 0
        total += size
    if start < len(sizes):
        yield start, len(sizes)
