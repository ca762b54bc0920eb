"""The source rows of a merge in parts of limited size: one part in memory, or several parts in files on disk.

Two parts never have rows with the same key. If the keys decide the leaf, a part has the keys of adjacent leaves, or a
range of the keys of one leaf. Otherwise, parts are made by hashes of the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import DeployerError
from deployer.platform.files.temporary import temporary_folder
from deployer.platform.system.failpoints import reached
from deployer.tables.append import as_arrow
from deployer.tables.ingest.driver import parted
from deployer.tables.ingest.keys.sets import plain
from deployer.tables.ingest.rows.bad_rows import BadRows, refusal
from deployer.tables.ingest.rows.check import SourceRows, check
from deployer.tables.ingest.rows.computed_values import without_computed
from deployer.tables.layout.partitions.key_ranges import SAMPLE_ROWS, Ranges, cut
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.new_rows import leaf_ranges
from deployer.tables.rows.source import LISTED, columns_given, keys_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

PART_ROWS = 1_048_576  #: maximum number of rows in a part
PART_BYTES = 128 * 1024 * 1024  #: maximum size of a part in bytes
HELD_BYTES = 64 * 1024 * 1024  #: bytes of rows in memory at which they are written to disk
BATCH_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class RowBatches:
    """An iterable of rows, with their schema. An error of the iteration ends the merge before it changes the table."""

    schema: pa.Schema
    batches: Iterable[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows on disk: batches in Arrow files. `places` has the file of each batch and the batch's number in the file."""

    places: tuple[tuple[str, int], ...] = ()
    rows: int = 0
    size: int = 0  #: bytes

    def batches(self) -> Iterator[pa.RecordBatch]:
        files: dict[str, Any] = {}
        for path, number in self.places:
            if path not in files:
                files[path] = pa.ipc.open_file(pa.memory_map(path))
            yield files[path].get_batch(number)

    def joined(self, other: StoredRows) -> StoredRows:
        return StoredRows((*self.places, *other.places), self.rows + other.rows, self.size + other.size)

    @property
    def pieces(self) -> int:
        """The number of parts into which the rows are divided."""
        return max(-(-self.rows // PART_ROWS), -(-self.size // PART_BYTES))


@dataclass(frozen=True, slots=True)
class MergeInput:
    """The source rows of a merge, which are matched by the columns `on`. `parts` are rows in memory or on disk.

    The rows are read several times: to count, to merge, and again if others changed the table first.
    """

    on: tuple[str, ...]
    parts: tuple[Any, ...]


@contextmanager
def merge_input(rows: Any, on: Sequence[str] | str | None, table: OpenTable) -> Iterator[MergeInput]:
    """Yields the rows for the duration of the block, after which files on disk are removed.

    `rows` are a value that `as_arrow` takes, a RecordBatchReader, RowBatches, or a MergeInput, which is yielded
    unchanged. Raises InvalidInput for columns that do not fit. Raises Refused for values that do not fit if the rows go
    to disk.
    """
    if isinstance(rows, MergeInput):
        yield rows
        return
    names = keys_of(on, table)
    if isinstance(rows, RowBatches | pa.RecordBatchReader):
        schema, batches = rows.schema, iter(rows if isinstance(rows, pa.RecordBatchReader) else rows.batches)
    else:
        found = as_arrow(rows, table.address)
        if found.num_rows <= PART_ROWS and found.nbytes <= PART_BYTES:
            yield MergeInput(names, (found,))
            return
        whole = found if isinstance(found, pa.Table) else pa.Table.from_batches([found])
        schema, batches = whole.schema, iter(whole.to_batches(max_chunksize=BATCH_ROWS))
    held = list[pa.RecordBatch]()
    count = size = 0
    for batch in batches:
        held.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
        if count > PART_ROWS or size > PART_BYTES:
            break
    else:
        yield MergeInput(names, (pa.Table.from_batches(held, schema),))
        return
    with temporary_folder("merge") as folder:
        given = without_computed(columns_given(schema, names, table))  # these have only nulls
        checked = _checked(chain(held, batches), given, table)
        held = []
        yield MergeInput(names, _stored(checked, given, names, table, folder))


def _checked(batches: Iterable[pa.RecordBatch], schema: pa.Schema, table: OpenTable) -> Iterator[pa.RecordBatch]:
    """Yields the rows with the table's types. For rows that do not fit, it raises Refused at the end, which lists
    some."""
    row_keys = [name for name in table.row_keys if name in schema.names]
    seen, bad = 0, BadRows()
    for batch in batches:
        numbers = np.arange(seen + 1, seen + batch.num_rows + 1)
        seen += batch.num_rows
        found = check(SourceRows(batch, numbers), schema, row_keys, text=False, listed=LISTED)
        bad = bad.joined(found.bad).first(LISTED)
        if not bad.rows and found.rows.num_rows:
            yield found.rows
    if bad.rows:
        raise refusal({"the rows": bad}, table.address, "merged")


def _stored(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, on: Sequence[str], table: OpenTable, folder: Path
) -> tuple[StoredRows, ...]:
    """Writes the rows to disk and returns them in parts."""
    row_keys = table.row_keys if {*table.row_keys} <= {*on} else ()
    leaves = leaf_ranges(table) if row_keys else Ranges((), ("",))
    first = _numbered(batches, schema, folder, lambda batch: _ranges(batch, leaves, row_keys))
    parts = list[StoredRows]()
    for rows in first:
        if rows.pieces <= 1:
            parts.append(rows)
        elif row_keys:
            inner = _cut(rows, row_keys)
            parts += _numbered(rows.batches(), schema, folder, lambda batch, i=inner: _ranges(batch, i, row_keys))
        else:
            by = rows.pieces
            parts += _numbered(rows.batches(), schema, folder, lambda batch, n=by: _buckets(batch, on, n))
    return tuple(_grouped(parts))


def _numbered(batches: Iterable[pa.RecordBatch], schema: pa.Schema, folder: Path, number: Any) -> list[StoredRows]:
    """Writes the rows to disk, grouped by the number that `number` gives each row. Returns the groups in the order of
    the numbers."""
    spill = _Spill(folder, schema)
    for batch in batches:
        for each, rows in parted(batch, number(batch)):
            spill.add(each, rows)
    spill.flush()
    return [spill.stored[each] for each in sorted(spill.stored)]


@dataclass(slots=True)
class _Spill:
    """A buffer for rows that are written to disk, grouped by number."""

    folder: Path
    schema: pa.Schema
    stored: dict[int, StoredRows] = field(default_factory=dict)
    _held: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    _size: int = 0

    def add(self, number: int, rows: pa.RecordBatch) -> None:
        self._held.setdefault(number, []).append(rows)
        self._size += rows.nbytes
        if self._size >= HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._held:
            return
        path = str(self.folder / f"{sum(1 for _ in self.folder.glob('*.arrow'))}.arrow")
        written = 0
        try:
            with pa.ipc.new_file(path, self.schema) as writer:
                for number in sorted(self._held):
                    for batch in pa.Table.from_batches(self._held[number], self.schema).combine_chunks().to_batches():
                        writer.write_batch(batch)
                        added = StoredRows(((path, written),), batch.num_rows, batch.nbytes)
                        self.stored[number] = self.stored.get(number, StoredRows()).joined(added)
                        written += 1
        except OSError as failure:
            raise DeployerError(
                f"the rows to merge cannot be written to temporary files: {str(failure).splitlines()[0]}",
                where=self.folder,
                remedy="set TMPDIR to a folder on a disk that has room for twice the rows",
            ) from failure
        self._held, self._size = {}, 0
        reached("tables.merge.rows-stored")


def _ranges(batch: pa.RecordBatch, ranges: Ranges, row_keys: Sequence[str]) -> NDArray[np.int64]:
    keys = [batch.column(name) for name in row_keys]
    return ranges.splitter(batch.schema, row_keys).ranges(keys, batch.num_rows)


def _cut(rows: StoredRows, row_keys: Sequence[str]) -> Ranges:
    """Returns ranges of keys with about equal numbers of rows, which are estimated from a sample."""
    step = max(1, rows.rows // SAMPLE_ROWS)
    sample = [
        batch.select(list(row_keys)).take(pa.array(np.arange(0, batch.num_rows, step))) for batch in rows.batches()
    ]
    return cut(Ranges((), ("",)), pa.Table.from_batches(sample), rows.rows, -(-rows.rows // rows.pieces))


def _buckets(batch: pa.RecordBatch, on: Sequence[str], count: int) -> NDArray[np.int64]:
    """Returns the number of each row's bucket. Rows with the same key have the same bucket; a row with a null may have
    any bucket."""
    from pandas.util import hash_array

    total = np.zeros(batch.num_rows, np.uint64)
    for name in on:
        encoded = plain(batch.column(name)).dictionary_encode()
        values = encoded.dictionary.to_numpy(zero_copy_only=False)
        try:
            hashes = hash_array(values, categorize=False)
        except TypeError:  # Python objects, such as decimals; equal values of a column have equal texts
            hashes = hash_array(values.astype(str).astype(object), categorize=False)
        places = np.asarray(pc.fill_null(encoded.indices, 0))
        own = hashes[places] if len(hashes) else np.zeros(batch.num_rows, np.uint64)
        null = np.asarray(pc.is_null(encoded.indices))
        own = np.where(null, np.arange(batch.num_rows, dtype=np.uint64), own)
        total = total * np.uint64(1_000_003) + own
    return (total % np.uint64(count)).astype(np.int64)


def _grouped(parts: Iterable[StoredRows]) -> Iterator[StoredRows]:
    """Yields the parts after joining small parts that follow each other."""
    held = StoredRows()
    for each in parts:
        both = held.joined(each)
        if held.rows and both.pieces > 1:
            yield held
            both = each
        held = both
    if held.rows:
        yield held
