"""The distribution of the keys of many rows, in little memory: a quantile sketch over a sample of their encoded row
keys.

Encoded keys compare as bytes in key order whatever their types (`deployer.state.model.keys`), so one sketch of bytes
does for every type and for keys of several columns.
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
_K = 65_535  #: of the KLL sketch, its most: ranks are exact up to about that many rows, and within 0.01% above
_GRID = 256  #: ranks that are tried when a few keys have most of the rows


class KeySketch:
    """Quantiles of row keys. `rows` is the expected number of rows, of which about `sample` are used.

    The sample has a fixed seed, so the same rows give the same sample.
    """

    def __init__(self, kinds: Sequence[str], rows: int, sample: int = SAMPLE_ROWS) -> None:
        self._kinds = tuple(kinds)
        self._share = min(1.0, sample / max(rows, 1))
        self._random = np.random.default_rng(0)
        self._sketch = datasketches.kll_items_sketch(_K)
        self.rows = 0  #: that came
        self.sampled = 0  #: of them, that the sketch holds

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
        """Encoded keys that part the rows into `parts` of about the same size, ascending; the first part is not empty.

        Fewer where a few keys are most of the rows, since rows of one key stay together.
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
