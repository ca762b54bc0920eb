"""The position of a value in its column, as a whole number, for curves.

Positions are shares of the rows with smaller values, by quantiles of a sample. So each half of the positions has half
of the rows, whatever the distribution of values, and columns of every type have the same weight. Nulls come last, NaN
after all numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.ordering.key_ranges import comparable
from deployer.runs.rewriting.merging import merge_order
from deployer.services.kinds.cluster.curves import MOST_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

QUANTILES = 1 << MOST_BITS  #: most distinct values of a column
_MANY = 4  # distinct values are looked up where they are fewer than the values by this factor


@dataclass(frozen=True, slots=True)
class Scale:
    """The positions of a column's values.

    `values` are ascending and distinct, in the form of `comparable`; `places[i]` is the position of values from the
    i-th on. Smaller values have the position 0, nulls `null`.
    """

    values: pa.Array
    places: NDArray[np.uint64]
    null: int

    @staticmethod
    def of(sample: Any, bits: int) -> Scale:
        """Makes the ranks from a sample of the column."""
        column = _array(comparable(sample))
        rows, nulls = len(column), column.null_count
        last = (1 << bits) - 1
        known = column.drop_null()
        ordered = known.take(pa.array(merge_order(pa.table([known], ["value"]))))
        if len(ordered) > QUANTILES:
            ordered = ordered.take(pa.array(np.linspace(0, len(ordered) - 1, QUANTILES).astype(np.int64)))
        first = np.flatnonzero(_differs(ordered))
        share = (rows - nulls) / max(1, rows)
        places = np.floor(first / max(1, len(ordered)) * share * (last + 1)).astype(np.uint64)
        null = min(last, int(share * (last + 1))) if nulls else last
        return Scale(ordered.take(pa.array(first)), places, null)

    def of_rows(self, column: Any) -> NDArray[np.uint64]:
        """Returns the position of each value of an array."""
        values = _array(comparable(column))
        nulls = np.asarray(values.is_null()) if values.null_count else None
        if not pa.types.is_integer(values.type) and not pa.types.is_floating(values.type):
            encoded = values.dictionary_encode()
            if len(encoded.dictionary) * _MANY <= len(values) or pa.types.is_boolean(values.type):
                own = self._of_known(encoded.dictionary)
                codes = np.asarray(encoded.indices.fill_null(0) if encoded.indices.null_count else encoded.indices)
                found = own[codes] if len(own) else np.zeros(len(values), np.uint64)
                return found if nulls is None else np.where(nulls, np.uint64(self.null), found)
        found = self._of_known(values)
        return found if nulls is None else np.where(nulls, np.uint64(self.null), found)

    def _of_known(self, values: pa.Array) -> NDArray[np.uint64]:
        """Returns the positions of values; that of a null is undefined."""
        at = _last_at_most(self.values, values)
        places = np.concatenate((np.zeros(1, np.uint64), self.places))
        return places[at]


def _last_at_most(ordered: pa.Array, values: pa.Array) -> NDArray[np.int64]:
    """Returns how many of the ordered values are at most each of the values."""
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        known = pc.fill_null(values, 0) if values.null_count else values
        found: NDArray[np.int64] = np.searchsorted(np.asarray(ordered), np.asarray(known), side="right")
        return found.astype(np.int64, copy=False)
    if pa.types.is_boolean(values.type):
        return _last_at_most(ordered.cast(pa.int8()), values.cast(pa.int8()))
    low = np.zeros(len(values), np.int64)
    high = np.full(len(values), len(ordered), np.int64)
    while len(values) and (low < high).any():
        middle = (low + high) // 2
        there = np.minimum(middle, len(ordered) - 1)
        below = pc.fill_null(pc.less_equal(ordered.take(pa.array(there)), values), False)
        up = np.asarray(below.cast(pa.int8())).astype(np.bool_) & (low < high)
        low, high = np.where(up, middle + 1, low), np.where(up, high, np.minimum(high, middle))
    return low


def _differs(ordered: pa.Array) -> NDArray[np.bool_]:
    """Returns whether each value differs from the previous one."""
    if len(ordered) < 2:
        return np.ones(len(ordered), np.bool_)
    same = pc.equal(ordered[1:], ordered[:-1])
    if pa.types.is_floating(ordered.type):
        same = pc.or_(same, pc.and_(pc.is_nan(ordered[1:]), pc.is_nan(ordered[:-1])))
    return np.concatenate(([True], ~np.asarray(same.cast(pa.int8())).astype(np.bool_)))


def _array(column: Any) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def scales_of(samples: Sequence[Any], bits: int) -> tuple[Scale, ...]:
    """Returns a scale for each column."""
    return tuple(Scale.of(sample, bits) for sample in samples)
