"""Reads the keys of a fragment's rows, and merges the values that rows keep where a source has no row for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from deployer.columns.fill.live_rows import offsets_in
from deployer.columns.fill.work import FragmentWork
from deployer.columns.load.buckets import taken
from deployer.columns.load.keys import NONE
from deployer.datasets.errors import lance_errors
from deployer.tables.rows.matching import ADDRESS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

    Places = NDArray[np.int64]


def carried(values: pa.Table, places: Places, offsets: NDArray[np.int64], old: pa.Table) -> pa.Table:
    """Returns the values, with `old` values where the source has no row. `old` has the values of the rows at
    `offsets`."""
    stays = places[offsets] == NONE
    if not bool(stays.any()):
        return values
    chosen = np.arange(len(places), dtype=np.int64)
    chosen[offsets[stays]] = len(places) + np.flatnonzero(stays)
    return taken(pa.concat_tables([values, old]).combine_chunks(), chosen)


def keys_of(dataset: LanceDataset, work: FragmentWork, pk: str) -> tuple[pa.ChunkedArray, NDArray[np.int64] | None]:
    """Returns the keys of the fragment's rows that are not deleted, and their physical offsets. The offsets are None
    where no row is deleted."""
    fragment = dataset.get_fragment(work.fragment_id)
    has_deletions = bool(fragment.metadata.num_deletions)
    scanner = dataset.scanner(columns=[pk], fragments=[fragment], scan_in_order=True, with_row_address=has_deletions)
    with lance_errors(dataset.uri):
        rows = scanner.to_table()
    if not has_deletions:
        return rows.column(pk), None
    return rows.column(pk), offsets_in(rows.column(ADDRESS))
