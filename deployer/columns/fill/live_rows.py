"""Reads the rows of a fragment that are not deleted, in their order, so that rows can keep their values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.tables.rows.matching import ADDRESS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

    Offsets = NDArray[np.int64]


def live_rows(dataset: LanceDataset, fragment_id: int, schema: pa.Schema, batch_rows: int | None = None) -> LiveRows:
    """Returns the live rows of a fragment, with the columns of the schema. At most `batch_rows` rows are read at a
    time."""
    scanner = dataset.scanner(
        columns=list(schema.names),
        fragments=[dataset.get_fragment(fragment_id)],
        scan_in_order=True,
        with_row_address=True,
        batch_size=batch_rows,
    )
    return LiveRows(scanner.to_batches(), schema)


class LiveRows:
    """The rows of a fragment that are not deleted. Calls must request ranges in ascending order."""

    def __init__(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches, self._schema = iter(batches), schema
        self._left = schema.empty_table()
        self._offsets: Offsets = np.empty(0, np.int64)

    def between(self, start: int, stop: int) -> tuple[Offsets, pa.Table]:
        """Returns the live rows from physical row `start` up to `stop`, and their distances from `start`. Skips earlier
        rows that were not requested."""
        self._drop(int(np.searchsorted(self._offsets, start)))
        while not len(self._offsets) or self._offsets[-1] < stop:
            batch = next(self._batches, None)
            if batch is None:
                break
            rows = pa.Table.from_batches([batch])
            offsets = offsets_in(rows.column(ADDRESS))
            if skipped := int(np.searchsorted(offsets, start)):  # rows of saved parts
                offsets, rows = offsets[skipped:], rows.slice(skipped)
            self._offsets = np.concatenate([self._offsets, offsets])
            self._left = pa.concat_tables([self._left, _as_of(self._schema, rows)])
        number = int(np.searchsorted(self._offsets, stop))
        found = self._offsets[:number] - start, self._left.slice(0, number)
        self._drop(number)
        return found

    def _drop(self, rows: int) -> None:
        if rows:
            self._offsets, self._left = self._offsets[rows:], self._left.slice(rows)


def _as_of(schema: pa.Schema, rows: pa.Table) -> pa.Table:
    """Returns the rows with the types of the schema. Only columns of another type are cast, because Arrow refuses to
    cast null structs whose fields are not nullable, even to their own type."""
    columns = [
        rows[field.name] if rows[field.name].type == field.type else rows[field.name].cast(field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def offsets_in(addresses: pa.Array | pa.ChunkedArray) -> Offsets:
    """Returns the physical offsets of rows in their fragment: the low 32 bits of their addresses."""
    found: Offsets = np.asarray(addresses).astype(np.int64)
    return found & 0xFFFFFFFF
