"""The order of rows in a table, and which range of keys a row belongs to, computed over whole columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.ordering.key_ranges import comparable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.specs.model import KeyValue


def sorted_rows(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Returns the rows in ascending order of `columns` (row keys, then sort keys), nulls last.

    Equal rows may change places. Strings order by their UTF-8 bytes, NaN after all numbers, as encoded keys do.
    """
    if not columns or table.num_rows < 2:
        return table
    table = table.combine_chunks()
    keys = pa.table([comparable(table[name]) for name in columns], [str(i) for i in range(len(columns))])
    order = pc.sort_indices(keys, [(name, "ascending") for name in keys.column_names])  # nulls go last
    return table.take(order)


class Splitter:
    """Finds the range of each row, from the keys that separate the ranges: range i holds split[i-1] <= key < split[i].

    `splits` are prefixes of the row-key tuple in ascending order, as `deployer.state.model.keys.decode_key` returns
    them.
    """

    def __init__(self, types: Sequence[pa.DataType], splits: Sequence[Sequence[KeyValue]]) -> None:
        self.count = len(splits)
        self._columns = [
            _SplitColumn(kind, i, splits) for i, kind in enumerate(types) if any(len(s) > i for s in splits)
        ]

    def ranges(self, keys: Sequence[Any], rows: int) -> NDArray[np.int64]:
        """Returns the number of the range of each row; `rows` is the number of rows, `keys` are their row-key columns
        (arrays without nulls)."""
        low = np.zeros(rows, np.int64)
        if not self.count or not rows:
            return low
        values = [column.prepared(keys[i]) for i, column in enumerate(self._columns)]
        alone = self._columns[0].values if len(self._columns) == 1 else None
        if alone is not None:
            found: NDArray[np.int64] = np.searchsorted(alone, values[0], side="right").astype(np.int64, copy=False)
            return found
        high = np.full(rows, self.count, np.int64)
        while (open_ := low < high).any():
            middle = np.minimum((low + high) // 2, self.count - 1)
            above = self._at_least(values, middle)
            low = np.where(open_ & above, middle + 1, low)
            high = np.where(open_ & ~above, middle, high)
        return low

    def _at_least(self, values: Sequence[Any], split: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns whether each row's key is at or above its split. Columns are compared from the last to the first."""
        result = np.ones(len(split), np.bool_)
        for column, value in zip(reversed(self._columns), reversed(values), strict=True):
            greater, equal = column.compare(value, split)
            result = ~column.given[split] | greater | (equal & result)
        return result


class _SplitColumn:
    """One row-key column of all splits; `given` says which splits have a value for the column."""

    def __init__(self, kind: pa.DataType, index: int, splits: Sequence[Sequence[KeyValue]]) -> None:
        found = [split[index] for split in splits if len(split) > index]
        values: list[Any] = [split[index] if len(split) > index else found[0] for split in splits]
        self.given = np.array([len(split) > index for split in splits])
        self.array = _key_array(kind, values)
        self.values = _numpy(self.array)

    def prepared(self, column: Any) -> Any:
        array = comparable(column)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        numbers = _numpy(array)
        return array if numbers is None else numbers

    def compare(self, value: Any, split: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        if self.values is not None:
            other = self.values[split]
            if other.dtype.kind != "f":
                return value > other, value == other
            lone, both = np.isnan(value) & ~np.isnan(other), np.isnan(value) & np.isnan(other)
            return (value > other) | lone, (value == other) | both
        other = self.array.take(pa.array(split))
        return _mask(pc.greater(value, other)), _mask(pc.equal(value, other))


def _key_array(kind: pa.DataType, values: Sequence[Any]) -> Any:
    """Returns key values of the state store as an array of `comparable` values."""
    shape = comparable(pa.array([], kind)).type
    if pa.types.is_decimal(shape):
        return pc.cast(pa.array(values, pa.string()), shape)
    return pa.array(values, shape)


def _numpy(array: Any) -> NDArray[Any] | None:
    """Returns numbers and booleans as numpy values, which compare faster; None for other types."""
    if pa.types.is_boolean(array.type):
        return np.asarray(array.cast(pa.int8()))
    return np.asarray(array) if pa.types.is_integer(array.type) or pa.types.is_floating(array.type) else None


def _mask(array: Any) -> NDArray[np.bool_]:
    return np.asarray(array.cast(pa.int8())).astype(np.bool_)
