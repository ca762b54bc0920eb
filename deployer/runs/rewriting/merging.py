"""The order in which sorted runs of rows are merged: a permutation of all their rows, computed only from their keys.

Each key column becomes whole numbers in the same order, and these are packed into one number a row. Where the row's
position fits into the number too, numpy sorts these numbers by vector instructions. Otherwise its Timsort finds the
runs and merges them: the time grows with the logarithm of the number of runs, and sorted rows are not sorted again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.ordering.key_ranges import comparable

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MANY_ROWS = 100_000
_BLOCK = 65_536
_MOST = 2**62  #: the most distinct values of one packed number


def merge_order(keys: pa.Table) -> NDArray[np.int64]:
    """Returns the positions of the rows in ascending order of all columns, nulls last; equal rows keep their order.

    Strings are ordered by their UTF-8 bytes, and NaN comes after all numbers, as in `sorted_rows`.
    """
    columns = _all_codes(keys)
    first, different = next(columns)
    packed = first.astype(np.int64, copy=False)
    for codes, count in columns:
        if different * count > _MOST:
            packed, different = _dense(packed)
        if different * count > _MOST:
            codes, count = _dense(codes)
        packed *= count  # in place: a new array of all rows costs more than the operation
        packed += codes
        different *= count
    return _order_of(packed, different)


def _order_of(packed: NDArray[np.int64], different: int) -> NDArray[np.int64]:
    """Returns the positions of the numbers in ascending order of the numbers, which are below `different`.

    Where the position fits into the last bits of a number, it overwrites the numbers: each is then unique, so that any
    sorting method can be used.
    """
    bits = len(packed).bit_length()
    if different << bits > _MOST:
        return np.argsort(packed, kind="stable")
    packed <<= bits
    for start in range(0, len(packed), _BLOCK):
        block = packed[start : start + _BLOCK]
        block |= np.arange(start, start + len(block))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed


def _all_codes(keys: pa.Table) -> Iterator[tuple[NDArray[np.integer], int]]:
    """Yields the ranks of each column. For many rows, threads compute several columns at a time, since numpy and Arrow
    release the GIL."""
    if keys.num_columns == 1 or keys.num_rows < _MANY_ROWS:
        yield from map(_codes, keys.columns)
        return
    with ThreadPoolExecutor(min(keys.num_columns, os.cpu_count() or 1), "codes") as pool:
        yield from pool.map(_codes, keys.columns)


def _codes(column: pa.ChunkedArray) -> tuple[NDArray[np.integer], int]:
    """Returns a number for each row, in the order of the values, as a new array, and the number of possible values."""
    values = comparable(column)
    nulls = values.null_count
    missing = np.asarray(pc.is_null(values).combine_chunks()) if nulls else None
    if pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64), 1
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.int8())
    codes, count = _of_integers(values) if pa.types.is_integer(values.type) else _of_others(values)
    if missing is not None:
        codes = np.where(missing, count, codes)
        count += 1
    return codes, count


def _of_integers(values: pa.ChunkedArray) -> tuple[NDArray[np.integer], int]:
    found = np.asarray(pc.fill_null(values, 0) if values.null_count else values)
    if not len(found):
        return found.astype(np.int64), 1
    least, most = int(found.min()), int(found.max())
    if most - least >= _MOST:
        return _dense(found)
    wide = found if found.dtype == np.uint64 else found.astype(np.int64, copy=False)  # small types would overflow
    apart = (wide - wide.dtype.type(least)).astype(np.int64, copy=False)
    step = int(np.gcd.reduce(apart)) if most - least > len(found) else 1  # such as one hour, for times of whole hours
    if step > 1:
        apart //= step
    return apart, (most - least) // step + 1


def _of_others(values: pa.ChunkedArray) -> tuple[NDArray[np.integer], int]:
    """Returns the ranks and their number. Sorts only the distinct values."""
    encoded = values.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    distinct = encoded.dictionary
    order = np.asarray(pc.sort_indices(distinct))
    ranks = np.empty(len(order) + 1, np.int32)  # 32 bits are enough for all indices of a dictionary
    ranks[order] = np.arange(len(order), dtype=np.int32)
    if pa.types.is_floating(distinct.type):  # 0.0 and -0.0 are two values, but the same key
        ranks[order] = _ranks_of_equal(np.asarray(distinct)[order])
    indices = np.asarray(pc.fill_null(encoded.indices, len(order)) if values.null_count else encoded.indices)
    return ranks[indices], max(1, len(order))


def _ranks_of_equal(ordered: NDArray[np.floating]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(ordered[1:] != ordered[:-1]))) if len(ordered) else np.zeros(0, np.int64)


def _dense(codes: NDArray[np.integer]) -> tuple[NDArray[np.int64], int]:
    distinct, found = np.unique(codes, return_inverse=True)
    return found.astype(np.int64), max(1, len(distinct))


def runs_of(counts: Sequence[int]) -> NDArray[np.int32]:
    """Returns for each row the number of its run. `counts` has the number of rows of each run."""
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)
