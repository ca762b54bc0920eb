"""Many files as one sorted Arrow table, which can be searched by key range, by fragment id and by partition."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deployer.state.model.files.data_file import Bounds, File, Key

Rows = npt.NDArray[np.int64]

SCHEMA = pa.schema(
    [
        pa.field("fragment_id", pa.int64(), nullable=False),
        pa.field("partition", pa.dictionary(pa.int32(), pa.string())),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
        pa.field("min_key", pa.binary()),
        pa.field("max_key", pa.binary()),
        pa.field("column_min", pa.list_(pa.binary()), nullable=False),
        pa.field("column_max", pa.list_(pa.binary()), nullable=False),
        pa.field("sorted", pa.bool_(), nullable=False),
    ]
)
#: The columns of clustered files. They are null for other files, and a segment without clustered files omits them.
CLUSTERED = pa.schema(
    [
        pa.field("clustering", pa.dictionary(pa.int32(), pa.string())),
        pa.field("cluster_min", pa.list_(pa.binary())),
        pa.field("cluster_max", pa.list_(pa.binary())),
    ]
)
#: The column of files with computed values. It is empty for other files, and a segment without such files omits it.
COMPUTED = pa.schema([pa.field("computed", pa.dictionary(pa.int32(), pa.string()))])
_ORDER = [("min_key", "ascending"), ("fragment_id", "ascending")]  # nulls at the end
_BLOCK = 4096


class Segment:
    """Files in the order of `min_key`; files without one are last. Some of the files may have been removed.

    The segment keeps the largest `max_key` of each block of 4,096 files. So a search for a key range consists of a
    binary search, a pass over the block maxima, and a search in the few blocks that can match.
    """

    def __init__(self, table: pa.Table, alive: npt.NDArray[np.bool_] | None = None) -> None:
        self._table, self._alive = table, alive
        self._positions: dict[tuple[str, int], pa.Array] = {}
        self.count = table.num_rows if alive is None else int(np.count_nonzero(alive))

    @staticmethod
    def of(table: pa.Table, *, in_order: bool = False) -> Segment:
        table = table.cast(_schema(set(table.column_names)))
        if not in_order:
            table = table.take(pc.sort_indices(table, sort_keys=_ORDER))
        segment = Segment(table.unify_dictionaries().combine_chunks())
        _ = segment._block_maxima  # computed here, so that no look-up waits for it
        return segment

    @staticmethod
    def of_files(files: Iterable[File]) -> Segment:
        listed = list(files)
        known = {name for name in ("clustering", "computed") if any(getattr(file, name) for file in listed)}
        schema = _schema(known)
        arrays = [pa.array([getattr(file, field.name) for file in listed], field.type) for field in schema]
        return Segment.of(pa.Table.from_arrays(arrays, schema=schema))

    @staticmethod
    def merged(segments: Sequence[Segment]) -> Segment:
        if len(segments) == 1:
            return Segment(segments[0].table)
        tables = [segment.table for segment in segments]
        return Segment.of(
            pa.concat_tables(tables, promote_options="default")
        )  # some may lack the columns of clustering or of computed values

    @property
    def table(self) -> pa.Table:
        """The files that were not removed, in order."""
        return self._table if self._alive is None else self._table.filter(pa.array(self._alive))

    @property
    def rows(self) -> int:
        return int(pc.sum(self.table["rows"]).as_py() or 0)

    @property
    def bytes(self) -> int:
        return int(pc.sum(self.table["bytes"]).as_py() or 0)

    @cached_property
    def largest_id(self) -> int:
        return int(self._ids.max()) if len(self._ids) else -1

    def without(self, fragment_ids: Sequence[int]) -> Segment:
        """Returns the segment without the files that have these ids. Ids of other files are ignored."""
        rows = [row for row in map(self._row, fragment_ids) if row is not None]
        if not rows:
            return self
        alive = np.ones(self._table.num_rows, np.bool_) if self._alive is None else self._alive.copy()
        alive[rows] = False
        if 2 * np.count_nonzero(alive) < len(alive):
            return Segment(self._table.filter(pa.array(alive)).combine_chunks())
        after = Segment(self._table, alive)
        after._positions = self._positions
        for name in ("_ids", "_by_id", "_block_maxima", "_partition_codes"):  # valid, because they describe all files
            if name in self.__dict__:
                after.__dict__[name] = self.__dict__[name]
        return after

    def get(self, fragment_id: int) -> File | None:
        row = self._row(fragment_id)
        return None if row is None else next(self._files(np.array([row])))

    def overlapping(self, lower: Key, upper: Key | None) -> Iterator[File]:
        return self._files(self._overlapping_rows(lower, upper))

    def overlapping_columns(self, ranges: Mapping[int, Bounds], lower: Key, upper: Key | None) -> Iterator[File]:
        rows = self._overlapping_rows(lower, upper)
        for position, (low, high) in ranges.items():
            for name, bound, compare in (("column_max", low, pc.greater_equal), ("column_min", high, pc.less)):
                if bound is not None and len(rows):
                    rows = rows[self._column_matches(name, position, rows, bound, compare)]
        return self._files(rows)

    @property
    def clusterings(self) -> set[str]:
        """The arrangements of files by CLUSTER, including those of removed files."""
        if CLUSTERED.names[0] not in self._table.column_names or not self._table.num_rows:
            return set()
        return set(self._column(CLUSTERED.names[0]).dictionary.to_pylist()) - {""}

    def in_partition(self, partition_id: str | None) -> Iterator[File]:
        codes, dictionary = self._partition_codes
        code = -1 if partition_id is None else dictionary.get(partition_id)
        return self._files(np.flatnonzero(codes == code) if code is not None else np.empty(0, np.int64))

    def _overlapping_rows(self, lower: Key, upper: Key | None) -> Rows:
        keyed = self._keyed
        end = keyed if upper is None else bisect_left(self._min_keys, upper, 0, keyed)
        maxima = self._block_maxima
        blocks = [b for b in range(-(-end // _BLOCK)) if maxima[b] >= lower]
        if len(blocks) > 64:  # for a wide range, one pass over all files is faster than a pass for each block
            found = [self._at_or_above(lower, 0, end)]
        else:
            found = [self._at_or_above(lower, b * _BLOCK, min((b + 1) * _BLOCK, end)) for b in blocks]
        rows = np.concatenate([*found, np.arange(keyed, self._table.num_rows)])  # the last files have no known range
        return rows if self._alive is None else rows[self._alive[rows]]

    def _at_or_above(self, lower: Key, start: int, end: int) -> Rows:
        keys = self._column("max_key").slice(start, end - start)
        hits = pc.greater_equal(keys, pa.scalar(lower, pa.binary())).to_numpy(zero_copy_only=False)
        return np.flatnonzero(hits) + start

    def _column_matches(self, name: str, position: int, rows: Rows, bound: Key, compare: Any) -> npt.NDArray[np.bool_]:
        matches = compare(self._elements(name, position, rows), pa.scalar(bound, pa.binary()))
        hits: npt.NDArray[np.bool_] = pc.fill_null(matches, True).to_numpy(zero_copy_only=False)
        return hits

    def _elements(self, name: str, position: int, rows: Rows) -> pa.Array:
        """Returns one position of a list column for the rows. It is null for a shorter list: the range is unknown."""
        whole = self._positions.get((name, position))
        if whole is None and 8 * len(rows) < self._table.num_rows:
            return _nth(self._column(name).take(pa.array(rows)), position)
        if whole is None:
            whole = self._positions[name, position] = _nth(self._column(name), position)
        return whole.take(pa.array(rows))

    def _files(self, rows: Rows) -> Iterator[File]:
        if self._alive is not None:
            rows = rows[self._alive[rows]]
        taken = self._table.take(pa.array(rows))
        columns = [taken[field.name].to_pylist() for field in SCHEMA]
        clustered = [taken[name].to_pylist() for name in CLUSTERED.names if name in taken.column_names]
        more = zip(*clustered, strict=True) if clustered else repeat((None, (), ()))
        computed = taken[COMPUTED.names[0]].to_pylist() if COMPUTED.names[0] in taken.column_names else repeat("")
        for row, (clustering, least, most), by in zip(zip(*columns, strict=True), more, computed, strict=False):
            fragment_id, partition, count, size, low, high, lows, highs, in_order = row
            ranges = tuple(lows), tuple(highs)
            if clustering or by:
                yield File(
                    fragment_id,
                    partition,
                    count,
                    size,
                    low,
                    high,
                    *ranges,
                    in_order,
                    clustering or "",
                    tuple(least or ()),
                    tuple(most or ()),
                    by or "",
                )
            else:
                yield File(fragment_id, partition, count, size, low, high, *ranges, in_order)

    def _row(self, fragment_id: int) -> int | None:
        order, ids = self._by_id
        at = int(np.searchsorted(ids, fragment_id))
        if at == len(ids) or ids[at] != fragment_id:
            return None
        row = int(order[at])
        return row if self._alive is None or self._alive[row] else None

    def _column(self, name: str) -> pa.Array:
        return self._table[name].chunk(0) if self._table.num_rows else pa.array([], SCHEMA.field(name).type)

    @cached_property
    def _ids(self) -> Rows:
        ids: Rows = self._column("fragment_id").to_numpy(zero_copy_only=False)
        return ids

    @cached_property
    def _by_id(self) -> tuple[Rows, Rows]:
        order = np.argsort(self._ids, kind="stable")
        return order, self._ids[order]

    @cached_property
    def _keyed(self) -> int:
        return int(self._table.num_rows - self._column("min_key").null_count)

    @cached_property
    def _min_keys(self) -> _Keys:
        return _Keys(self._column("min_key"))

    @cached_property
    def _block_maxima(self) -> list[Key]:
        keys = self._column("max_key")
        return [pc.max(keys.slice(at, min(_BLOCK, self._keyed - at))).as_py() for at in range(0, self._keyed, _BLOCK)]

    @cached_property
    def _partition_codes(self) -> tuple[npt.NDArray[np.int32], dict[str, int]]:
        column = self._column("partition")
        codes = pc.fill_null(column.indices, -1).to_numpy(zero_copy_only=False)
        return codes, {name: code for code, name in enumerate(column.dictionary.to_pylist())}


def _schema(names: set[str]) -> pa.Schema:
    """Returns the schema of a segment with `SCHEMA` and those of the optional columns that `names` includes."""
    more = [each for each in (CLUSTERED, COMPUTED) if each.names[0] in names]
    return pa.schema([*SCHEMA, *(field for each in more for field in each)])


def _nth(lists: pa.Array, position: int) -> pa.Array:
    known = pc.greater(pc.list_value_length(lists), position)
    if not pc.all(known).as_py():
        lists = pc.if_else(known, lists, pa.scalar([None] * (position + 1), lists.type))
    return pc.list_element(lists, position)


class _Keys(Sequence[Key]):
    """An Arrow binary array as a sequence for `bisect`, which reads single values without converting the others."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __getitem__(self, index: Any) -> Any:
        return self._array[index].as_py()

    def __len__(self) -> int:
        return len(self._array)
