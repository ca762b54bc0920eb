"""Ranges of keys by which rows are collected: the leaves, with large leaves cut further for several tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.datasets.ordering.key_ranges import comparable, key_value
from deployer.datasets.ordering.sort_order import Splitter, sorted_rows

if TYPE_CHECKING:
    from deployer.specs.model import KeyValue

SAMPLE_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Ranges:
    """Key ranges in ascending order. `splits` are the bounds between them, `partitions[i]` is the leaf of range i."""

    splits: tuple[tuple[KeyValue, ...], ...]
    partitions: tuple[str, ...]

    def splitter(self, schema: pa.Schema, row_keys: Sequence[str]) -> Splitter:
        return Splitter([schema.field(name).type for name in row_keys], self.splits)


def cut(leaves: Ranges, sample: pa.Table, rows: int, target: int) -> Ranges:
    """Returns the leaves. A leaf with more than `target` of the `rows`, estimated from a sample of row keys, is cut.

    A wrong estimate only makes files of uneven sizes.
    """
    names = sample.column_names
    if not sample.num_rows or not names or rows <= target:
        return leaves
    step = -(-sample.num_rows // SAMPLE_ROWS)
    taken = sorted_rows(sample.take(pa.array(np.arange(0, sample.num_rows, step))), names)
    columns = [comparable(taken[name]) for name in names]
    numbers = leaves.splitter(sample.schema, names).ranges([taken[name] for name in names], taken.num_rows)
    bounds = np.searchsorted(numbers, np.arange(len(leaves.partitions) + 1))
    splits: list[tuple[KeyValue, ...]] = []
    partitions: list[str] = []
    for i, (start, stop) in enumerate(pairwise(bounds)):
        if i:
            splits.append(leaves.splits[i - 1])
        partitions.append(leaves.partitions[i])
        pieces = -(-int((stop - start) / taken.num_rows * rows) // target)
        inner = [int(start + (stop - start) * piece / pieces) for piece in range(1, pieces)]
        last = tuple(key_value(column[int(start)]) for column in columns) if pieces > 1 else ()
        for row in inner:
            key = tuple(key_value(column[row]) for column in columns)
            if key != last:  # rows of one key stay together
                splits.append(key)
                partitions.append(leaves.partitions[i])
            last = key
    return Ranges(tuple(splits), tuple(partitions))
