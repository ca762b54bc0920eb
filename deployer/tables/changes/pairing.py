"""Pairs the removed and added versions of the same row in a commit: such a pair is an update.

Keys are compared in blocks, so that memory holds one block of keys and a byte for each row of the fragments that the
commit touched, however many rows that are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.files.row_ids import ROW_ID
from deployer.tables.changes.rows import ADDRESS, FeedColumn
from deployer.tables.changes.sides import Side
from deployer.tables.ingest.keys.sets import KeySet

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_ROWS = 1_048_576  #: keys in memory at a time

Keys: TypeAlias = "tuple[NDArray[np.uint64], list[Any]]"  #: addresses of rows, and the columns of their keys
ReadKeys = Callable[[Side], Iterator[Keys]]


@dataclass(slots=True)
class RowSet:
    """A set of rows by their addresses: a byte for each row of every fragment with such rows."""

    _rows: dict[int, NDArray[np.bool_]] = field(default_factory=dict)

    def add(self, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Adds rows, and returns those that were in the set before."""
        return self._set(addresses, value=True)

    def remove(self, addresses: NDArray[np.uint64]) -> None:
        self._set(addresses, value=False)

    def of(self, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Returns which of the rows are in the set."""
        found = np.zeros(len(addresses), np.bool_)
        for number, places, offsets in _by_fragment(addresses):
            own = self._rows.get(number)
            if own is not None:
                inside = offsets < len(own)
                found[places[inside]] = own[offsets[inside]]
        return found

    def _set(self, addresses: NDArray[np.uint64], *, value: bool) -> NDArray[np.uint64]:
        there = []
        for number, places, offsets in _by_fragment(addresses):
            own = self._rows.get(number, np.zeros(0, np.bool_))
            if (needed := int(offsets.max()) + 1) > len(own):
                own = np.concatenate([own, np.zeros(max(needed, 2 * len(own)) - len(own), np.bool_)])
            there.append(addresses[places[own[offsets]]])
            own[offsets] = value
            self._rows[number] = own
        return np.concatenate([np.zeros(0, np.uint64), *there])


def _by_fragment(addresses: NDArray[np.uint64]) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """Yields fragments, the places of their addresses, and their offsets."""
    numbers = addresses >> np.uint64(32)
    offsets = (addresses & np.uint64(0xFFFFFFFF)).astype(np.int64)
    for number in np.unique(numbers):
        places = np.flatnonzero(numbers == number)
        yield int(number), places, offsets[places]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Removed rows and added rows that belong to each other: one of each for a key."""

    took: RowSet = field(default_factory=RowSet)
    put: RowSet = field(default_factory=RowSet)


def paired(took: Side, put: Side, read: ReadKeys) -> Pairs:
    """Returns the pairs of rows whose key `read` returns once on each side. A key of several rows on one side is not a
    pair, because it is unknown which rows belong to each other."""
    pairs = Pairs()
    turned = put.size < took.size
    held, other = (put, took) if turned else (took, put)
    of_held, of_other = (pairs.put, pairs.took) if turned else (pairs.took, pairs.put)
    seen, twice = RowSet(), list[Any]()
    for addresses, columns in _blocks(read(held)):
        keys = KeySet(columns)
        counts, hits = np.zeros(keys.count, np.int64), list[Any]()
        for others, theirs in read(other):
            codes, places = keys.matches(theirs)
            counts += np.bincount(codes, minlength=keys.count)
            hits.append((others[places], codes))
        once = (np.bincount(keys.codes, minlength=keys.count) == 1) & (counts == 1)
        of_held.add(addresses[once[keys.codes]])
        for found, codes in hits:
            of_other.add(found[once[codes]])
            twice.append(seen.add(found))
    repeated = np.unique(np.concatenate([np.zeros(0, np.uint64), *twice]))
    repeated = repeated[of_other.of(repeated)]
    if len(repeated):  # with keys that two blocks have
        _part(held, other, of_held, of_other, repeated, read)
    return pairs


def _part(held: Side, other: Side, of_held: RowSet, of_other: RowSet, rows: NDArray[np.uint64], read: ReadKeys) -> None:
    """Removes these rows of `other`, and those of `held` with the same keys, from the pairs."""
    found: list[list[Any]] = []
    for addresses, columns in read(other):
        chosen = pa.array(np.flatnonzero(np.isin(addresses, rows)))
        if len(chosen):
            found.append([column.take(chosen) for column in columns])
    keys = KeySet([pa.concat_arrays(list(parts)) for parts in zip(*found, strict=True)])
    of_other.remove(rows)
    for addresses, columns in read(held):
        of_held.remove(addresses[keys.matches(columns)[1]])


def _blocks(keys: Iterator[Keys]) -> Iterator[Keys]:
    held: list[Keys] = []
    rows = 0
    for each in keys:
        held.append(each)
        rows += len(each[0])
        if rows >= BLOCK_ROWS:
            yield _joined(held)
            held, rows = [], 0
    if rows:
        yield _joined(held)


def _joined(parts: Sequence[Keys]) -> Keys:
    columns = [pa.concat_arrays(list(each)) for each in zip(*(columns for _, columns in parts), strict=True)]
    return np.concatenate([addresses for addresses, _ in parts]), columns


def keys_of(columns: Sequence[FeedColumn]) -> ReadKeys:
    """Returns a function that reads the keys in these columns; rows with a null in a key column have no key."""

    def read(side: Side) -> Iterator[Keys]:
        for batch in side.rows(columns):
            arrays = [batch.column(column.name) for column in columns]
            if any(array.null_count for array in arrays):
                valid = [np.asarray(pc.is_valid(array)) for array in arrays]
                there = pa.array(np.flatnonzero(np.logical_and.reduce(valid)))
                batch = batch.take(there)
                arrays = [batch.column(column.name) for column in columns]
            yield np.asarray(batch.column(ADDRESS)), arrays

    return read


def row_ids(side: Side) -> Iterator[Keys]:
    """Yields the row ids of tables that keep them."""
    for batch in side.rows([], with_ids=True):
        yield np.asarray(batch.column(ADDRESS)), [batch.column(ROW_ID).cast(pa.int64())]


def values_of(columns: Sequence[FeedColumn]) -> ReadKeys:
    """Returns a function that reads whole rows as one text each, by which equal rows are found."""

    def read(side: Side) -> Iterator[Keys]:
        for batch in side.rows(columns):
            texts = [_texts(batch.column(column.name)) for column in columns]
            yield np.asarray(batch.column(ADDRESS)), [_joined_texts(texts, batch.num_rows)]

    return read


def _texts(values: Any) -> Any:
    """Returns a text for each value; different values have different ones."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind):
        return values.cast(pa.large_string())
    if pa.types.is_integer(kind):
        return values.cast(pa.large_string())
    found = [None if value is None else repr(value) for value in values.to_pylist()]
    return pa.array(found, pa.large_string())


def _joined_texts(texts: Sequence[Any], rows: int) -> Any:
    """Joins the texts of each row, each after its length, so that different rows have different texts."""
    if not texts:
        return pa.array([""] * rows, pa.large_string())
    parts = []
    for each in texts:
        length = pc.fill_null(pc.utf8_length(each).cast(pa.large_string()), "-")
        parts += [length, pa.scalar(":", pa.large_string()), pc.fill_null(each, "")]
    return pc.binary_join_element_wise(*parts, pa.scalar("", pa.large_string()))
