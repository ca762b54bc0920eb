"""Chooses the fragments that can hold a key of a source, by the ranges that the state has of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.datasets.ordering.key_ranges import KeyRange, key_range
from deployer.state.model.files.data_file import File
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.new_rows import leaf_ranges
from deployer.tables.rows.source import MergeSource

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class KeySpans:
    """The place of keys: a range of the columns at `places` among the row keys, or one for each leaf that has some.

    `ranges` is None where nothing is known of them, so that any file can hold one.
    """

    ranges: tuple[KeyRange, ...] | None
    places: tuple[int, ...] = ()
    are_whole: bool = False  #: the ranges are of all row keys


def keys_in(source: MergeSource) -> pa.Table:
    """Returns the keys of a source that can match."""
    return pa.Table.from_batches([source.given.select(list(source.on))]).take(pa.array(source.keyed))


def fragments_for(table: OpenTable, dataset: LanceDataset, keys: pa.Table) -> list[Any]:
    """Returns the fragments that can hold one of the keys, of which there is one at least; none has a null."""
    spans = spans_of(keys, table.schema, table.row_keys, table.kinds, leaf_ranges(table))
    if spans.ranges is None:
        return list(dataset.get_fragments())
    chosen = {file.fragment_id for file in files_in(table, spans)}
    return [each for each in dataset.get_fragments() if each.fragment_id in chosen]


def spans_of(
    keys: pa.Table, schema: pa.Schema, row_keys: Sequence[str], kinds: Sequence[str], leaves: Ranges
) -> KeySpans:
    """Returns where the keys lie, of which there is one at least; none has a null."""
    names = [name for name in row_keys if name in keys.column_names]
    if not names:
        return KeySpans(None)
    keys = keys.select(names)
    places = tuple(row_keys.index(name) for name in names)
    if len(names) < len(row_keys):
        found = key_range(keys, tuple(kinds[place] for place in places))
        return KeySpans(None if found is None else (found,), places)
    numbers = leaves.splitter(schema, row_keys).ranges([keys[name] for name in names], keys.num_rows)
    ranges = []
    for number in np.unique(numbers):
        found = key_range(keys.filter(pa.array(numbers == number)), kinds)
        if found is None:  # a range is unknown of such keys
            return KeySpans(None)
        ranges.append(found)
    return KeySpans(tuple(ranges), places, are_whole=True)


def files_in(table: OpenTable, spans: KeySpans) -> Iterator[File]:
    """Yields the files that can hold a key within the spans; one may come several times."""
    if spans.ranges is None:
        yield from table.state.files
        return
    for found in spans.ranges:
        limit = found.max_key + b"\0"
        files = table.state.files.overlapping(found.min_key, limit) if spans.are_whole else table.state.files
        for file in files:
            if _meets(file, found, spans.places):
                yield file


def _meets(file: File, found: KeyRange, places: Sequence[int]) -> bool:
    """Returns whether the file can hold a value within each column's range; `places` are the columns' among the row
    keys."""
    return all(
        place >= len(file.column_min)
        or (file.column_max[place] >= found.column_min[i] and file.column_min[place] <= found.column_max[i])
        for i, place in enumerate(places)
    )
