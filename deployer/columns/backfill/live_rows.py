"""The values that rows of a fragment have, read in the order of the rows, so that some can stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.tables.rows.matching import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

    Offsets = NDArray[np.int64]


def offsets_in(addresses: pa.Array) -> Offsets:
    """Returns the offsets of rows in their fragment, which the low half of their addresses is."""
    found: Offsets = addresses.to_numpy(zero_copy_only=False).astype(np.int64)
    return found & 0xFFFFFFFF


class LiveRows:
    """The columns of the rows of a fragment that are not deleted. What is asked for next comes behind what was."""

    def __init__(
        self, dataset: LanceDataset, fragment_id: int, columns: Sequence[str], schema: pa.Schema, batch_rows: int
    ) -> None:
        scanner = dataset.scanner(
            columns=list(columns),
            fragments=[dataset.get_fragment(fragment_id)],
            scan_in_order=True,
            with_row_address=True,
            batch_size=batch_rows,
        )
        self._batches: Iterator[pa.RecordBatch] = iter(scanner.to_batches())
        self._schema = schema
        self._left = schema.empty_table()
        self._offsets: Offsets = np.empty(0, np.int64)

    def between(self, start: int, stop: int) -> tuple[Offsets, pa.Table]:
        """Returns the rows between two physical rows, with their distances from the first."""
        while not len(self._offsets) or self._offsets[-1] < stop:
            batch = next(self._batches, None)
            if batch is None:
                break
            offsets = offsets_in(batch.column(ADDRESS))
            rows = pa.Table.from_batches([batch]).select(self._schema.names).cast(self._schema)
            if skipped := int(np.searchsorted(offsets, start)):
                offsets, rows = offsets[skipped:], rows.slice(skipped)
            self._offsets = np.concatenate([self._offsets, offsets])
            self._left = pa.concat_tables([self._left, rows])
        number = int(np.searchsorted(self._offsets, stop))
        found = self._offsets[:number] - start, self._left.slice(0, number)
        self._offsets, self._left = self._offsets[number:], self._left.slice(number)
        return found
