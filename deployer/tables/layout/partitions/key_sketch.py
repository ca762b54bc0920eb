"""The distribution of the keys of many rows, in little memory: a quantile sketch over a sample of their encoded row
keys.

The byte order of encoded keys is the order of the keys, whatever their types (`deployer.state.model.keys`). Therefore
one sketch of bytes serves every type and keys of several columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import datasketches
import numpy as np
import pyarrow as pa

from deployer.datasets.ordering.key_ranges import comparable
from deployer.state.model.keys import encode_key

SAMPLE_ROWS = 65_536  #: default number of sampled rows
_K = 65_535  #: the largest k of a KLL sketch: ranks are exact up to about this many rows, and within 0.01% above
_GRID = 256  #: the number of ranks that are tried where a few keys have most of the rows


class KeySketch:
    """The quantiles of row keys. `rows` is the expected number of rows, of which about `sample` are used.

    The sample has a fixed seed, so the same rows give the same sample.
    """

    def __init__(self, kinds: Sequence[str], rows: int, sample: int = SAMPLE_ROWS) -> None:
        self._kinds = tuple(kinds)
        self._share = min(1.0, sample / max(rows, 1))
        self._random = np.random.default_rng(0)
        self._sketch = datasketches.kll_items_sketch(_K)
        self.rows = 0  #: the number of added rows
        self.sampled = 0  #: the number of added rows in the sketch

    def add(self, keys: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """Adds rows by their row-key columns, which have no nulls."""
        count = len(keys[0])
        self.rows += count
        if self._share < 1:
            chosen = pa.array(np.flatnonzero(self._random.random(count) < self._share))
            keys = [column.take(chosen) for column in keys]
            count = len(chosen)
        self.sampled += count
        columns = [_values(column) for column in keys]
        for row in zip(*columns, strict=True):
            self._sketch.update(encode_key(self._kinds, row))

    def split_points(self, parts: int) -> list[bytes]:
        """Returns ascending encoded keys that divide the rows into `parts` of about the same size. The first part is
        not empty.

        Returns fewer keys where a few keys have most of the rows, because rows with the same key stay together.
        """
        if not self.sampled or parts < 2:
            return []
        first = self._sketch.get_min_value()
        points = self._above(first, [i / parts for i in range(1, parts)])
        return points or self._above(first, [i / _GRID for i in range(1, _GRID)])[:1] or self._last(first)

    def _above(self, first: bytes, ranks: Sequence[float]) -> list[bytes]:
        found = [bytes(key) for key in self._sketch.get_quantiles(ranks)]
        return [key for before, key in pairwise([first, *found]) if key > before]

    def _last(self, first: bytes) -> list[bytes]:
        last = bytes(self._sketch.get_max_value())
        return [last] if last > first else []


def _values(column: pa.Array | pa.ChunkedArray) -> list[object]:
    plain = comparable(column)
    values: list[object] = plain.to_pylist()
    return [format(value, "f") for value in values] if pa.types.is_decimal(plain.type) else values
