"""Finds rows of a source by their primary key, for whole columns of keys at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Places = NDArray[np.int64]

SHOWN = 10  #: most keys that a message lists
SPARSEST = 2  #: limit for dense keys: their range has less than this many numbers per key
NONE = -1  #: the position of a key that the source does not have


class KeyIndex(Protocol):
    """An index of the keys of a source. The source's rows are numbered from 0."""

    def find(self, keys: pa.ChunkedArray) -> Places:
        """Returns the source's row of each key; NONE for null and for keys that the source does not have."""

    def repeated(self) -> list[Any]:
        """Returns the first keys that several rows have."""


def index_keys(keys: pa.ChunkedArray, pk: str, where: str) -> KeyIndex:
    """Returns an index of the keys of all rows of a source.

    Raises Refused, with the first ten keys or rows, for null and repeated keys, and InvalidInput for a source without
    rows.
    """
    refuse_no_rows(len(keys), where)
    refuse_null_keys(keys.null_count, null_rows(keys), len(keys), pk, where)
    index = key_index(keys)
    refuse_repeated_keys(index.repeated(), pk, where)
    return index


def key_index(keys: pa.ChunkedArray) -> KeyIndex:
    """Returns an index of keys. There must be at least one key, and no null."""
    if not _is_number(keys.type):
        return _Hashed(keys)
    numbers: Places = keys.to_numpy()
    low, high = int(numbers.min()), int(numbers.max())
    return _Dense(numbers, low, high) if high - low < SPARSEST * len(numbers) else _Sorted(numbers)


def null_rows(keys: pa.ChunkedArray) -> list[int]:
    """Returns the numbers of the first rows whose key is null, at most `SHOWN`."""
    return np.flatnonzero(keys.is_null().to_numpy())[:SHOWN].tolist() if keys.null_count else []


def refuse_no_rows(rows: int, where: str) -> None:
    """Raises InvalidInput for a source without rows."""
    if not rows:
        raise InvalidInput("the source has no rows", where=where, remedy="give files with rows")


def refuse_null_keys(number: int, first: Sequence[int], rows: int, pk: str, where: str) -> None:
    """Raises Refused where rows of the source have no key. `number` is the number of these rows, and `first` are the
    first of them."""
    if number:
        raise Refused(
            f"{number:,} of {rows:,} rows of the source have a null {pk} (rows {_listed(first)})",
            where=where,
            remedy="give each row a key, or leave these rows out",
        )


def refuse_repeated_keys(repeated: Sequence[Any], pk: str, where: str) -> None:
    """Raises Refused where several rows of the source have the same key. `repeated` are such keys."""
    if repeated:
        raise Refused(
            f"the source has several rows for the same {pk}, such as {_listed(repeated)}",
            where=where,
            remedy="keep one row for each key",
        )


def refuse_key_types(pk: str, ours: pa.DataType, theirs: pa.DataType, where: str) -> None:
    """Raises InvalidInput where keys of the source (`theirs`) cannot be compared with keys of the table (`ours`)."""
    if pa.types.is_floating(ours) or pa.types.is_nested(ours) or pa.types.is_boolean(ours):
        raise InvalidInput(
            f"column {pk} is {ours}, which is not a type of keys",
            where=where,
            remedy="choose a column of whole numbers, text or times",
        )
    if _kind(ours) != _kind(theirs):
        raise InvalidInput(
            f"column {pk} is {theirs} in the source and {ours} in the table",
            where=where,
            remedy=f"cast it to {ours} in the source",
        )


def comparable(keys: pa.ChunkedArray) -> pa.ChunkedArray:
    """Returns keys in the type in which all keys of their kind are compared."""
    kind = _kind(keys.type)
    if kind == "text":
        return keys.cast(pa.large_string())
    if kind == "binary":
        return keys.cast(pa.large_binary())
    if kind == "integer":
        return keys.cast(pa.int64())
    if pa.types.is_temporal(keys.type):
        narrow = pa.int32() if keys.type.bit_width == 32 else pa.int64()
        return keys.cast(narrow).cast(pa.int64())
    return keys


def as_given(key: object, of: pa.DataType) -> object:
    """Returns a key that has the type of `comparable` as a value of the type `of`, for messages."""
    if key is None or not pa.types.is_temporal(of):
        return key
    narrow = pa.int32() if of.bit_width == 32 else pa.int64()
    return pa.array([key], pa.int64()).cast(narrow).cast(of)[0].as_py()


def _kind(of: pa.DataType) -> Any:
    types = pa.types
    if types.is_dictionary(of):
        of = of.value_type
    if types.is_integer(of):
        return of if types.is_uint64(of) else "integer"
    if types.is_string(of) or types.is_large_string(of) or types.is_string_view(of):
        return "text"
    if types.is_binary(of) or types.is_large_binary(of) or types.is_binary_view(of):
        return "binary"
    return of


def _is_number(of: pa.DataType) -> bool:
    return bool(pa.types.is_int64(of))


class _Dense:
    """An index of dense whole numbers from `low` to `high`: an array has the row of each number."""

    def __init__(self, numbers: Places, low: int, high: int) -> None:
        self._low, self._high = low, high
        self._places = np.full(high - low + 1, NONE, np.int64)
        self._places[numbers - low] = np.arange(len(numbers))
        is_unique = np.count_nonzero(self._places != NONE) == len(numbers)
        self._repeated = [] if is_unique else _Sorted(numbers).repeated()

    def repeated(self) -> list[Any]:
        return self._repeated

    def find(self, keys: pa.ChunkedArray) -> Places:
        wanted = pc.fill_null(keys, 0).to_numpy()
        is_there = (wanted >= self._low) & (wanted <= self._high)
        if keys.null_count:
            is_there &= ~keys.is_null().to_numpy()
        return np.where(is_there, self._places[np.where(is_there, wanted - self._low, 0)], NONE)


class _Sorted:
    """An index of whole numbers that uses binary search."""

    def __init__(self, numbers: Places) -> None:
        self._order: Places | None = None
        if not bool(np.all(numbers[1:] > numbers[:-1])):
            self._order = np.argsort(numbers, kind="stable")
            numbers = numbers[self._order]
        self._keys = numbers

    def repeated(self) -> list[Any]:
        found: list[Any] = np.unique(self._keys[1:][self._keys[1:] == self._keys[:-1]])[:SHOWN].tolist()
        return found

    def find(self, keys: pa.ChunkedArray) -> Places:
        wanted = pc.fill_null(keys, 0).to_numpy()
        places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        is_there = self._keys[places] == wanted
        if keys.null_count:
            is_there &= ~keys.is_null().to_numpy()
        if self._order is not None:
            places = self._order[places]
        return np.where(is_there, places, NONE)


class _Hashed:
    """An index of keys of other types. Each call builds a hash table, so a call should have many keys."""

    def __init__(self, keys: pa.ChunkedArray) -> None:
        self._keys = keys.combine_chunks()

    def repeated(self) -> list[Any]:
        if pc.count_distinct(self._keys).as_py() == len(self._keys):
            return []
        counts = pc.value_counts(self._keys)
        return counts.field("values").filter(pc.greater(counts.field("counts"), 1)).slice(0, SHOWN).to_pylist()  # type: ignore[no-any-return]

    def find(self, keys: pa.ChunkedArray) -> Places:
        found = pc.index_in(keys, value_set=self._keys, skip_nulls=True)
        return pc.fill_null(found, NONE).to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values[:SHOWN]))
