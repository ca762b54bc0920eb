"""The log's record of a change of rows. It is the same update whether the changing process or the roll-forward writes
it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.lance_transactions import TakenRows
from deployer.state.log.updates import RowsChanged, RowsLeft
from deployer.state.model.entities import File, RowCounts
from deployer.state.model.files.computed_by import joined, with_rows_of


def rows_changed(
    held: Callable[[int], File | None],
    taken: TakenRows,
    added: tuple[File, ...],
    version: int,
    info: CommitMetadata,
) -> RowsChanged:
    """Returns the update that records a change of rows, from the table's files before it.

    Rows with new values are in the added files, together with their unchanged values of other columns. Those values
    count as computed wherever they are in the files that lost rows.
    """
    touched = [file for each in (*taken.left, *taken.removed) if (file := held(each)) is not None]
    if added and any(file.computed for file in touched):
        before = joined(["", *(file.computed for file in touched)])
        added = tuple(replace(file, computed=with_rows_of(file.computed, before)) for file in added)
    left = [
        RowsLeft(fragment_id, rows)
        for fragment_id, rows in sorted(taken.left.items())
        if (file := held(fragment_id)) is not None and file.rows != rows
    ]
    removed = tuple(fragment_id for fragment_id in taken.removed if held(fragment_id) is not None)
    counts = info.counts or RowCounts()
    return RowsChanged(tuple(left), removed, added, version, info.job_id, info.kind, counts, info.sources)
