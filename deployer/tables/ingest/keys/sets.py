"""Sets of row keys of all key types, with look-ups that process whole columns at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.ordering.key_ranges import comparable

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_ROWS = 1_048_576  #: rows of a look-up; it is large because Arrow prepares each column of the set every time
BLOCK_BYTES = 64 * 1024 * 1024  #: bytes from which on a look-up begins, even with fewer rows


class KeySet:
    """The distinct keys of some rows, numbered from 0. `codes` has the number of the key of each row.

    Keys are compared as in the order of a table's keys: -0.0 equals 0.0, and NaN equals NaN.
    """

    def __init__(self, keys: Sequence[Any]) -> None:
        """`keys` are the columns of the keys, arrays of one length without nulls."""
        self._columns: list[_Integers | _Values] = []
        self._pairs: list[NDArray[np.int64]] = []
        self.codes: NDArray[np.int64] = np.zeros(0, np.int64)
        self.count = 0
        for place, column in enumerate(keys):
            values = plain(column)
            found, own = (_Integers if pa.types.is_integer(values.type) else _Values).of(values)
            self._columns.append(found)
            if place:
                pairs, self.codes = np.unique(self.codes * found.count + own, return_inverse=True)
                self._pairs.append(pairs)
                self.count = len(pairs)
            else:
                self.codes, self.count = own, found.count

    def repeats(self) -> NDArray[np.bool_]:
        """Returns a mask of the rows that have the key of an earlier row."""
        repeated: NDArray[np.bool_] = self.first_rows()[self.codes] != np.arange(len(self.codes))
        return repeated

    def present(self, others: Iterable[pa.RecordBatch]) -> NDArray[np.bool_]:
        """Returns a mask of the keys, by number, that are also keys of `others`, which have only the key columns."""
        found = np.zeros(self.count, np.bool_)
        for block in blocks(others):
            found[self.matches(block.columns)[0]] = True
            if found.all():
                break
        return found

    def first_rows(self) -> NDArray[np.int64]:
        """Returns the index of the first row of each key, by the number of the key."""
        first = np.empty(self.count, np.int64)
        first[self.codes[::-1]] = np.arange(len(self.codes))[::-1]  # the last of several assignments to an index holds
        return first

    def matches(self, keys: Sequence[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns, for those of the `keys` that are in the set, their numbers and their row indexes in `keys`."""
        if not self.count:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        codes, alive = self._columns[0].numbers(plain(keys[0]))
        for column, pairs, others in zip(self._columns[1:], self._pairs, keys[1:], strict=True):
            own, kept = column.numbers(plain(others).take(pa.array(alive)))
            wanted = codes[kept] * column.count + own
            places = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            hits = np.flatnonzero(pairs[places] == wanted)
            codes, alive = places[hits], alive[kept[hits]]
        return codes, alive


@dataclass(frozen=True, slots=True)
class _Integers:
    """The distinct values of a column of whole numbers, ascending."""

    values: NDArray[Any]

    @staticmethod
    def of(array: Any) -> tuple[_Integers, NDArray[np.int64]]:
        """Returns the distinct values, and the number of the value of each row."""
        values, codes = np.unique(np.asarray(array), return_inverse=True)
        return _Integers(values), codes.astype(np.int64, copy=False)

    @property
    def count(self) -> int:
        return len(self.values)

    def numbers(self, array: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns, for those values of `array` that are in the set, their numbers and their row indexes."""
        wanted = np.asarray(array)
        if _is_ascending(wanted):
            low, high = np.searchsorted(self.values, wanted[0]), np.searchsorted(self.values, wanted[-1], "right")
            if high - low < len(wanted) // 2:  # each of them is looked up twice
                return self._numbers_in_order(wanted, np.arange(low, high))
        places = np.minimum(np.searchsorted(self.values, wanted), len(self.values) - 1)
        rows = np.flatnonzero(self.values[places] == wanted)
        return places[rows], rows

    def _numbers_in_order(
        self, ascending: NDArray[Any], places: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the result of `numbers` for ascending values, such as those of a file that is sorted by its keys.
        Looks up the few values at `places` in `ascending`, where the same value may be in several rows."""
        starts = np.searchsorted(ascending, self.values[places])
        counts = np.searchsorted(ascending, self.values[places], "right") - starts
        before = np.cumsum(counts) - counts  # rows of the values at earlier places
        return np.repeat(places, counts), np.repeat(starts - before, counts) + np.arange(counts.sum())


@dataclass(frozen=True, slots=True)
class _Values:
    """The distinct values of a column of any other type."""

    values: Any

    @staticmethod
    def of(array: Any) -> tuple[_Values, NDArray[np.int64]]:
        encoded = array.dictionary_encode()
        return _Values(encoded.dictionary), np.asarray(encoded.indices).astype(np.int64, copy=False)

    @property
    def count(self) -> int:
        return len(self.values)

    def numbers(self, array: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        found = pc.index_in(array, value_set=self.values)
        rows = np.flatnonzero(np.asarray(pc.is_valid(found).cast(pa.int8())))
        return np.asarray(found.drop_null()).astype(np.int64, copy=False), rows


def _is_ascending(values: NDArray[Any]) -> bool:
    return len(values) > 1 and bool((values[1:] >= values[:-1]).all())


def blocks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yields the batches, joined to tables that are large enough for a look-up."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= BLOCK_ROWS or size >= BLOCK_BYTES:
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(held)


def plain(values: Any) -> Any:
    """Returns one array of `comparable` values in which equal values have the same bytes."""
    array = comparable(values)
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_floating(array.type):
        array = pc.add(array, pa.scalar(0.0, array.type))  # -0.0 + 0.0 is 0.0
        array = pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), array.type), array)
    return array
