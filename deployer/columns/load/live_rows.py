"""The rows of a fragment that are not deleted: their keys, and the values that they keep where a source has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.columns.fill.work import FragmentWork
from deployer.columns.load.buckets import taken
from deployer.columns.load.keys import NONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

    Places = NDArray[np.int64]


def live_rows(dataset: LanceDataset, work: FragmentWork, schema: pa.Schema) -> LiveRows:
    """Returns the rows of a fragment with the columns of the schema."""
    fragment = dataset.get_fragment(work.fragment_id)
    names = list(schema.names)
    scanner = dataset.scanner(columns=names, fragments=[fragment], scan_in_order=True, with_row_address=True)
    return LiveRows(scanner.to_batches(), schema)


class LiveRows:
    """The rows of a fragment that are not deleted, taken in order. They may be fewer than when their keys were read."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches, self._schema = iter(batches), schema
        self._left = schema.empty_table()
        self._offsets = np.empty(0, np.int64)

    def between(self, start: int, stop: int) -> tuple[NDArray[np.int64], pa.Table]:
        """Returns the rows between two physical rows, with their distances from the first. What is asked for next comes
        behind these."""
        while not len(self._offsets) or self._offsets[-1] < stop:
            batch = next(self._batches, None)
            if batch is None:
                break
            rows = pa.Table.from_batches([batch])
            offsets = offsets_of(rows)
            if skipped := int(np.searchsorted(offsets, start)):  # of parts that are saved
                offsets, rows = offsets[skipped:], rows.slice(skipped)
            self._offsets = np.concatenate([self._offsets, offsets])
            self._left = pa.concat_tables([self._left, rows.select(self._schema.names).cast(self._schema)])
        number = int(np.searchsorted(self._offsets, stop))
        found = self._offsets[:number] - start, self._left.slice(0, number)
        self._offsets, self._left = self._offsets[number:], self._left.slice(number)
        return found


def carried(values: pa.Table, places: Places, offsets: NDArray[np.int64], old: pa.Table) -> pa.Table:
    """Returns the values, with the `old` ones, of rows at these offsets, where the source has none."""
    stays = places[offsets] == NONE
    if not bool(stays.any()):
        return values
    chosen = np.arange(len(places), dtype=np.int64)
    chosen[offsets[stays]] = len(places) + np.flatnonzero(stays)
    return taken(pa.concat_tables([values, old]).combine_chunks(), chosen)


def keys_of(dataset: LanceDataset, work: FragmentWork, pk: str) -> tuple[pa.ChunkedArray, NDArray[np.int64] | None]:
    """Returns the keys of the fragment's rows that are not deleted, and their physical offsets: None where none is
    deleted."""
    fragment = dataset.get_fragment(work.fragment_id)
    has_deletions = bool(fragment.metadata.num_deletions)
    scanner = dataset.scanner(columns=[pk], fragments=[fragment], scan_in_order=True, with_row_address=has_deletions)
    rows = scanner.to_table()
    if not has_deletions:
        return rows.column(pk), None
    return rows.column(pk), offsets_of(rows)


def offsets_of(rows: pa.Table) -> NDArray[np.int64]:
    """Returns the physical offsets of rows in their fragment, which the low half of their addresses is."""
    addresses: NDArray[np.int64] = rows.column("_rowaddr").to_numpy().astype(np.int64)
    return addresses & 0xFFFFFFFF
