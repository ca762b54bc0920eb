"""Finds rows by a condition, and writes deletion files for them without a commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.datasets.storage.options import objects_at
from deployer.tables.open_table import OpenTable
from deployer.tables.read.conditions import read_errors
from deployer.tables.read.scan_plan import Condition
from deployer.tables.read.table import Table as Reader
from deployer.tables.rows.change import Offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

READ_AT_ONCE = 20_000  #: maximum number of rows that one condition names
SCANNED_AT_ONCE = 131_072  #: rows for which a condition is computed at once, if its columns are narrow
ADDRESS = "_rowaddr"  #: Lance's column of row addresses: a fragment's id in the upper 32 bits, an offset in the lower


def matching_rows(
    table: OpenTable,
    dataset: LanceDataset,
    where: str,
    columns: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Yields the rows for which the condition is true, with `columns` and the column `_rowaddr`.

    Fragments whose key ranges cannot contain such rows are not opened. Raises InvalidInput for an unusable condition.
    """
    reader = Reader(table, dataset)
    condition, candidates = reader.candidates(where)
    every = list(dataset.get_fragments())
    # Lance always gets the condition, because it may report a problem with it.
    candidates = candidates or every[:1]
    chosen = None if len(candidates) == len(every) else candidates
    place = (table.location, table.address)
    yield from scanned(place, dataset, chosen, columns, condition.sql, condition, with_ids=False)


def rows_at(
    place: tuple[str, str], dataset: LanceDataset, addresses: NDArray[np.uint64], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yields the columns of the rows at these ascending addresses, in the same order. `place` is as in `scanned`."""
    for start in range(0, len(addresses), READ_AT_ONCE):
        wanted = addresses[start : start + READ_AT_ONCE]
        fragments = [dataset.get_fragment(int(number)) for number in np.unique(wanted >> np.uint64(32))]
        sql = f"{ADDRESS} IN ({', '.join(map(str, wanted.tolist()))})"
        yield from scanned(place, dataset, fragments, columns, sql, None, with_ids=False)


def scanned(
    place: tuple[str, str],
    dataset: LanceDataset,
    fragments: Sequence[Any] | None,
    columns: Sequence[str],
    sql: str,
    condition: Condition | None,
    *,
    with_ids: bool,
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of the fragments for which `sql` is true, in their order. None means all fragments.

    `place` is the table's location and address. Errors show it and `condition`, which is the user's own condition.
    """
    written = condition.written if condition is not None else None
    with read_errors(*place, dataset, written, sql):
        scanner = dataset.scanner(
            columns=list(columns),
            filter=sql,
            fragments=None if fragments is None else list(fragments),
            with_row_address=True,
            with_row_id=with_ids,
            batch_size=None if columns else rows_at_once(dataset.schema, sql),
            scan_in_order=True,
            blob_handling="all_binary",
        )
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield batch


def rows_at_once(schema: pa.Schema, sql: str) -> int | None:
    """Returns the number of rows that a scan with the condition reads at once.

    Returns None, which means Lance's default, if the condition may name a column with values of variable length. Large
    batches help because a scan that finds few rows spends most of its time between batches.
    """
    text = sql.lower()
    wide = (each.name for each in schema if not _is_narrow(each.type))
    return None if any(name.lower() in text or "`" in name for name in wide) else SCANNED_AT_ONCE


def _is_narrow(kind: pa.DataType) -> bool:
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind))


def offsets_of(addresses: Sequence[Any]) -> Offsets:
    """Returns row addresses, given as Arrow or numpy arrays, as ascending offsets by fragment id."""
    parts = [np.asarray(each, dtype=np.uint64) for each in addresses]
    found = np.sort(np.concatenate([np.zeros(0, np.uint64), *parts]))
    if not len(found):
        return {}
    numbers = (found >> np.uint64(32)).astype(np.int64)
    offsets = (found & np.uint64(0xFFFFFFFF)).astype(np.int64)
    present, starts = np.unique(numbers, return_index=True)
    stops = [*starts[1:], len(found)]
    return {int(n): offsets[start:stop] for n, start, stop in zip(present, starts, stops, strict=True)}


def addresses_of(offsets: Offsets) -> NDArray[np.uint64]:
    """Returns the ascending addresses of rows, which are given as offsets by fragment id."""
    parts = [(np.uint64(number) << np.uint64(32)) | offsets[number].astype(np.uint64) for number in sorted(offsets)]
    return np.concatenate([np.zeros(0, np.uint64), *parts])


@dataclass(slots=True)
class Deletions:
    """The deletion files that a change writes for fragments. They are kept from one attempt of the change to the
    next."""

    location: str
    _written: dict[str, Any] = field(default_factory=dict)  #: Lance's metadata by the path of the deletion file

    def without(self, dataset: LanceDataset, offsets: Offsets) -> tuple[tuple[Any, ...], tuple[int, ...]]:
        """Writes deletion files for these rows. Returns Lance's metadata of the fragments that still have rows, and the
        ids of the fragments that have no rows left."""
        changed, removed = list[Any](), list[int]()
        for number, rows in offsets.items():
            fragment = dataset.get_fragment(number)
            if len(rows) == fragment.metadata.num_rows:
                removed.append(number)
                continue
            after = fragment.delete_rows(rows.tolist())
            self._written[deletion_path(after)] = after
            changed.append(after)
        return tuple(changed), tuple(removed)

    def discard(self, kept: Sequence[Any] = ()) -> None:
        """Removes the written deletion files, except those of the committed fragments `kept`."""
        needed = {deletion_path(each) for each in kept}
        paths = [path for path in self._written if path not in needed]
        if paths:
            objects_at(self.location).delete(paths)
        self._written = {path: each for path, each in self._written.items() if path in needed}


def deletion_path(fragment: Any) -> str:
    """Returns the path of the fragment's deletion file, relative to the dataset."""
    path: str = fragment.deletion_file.path(fragment.id)
    return path


def rows_by_partition(table: OpenTable, rows: Mapping[int, int]) -> Iterator[tuple[str | None, int]]:
    """Yields the partition in which each fragment is recorded with the fragment's number of rows, in the order of the
    leaves. `rows` has numbers of rows by fragment id."""
    order = {leaf.partition_id: place for place, leaf in enumerate(table.state.leaves())}
    found = [(file.partition if (file := table.state.files.get(i)) else None, n) for i, n in rows.items()]
    yield from sorted(found, key=lambda each: order.get(each[0] or "", len(order)))
