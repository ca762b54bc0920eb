"""Assigns keys to buckets by their hash. Rows of the source and of the table with the same key get the same bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio
_HIGH = np.uint64(32)


def key_buckets(keys: pa.ChunkedArray, count: int) -> NDArray[np.int64]:
    """Returns the bucket of each key, a number from 0 to `count` - 1. The keys have the type of `keys.comparable`."""
    mixed = _hashes(keys) * _MULTIPLIER
    return ((mixed ^ (mixed >> _HIGH)) % np.uint64(count)).astype(np.int64)


def _hashes(keys: pa.ChunkedArray) -> NDArray[np.uint64]:
    if pa.types.is_integer(keys.type):
        return pc.fill_null(keys, 0).to_numpy().astype(np.uint64)  # type: ignore[no-any-return]
    from pandas.util import hash_array

    array = keys.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_fixed_size_binary(array.type):
        array = array.cast(pa.binary())
    elif not (pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)):
        array = array.cast(pa.large_string())
    # Hashes of bytes are the same in all versions of pandas. For texts, pandas does not guarantee this.
    hashes: NDArray[np.uint64] = hash_array(array.cast(pa.large_binary()).to_numpy(zero_copy_only=False))
    return hashes
