"""Finds rows of a source by their primary key, whole columns at a time."""

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

SHOWN = 10  #: keys that a message lists
SPARSEST = 2  #: keys that are dense whole numbers: at most so many numbers lie in their range for each key
NONE = -1  #: the place of a key that the source does not have


class KeyIndex(Protocol):
    """The keys of a source, whose rows count from 0."""

    def find(self, keys: pa.ChunkedArray) -> Places:
        """Returns the source's row of each key, or NONE; null is never found."""

    def repeated(self) -> list[Any]:
        """Returns the first keys that several rows have."""


def index_keys(keys: pa.ChunkedArray, pk: str, where: str) -> KeyIndex:
    """Indexes the keys of all rows of a source.

    Raises Refused for null and repeated keys, with the first ten, and InvalidInput for a source without rows.
    """
    refuse_no_rows(len(keys), where)
    refuse_null_keys(keys.null_count, null_rows(keys), len(keys), pk, where)
    index = key_index(keys)
    refuse_repeated_keys(index.repeated(), pk, where)
    return index


def key_index(keys: pa.ChunkedArray) -> KeyIndex:
    """Indexes keys, of which there is at least one and none is null."""
    if not _is_number(keys.type):
        return _Hashed(keys)
    numbers: Places = keys.to_numpy()
    low, high = int(numbers.min()), int(numbers.max())
    return _Dense(numbers, low, high) if high - low < SPARSEST * len(numbers) else _Sorted(numbers)


def null_rows(keys: pa.ChunkedArray) -> list[int]:
    """Returns the first rows whose key is null."""
    return np.flatnonzero(keys.is_null().to_numpy())[:SHOWN].tolist() if keys.null_count else []


def refuse_no_rows(rows: int, where: str) -> None:
    """Raises InvalidInput for a source without rows."""
    if not rows:
        raise InvalidInput("the source has no rows", where=where, remedy="give files with rows")


def refuse_null_keys(number: int, first: Sequence[int], rows: int, pk: str, where: str) -> None:
    """Raises Refused where `number` of the rows of the source have no key; `first` are some of them."""
    if number:
        raise Refused(
            f"{number:,} of {rows:,} rows of the source have a null {pk} (rows {_listed(first)})",
            where=where,
            remedy="give each row a key, or leave these rows out",
        )


def refuse_repeated_keys(repeated: Sequence[Any], pk: str, where: str) -> None:
    """Raises Refused where keys are those of several rows of the source."""
    if repeated:
        raise Refused(
            f"the source has several rows for the same {pk}, such as {_listed(repeated)}",
            where=where,
            remedy="keep one row for each key",
        )


def refuse_key_types(pk: str, ours: pa.DataType, theirs: pa.DataType, where: str) -> None:
    """Raises InvalidInput where keys of the source cannot be compared with those of the table."""
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
    """Returns keys in the one type in which those of a kind are compared."""
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
    """Returns a key in the type of `comparable` as one of a column of that type, to be shown."""
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
    """Whole numbers from `low` to `high`, most of which are there: an array has the place of each."""

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
    """Whole numbers, by binary search."""

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
    """Keys of other types. The table of hashes is made for each call, so calls are to be of many keys."""

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
