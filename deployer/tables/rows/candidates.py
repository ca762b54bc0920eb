"""Chooses the fragments that can hold a key of a merge's source, by the ranges that the state has of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.datasets.ordering.key_ranges import KeyRange, key_range
from deployer.state.model.data_file import File
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.new_rows import leaf_ranges
from deployer.tables.rows.source import MergeSource

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


def candidate_fragments(table: OpenTable, dataset: LanceDataset, source: MergeSource) -> list[Any]:
    """Returns the fragments that can hold a key of the source: all of them where rows are not matched by row keys."""
    if not len(source.keyed):
        return []
    keys = pa.Table.from_batches([source.given.select(list(source.on))]).take(pa.array(source.keyed))
    return fragments_for(table, dataset, keys)


def fragments_for(table: OpenTable, dataset: LanceDataset, keys: pa.Table) -> list[Any]:
    """Returns the fragments that can hold one of the keys, of which there is one at least; none has a null."""
    names = [name for name in table.row_keys if name in keys.column_names]
    if not names:
        return list(dataset.get_fragments())
    keys = keys.select(names)
    if len(names) == len(table.row_keys):
        chosen = {file.fragment_id for file in _of_leaves(table, keys)}
    else:
        chosen = {file.fragment_id for file in _of_columns(table, keys)}
    return [each for each in dataset.get_fragments() if each.fragment_id in chosen]


def _of_leaves(table: OpenTable, keys: pa.Table) -> Iterator[File]:
    """Yields files that meet the range of the source's keys within a leaf."""
    splitter = leaf_ranges(table).splitter(table.schema, table.row_keys)
    numbers = splitter.ranges([keys[name] for name in keys.column_names], keys.num_rows)
    for number in np.unique(numbers):
        found = key_range(keys.filter(pa.array(numbers == number)), table.kinds)
        if found is None:  # a range is not known of such keys
            yield from table.state.files
            return
        for file in table.state.files.overlapping(found.min_key, found.max_key + b"\0"):
            if _meets(file, found, range(len(table.row_keys))):
                yield file


def _of_columns(table: OpenTable, keys: pa.Table) -> Iterator[File]:
    """Yields files that meet the range of each of the source's columns that is a row key."""
    places = [table.row_keys.index(name) for name in keys.column_names]
    found = key_range(keys, tuple(table.kinds[place] for place in places))
    for file in table.state.files:
        if found is None or _meets(file, found, places):
            yield file


def _meets(file: File, found: KeyRange, places: Any) -> bool:
    """Returns whether the file can hold a value within each column's range; `places` are the columns' among the row
    keys."""
    return all(
        place >= len(file.column_min)
        or (file.column_max[place] >= found.column_min[i] and file.column_min[place] <= found.column_max[i])
        for i, place in enumerate(places)
    )
