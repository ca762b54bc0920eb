"""Writes the rows of one range of keys, without duplicates where the keys are unique."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.datasets.files.writer import Layout, WrittenFragment, write_sorted
from deployer.tables.ingest.keys.unique import Duplicates, UniqueLoad

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


def write_range(
    layout: Layout,
    rows: pa.Table,
    partition: str,
    unique: UniqueLoad | None,
    earlier: Sequence[WrittenFragment] = (),
    dataset: LanceDataset | None = None,
) -> tuple[list[WrittenFragment], Duplicates]:
    """Sorts and writes the rows of a range, without duplicates. Returns the fragments and the duplicates.

    `earlier` are the fragments of the range that the load has already written. If duplicates refuse the load, writes
    nothing.
    """
    if unique is None:
        return write_sorted(layout, rows, partition, dataset), Duplicates()
    kept, duplicates = unique.admitted(rows, layout, earlier, dataset)
    if duplicates.rows and unique.on_duplicate == "reject":
        return [], duplicates
    return write_sorted(layout, kept, partition, dataset), duplicates
