"""The net changes between two versions of a table: its removed and its added rows, without changes that cancel out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.tables.changes.commit_rows import CommitReader
from deployer.tables.changes.commits import Commit
from deployer.tables.changes.reading import META, Reading

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class NetChanges:
    """The rows that only the earlier of two versions has (`removed`, with their old values), and the rows that only the
    later one has (`added`). Equal rows are counted: each copy is matched with one copy."""

    removed: pa.Table
    added: pa.Table

    @property
    def is_empty(self) -> bool:
        return not self.removed.num_rows and not self.added.num_rows


def net_changes(reading: Reading, commits: Iterable[Commit]) -> NetChanges:
    """Returns the net changes of the commits, which are consecutive.

    Rows have the columns of the reading, and `_rowid` where row ids identify the rows. A row that one commit added and
    a later one removed is in neither part.
    """
    schema = pa.schema(list(reading.schema)[: -len(META)])
    reader = CommitReader(reading)
    taken, put = list[pa.RecordBatch](), list[pa.RecordBatch]()
    for commit in commits:
        for batch, is_put in reader.before_and_after(commit):
            (put if is_put else taken).append(batch)
    removed, added = (pa.Table.from_batches(map(_cast(schema), each), schema) for each in (taken, put))
    if removed.num_rows and added.num_rows:
        return without_equal(removed, added)
    return NetChanges(removed, added)


def without_equal(removed: pa.Table, added: pa.Table) -> NetChanges:
    """Returns the rows without those that are in both tables. Of equal rows, as many are left out of each table as both
    tables have."""
    codes = row_codes(pa.concat_tables([removed, added]))
    of_removed, of_added = codes[: removed.num_rows], codes[removed.num_rows :]
    count = int(codes.max()) + 1
    both = np.minimum(np.bincount(of_removed, minlength=count), np.bincount(of_added, minlength=count))
    return NetChanges(removed.filter(_beyond(of_removed, both)), added.filter(_beyond(of_added, both)))


def row_codes(rows: pa.Table) -> NDArray[np.int64]:
    """Returns a number for each row; equal rows have the same one, and null is equal to null."""
    codes = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        own = _value_codes(column.combine_chunks())
        codes = np.unique(codes * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1].astype(np.int64)
    return codes


def _value_codes(values: Any) -> NDArray[np.int64]:
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return _value_codes(values.storage)
    if pa.types.is_floating(kind):  # 0.0 and -0.0 are different values; NaNs are equal where their bits are
        bits = np.asarray(values.fill_null(0)).view(f"u{kind.bit_width // 8}")
        nulls = np.asarray(values.is_null())
        return np.where(nulls, 0, np.unique(bits, return_inverse=True)[1] + 1).astype(np.int64)
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind):
        texts = [None if value is None else repr(value) for value in values.to_pylist()]
        return _value_codes(pa.array(texts, pa.large_string()))
    encoded = values.dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices).astype(np.int64)


def _beyond(codes: NDArray[np.int64], limits: NDArray[np.int64]) -> Any:
    """Returns a mask of the rows that have at least `limits[code]` earlier rows with the same code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.searchsorted(ordered, ordered)
    rank = np.empty(len(codes), np.int64)
    rank[order] = np.arange(len(codes)) - starts
    return pa.array(rank >= limits[codes])


def _cast(schema: pa.Schema) -> Any:
    def cast(batch: pa.RecordBatch) -> pa.RecordBatch:
        columns: Sequence[Any] = batch.columns
        return pa.RecordBatch.from_arrays(list(columns), schema=schema)

    return cast
