"""Finds the rows in fragments that have a key of a merge's source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.errors import lance_errors
from deployer.datasets.files.row_ids import ROW_ID
from deployer.tables.read.scan_plan import fragments_by_id
from deployer.tables.rows.matching import ADDRESS
from deployer.tables.rows.source import MergeSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

READ_ROWS = 131_072  #: number of keys that are looked up at once


@dataclass(frozen=True, slots=True)
class Matches:
    """The rows of the table that have a key of the source: their addresses, their row ids, and for each row the place
    of the matching row in the source."""

    addresses: NDArray[np.uint64]
    ids: NDArray[np.uint64]
    places: NDArray[np.int64]

    def part(self, start: int, stop: int) -> Matches:
        return Matches(self.addresses[start:stop], self.ids[start:stop], self.places[start:stop])


def matched(location: str, dataset: LanceDataset, source: MergeSource, fragment_ids: Sequence[int]) -> Matches:
    """Returns the rows of these fragments that have a key of the source. Only the key columns are read."""
    none = np.zeros(0, np.uint64)
    if not fragment_ids or not len(source.keyed):
        return Matches(none, none, np.zeros(0, np.int64))
    names, stable = list(source.on), bool(dataset.has_stable_row_ids)
    of_code = source.keyed[source.keys.first_rows()]
    addresses, ids, places = [], [], []
    with lance_errors(location):
        scanner = dataset.scanner(
            columns=names,
            fragments=fragments_by_id(dataset, fragment_ids),
            with_row_address=True,
            with_row_id=stable,
            batch_size=READ_ROWS,
        )
        for batch in scanner.to_batches():
            codes, hits = _hits(source, batch.select(names))
            if not len(codes):
                continue
            own = np.asarray(batch.column(ADDRESS))[hits]
            addresses.append(own)
            ids.append(np.asarray(batch.column(ROW_ID))[hits] if stable else own)
            places.append(of_code[codes])
    if not addresses:
        return Matches(none, none, np.zeros(0, np.int64))
    return Matches(np.concatenate(addresses), np.concatenate(ids), np.concatenate(places))


def _hits(source: MergeSource, keys: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the numbers, in the source, of those `keys` that the source has, and their places in `keys`.

    A key with a null does not match.
    """
    if not any(column.null_count for column in keys.columns):
        return source.keys.matches(keys.columns)
    there = np.ones(keys.num_rows, np.bool_)
    for column in keys.columns:
        there &= np.asarray(pc.is_valid(column))
    rows = np.flatnonzero(there)
    codes, hits = source.keys.matches(keys.take(pa.array(rows)).columns)
    return codes, rows[hits]
