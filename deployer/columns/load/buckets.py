"""Brings the values of a source into the order of a table's fragments: in memory where they are few, or else sorted
into buckets.

A bucket has the values for a range of the table's rows. The source is read once, part by part, and the values of a part
are appended to the files of the buckets that need them. Therefore memory holds one part and a few buckets, for a source
of any size and order.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from deployer.columns.fill.work import FragmentWork
from deployer.columns.load.keys import NONE
from deployer.tables.ingest.files.columnar import ALIGNED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Places = NDArray[np.int64]

BUCKET_BYTES = 64_000_000  #: about the bytes of the values of a bucket
OPEN_BUCKETS = 3  #: most buckets in memory at the same time

Read = Callable[[], Iterator[pa.Table]]  #: yields all rows of the source in order, part by part


class Values(Protocol):
    """The values for the rows of fragments."""

    def take(self, work: FragmentWork, start: int, places: Places) -> pa.Table:
        """Returns the values for the rows of a fragment from `start` on. `places` has the position of each row in the
        source; a negative position gives null."""


class HeldValues:
    """The values of a whole source in memory."""

    def __init__(self, parts: Iterator[pa.Table]) -> None:
        self._values = pa.concat_tables(parts).combine_chunks()

    def take(self, work: FragmentWork, start: int, places: Places) -> pa.Table:
        return taken(self._values, places)


@dataclass(frozen=True, slots=True)
class _Bucket:
    """A bucket for the rows `start` to `stop` of all rows of the fragments.

    `needs` are the rows of the source that the bucket's file has, ascending. `slots` has, for each row of the bucket,
    its row in the file; negative where the source has no row for it.
    """

    number: int
    start: int
    stop: int
    needs: Places
    slots: NDArray[np.int32]


class BucketValues:
    """The values of a source that some fragments need, in files below `folder`."""

    def __init__(
        self, folder: Path, works: Sequence[FragmentWork], places: Mapping[int, Places], read: Read, row_bytes: int
    ) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._first: dict[int, int] = {}
        rows = 0
        for work in works:
            self._first[work.fragment_id] = rows
            rows += work.physical_rows
        self._rows = max(1_024, BUCKET_BYTES // max(1, row_bytes))
        self._buckets = list(_buckets(works, places, self._rows))
        self._open: OrderedDict[int, pa.Table] = OrderedDict()
        _sort_into(folder, self._buckets, read)

    def take(self, work: FragmentWork, start: int, places: Places) -> pa.Table:
        first = self._first[work.fragment_id] + start
        found = []
        for number in range(first // self._rows, (first + max(0, len(places) - 1)) // self._rows + 1):
            bucket = self._buckets[number]
            low, high = max(0, first - bucket.start), first + len(places) - bucket.start
            found.append(taken(self._values(bucket), bucket.slots[low:high]))
        return pa.concat_tables(found)

    def _values(self, bucket: _Bucket) -> pa.Table:
        with self._lock:
            if bucket.number in self._open:
                self._open.move_to_end(bucket.number)
                return self._open[bucket.number]
            with (
                pa.memory_map(str(_path(self._folder, bucket))) as file,
                pa.ipc.open_stream(file, options=ALIGNED) as reader,
            ):
                table = reader.read_all().combine_chunks()
            self._open[bucket.number] = table
            while len(self._open) > OPEN_BUCKETS:
                self._open.popitem(last=False)
            return table


def _buckets(works: Sequence[FragmentWork], places: Mapping[int, Places], size: int) -> Iterator[_Bucket]:
    """Yields the buckets in order, each with at most `size` rows."""
    held: list[Places] = []
    start = rows = number = 0
    for work in works:
        left = places[work.fragment_id]
        while len(left):
            part, left = left[: size - rows], left[size - rows :]
            held.append(part)
            rows += len(part)
            if rows == size:
                yield _bucket(number, start, start + rows, held)
                held, start, rows, number = [], start + rows, 0, number + 1
    if rows:
        yield _bucket(number, start, start + rows, held)


def _bucket(number: int, start: int, stop: int, held: Sequence[Places]) -> _Bucket:
    places = np.concatenate(held)
    order = np.argsort(places)
    order = order[np.searchsorted(places, 0, sorter=order) :]
    slots = np.full(len(places), NONE, np.int32)
    slots[order] = np.arange(len(order), dtype=np.int32)
    return _Bucket(number, start, stop, places[order], slots)


def _sort_into(folder: Path, buckets: Sequence[_Bucket], read: Read) -> None:
    """Reads the source once, and writes the values that each bucket needs to its file, in the order of `needs`."""
    writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
    row = 0
    try:
        for part in read():
            part = part.combine_chunks()
            for bucket in buckets:
                low, high = np.searchsorted(bucket.needs, (row, row + part.num_rows))
                if high > low or bucket.number not in writers:
                    if bucket.number not in writers:
                        writers[bucket.number] = pa.ipc.new_stream(str(_path(folder, bucket)), part.schema)
                    writers[bucket.number].write_table(taken(part, bucket.needs[low:high] - row))
            row += part.num_rows
    finally:
        for writer in writers.values():
            writer.close()


def _path(folder: Path, bucket: _Bucket) -> Path:
    return folder / f"bucket-{bucket.number}.arrows"


def taken(values: pa.Table, places: NDArray[np.integer[Any]]) -> pa.Table:
    """Returns the rows at `places` of a table whose columns have one chunk each; a negative place gives null."""
    if not len(places):
        return values.slice(0, 0)
    first = int(places[0])
    if first >= 0 and int(places[-1]) - first == len(places) - 1 and bool(np.all(places[1:] - places[:-1] == 1)):
        return values.slice(first, len(places))  # consecutive rows are not copied
    is_none = places < 0
    return values.take(pa.array(places, mask=is_none if bool(is_none.any()) else None))
