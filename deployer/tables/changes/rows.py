"""Reads rows of fragments at one version, in the columns of the feed, which may have had other names and types at that
version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.datasets.files.row_ids import ROW_ID
from deployer.errors import InvalidInput
from deployer.tables.changes.commits import Part, Place
from deployer.tables.conversion.nested_casts import cast_nested, is_nested_pair
from deployer.tables.read.conditions import read_errors
from deployer.tables.read.scan_plan import Condition, fragments_by_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

ADDRESS = "_rowaddr"  #: Lance's column of row addresses: a fragment's id in the upper 32 bits, an offset in the lower
NAMED_AT_ONCE = 20_000  #: rows in one condition
SPARSE = (
    8  #: share of rows (one in this many) up to which rows are read by address; more are read by a scan of the fragment
)
BATCH_BYTES = 16 << 20
MOST_BATCH_ROWS = 32_768
MOST_ADDRESSES = 1 << 20  #: rows of one batch without other columns
_OFFSET = np.uint64(0xFFFFFFFF)


def addresses_of(part: Part, rows: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Returns the ascending addresses of those rows of the fragment that are true."""
    first = np.uint64(part.fragment_id) << np.uint64(32)
    return np.flatnonzero(rows).astype(np.uint64) | first


def offsets_of(addresses: Any) -> NDArray[np.int64]:
    """Returns the places of rows in their fragments."""
    return (np.asarray(addresses) & _OFFSET).astype(np.int64)


@dataclass(frozen=True, slots=True)
class FeedColumn:
    """A column of the feed. `field_id` is Lance's, in dataset number `dataset`."""

    name: str
    field_id: int
    dataset: int
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a dataset that rows are read from. `number` is the dataset's; `address` the table's, for errors."""

    address: str
    number: int
    place: Place
    dataset: LanceDataset
    condition: Condition | None = None

    def names_of(self, columns: Sequence[FeedColumn]) -> list[str | None]:
        """Returns the names that the columns have in this version; None where it does not have them.

        A column is identified by its field id; a column with another type, or in another dataset, by its name.
        """
        by_id = {each.id(): each.name() for each in self.dataset.lance_schema.fields()}
        names = set(by_id.values())
        taken = {by_id[each.field_id] for each in columns if each.dataset == self.number and each.field_id in by_id}
        found: list[str | None] = []
        for each in columns:
            if each.dataset == self.number and each.field_id in by_id:
                found.append(by_id[each.field_id])
            else:
                found.append(each.name if each.name in names - taken else None)
        return found

    def rows(
        self,
        parts: Sequence[Part],
        columns: Sequence[FeedColumn],
        wanted: NDArray[np.uint64] | None = None,
        *,
        with_ids: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Yields rows of the fragments that hold the condition: the columns by their names in the feed, `_rowaddr`, and
        `_rowid` if wanted. A column that the version does not have is null.

        `wanted` are the ascending addresses of the rows to read, None: all.
        """
        names = self.names_of(columns)
        read = [name for name in names if name is not None]
        for sql, some in self._scans(parts, wanted):
            for batch in self._scanned(sql, some, read, with_ids):
                if wanted is not None and sql is None:
                    batch = batch.filter(pa.array(_among(np.asarray(batch.column(ADDRESS)), wanted)))
                if batch.num_rows:
                    yield self._renamed(batch, columns, names)

    def there(self, part: Part) -> NDArray[np.bool_]:
        """Returns which rows of the fragment, including deleted ones, are in the version and match the condition;
        without a condition, no data file is read."""
        found = np.zeros(part.rows, np.bool_)
        for batch in self._scanned(None, [part], [], with_ids=False):
            found[offsets_of(batch.column(ADDRESS))] = True
        return found

    def _scans(
        self, parts: Sequence[Part], wanted: NDArray[np.uint64] | None
    ) -> Iterator[tuple[str | None, Sequence[Part]]]:
        """Yields scans: a condition on addresses, None where all rows are read, and the fragments."""
        if wanted is None:
            if parts:
                yield None, parts
            return
        for part in parts:
            low = np.uint64(part.fragment_id) << np.uint64(32)
            start, stop = np.searchsorted(wanted, [low, low + np.uint64(1 << 32)])
            own = wanted[start:stop]
            if not len(own):
                continue
            if len(own) * SPARSE >= part.rows:
                yield None, [part]
                continue
            for first in range(0, len(own), NAMED_AT_ONCE):
                named = own[first : first + NAMED_AT_ONCE].tolist()
                yield f"{ADDRESS} IN ({', '.join(map(str, named))})", [part]

    def _scanned(
        self, sql: str | None, parts: Sequence[Part], names: Sequence[str], with_ids: bool
    ) -> Iterator[pa.RecordBatch]:
        if not parts:
            return
        both = " AND ".join(f"({each})" for each in (sql, self.condition and self.condition.sql) if each)
        written = self.condition.written if self.condition is not None else None
        address = f"{self.address}, version {self.number}:{self.place.version}"
        with read_errors(self.place.location, address, self.dataset, written, both):
            scanner = self.dataset.scanner(
                columns=list(names),
                filter=both or None,
                fragments=fragments_by_id(self.dataset, [part.fragment_id for part in parts]),
                with_row_address=True,
                with_row_id=with_ids,
                scan_in_order=True,
                batch_size=_batch_rows(parts) if names else MOST_ADDRESSES,
                late_materialization=True if sql else None,
                blob_handling="all_binary",
            )
            for batch in scanner.to_batches():
                if batch.num_rows:
                    yield batch

    def _renamed(
        self, batch: pa.RecordBatch, columns: Sequence[FeedColumn], names: Sequence[str | None]
    ) -> pa.RecordBatch:
        arrays, fields = [], []
        for column, name in zip(columns, names, strict=True):
            values = pa.nulls(batch.num_rows, column.type) if name is None else self._cast(batch.column(name), column)
            arrays.append(values)
            fields.append(pa.field(column.name, column.type))
        for name in (ADDRESS, ROW_ID):
            if name in batch.schema.names:
                arrays.append(batch.column(name))
                fields.append(batch.schema.field(name))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _cast(self, values: Any, column: FeedColumn) -> Any:
        if values.type == column.type:
            return values
        try:
            return _cast(values, column.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as failure:
            raise InvalidInput(
                f"column {column.name!r} had type {values.type} in version {self.number}:{self.place.version}, and a "
                f"value that {column.type} cannot hold: {str(failure).partition(chr(10))[0]}",
                where=self.address,
                remedy="leave the column out by naming others, or begin with a later version",
            ) from None


def _cast(values: Any, target: pa.DataType) -> Any:
    if isinstance(values.type, pa.BaseExtensionType):
        return _cast(values.storage, target)
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, _cast(values, target.storage_type))
    if is_nested_pair(values.type, target):
        return cast_nested(values, target, _cast)
    return values.cast(target)


def _among(values: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Returns which of the values are among the ascending `wanted`, which are not empty."""
    places = np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)
    found: NDArray[np.bool_] = wanted[places] == values
    return found


def _batch_rows(parts: Sequence[Part]) -> int:
    rows, size = sum(part.rows for part in parts), sum(part.bytes for part in parts)
    return max(1, min(MOST_BATCH_ROWS, BATCH_BYTES * max(rows, 1) // max(size, 1)))
