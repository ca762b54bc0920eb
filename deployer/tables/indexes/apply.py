"""Applies the plan's changes of a table's indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from deployer.datasets.indexes import live_indexes
from deployer.datasets.recovery.rollforward import refresh
from deployer.plan import changes as c
from deployer.plan.diff.indexes import diff_indexes
from deployer.system.progress import OnProgress, no_progress
from deployer.tables.indexes.build import build_index, drop_index
from deployer.tables.indexes.rename import rename_index

if TYPE_CHECKING:
    from deployer.specs.model import TableSpec
    from deployer.state.store import StateStore


def apply_index_change(
    store: StateStore, root: str, table_id: str, change: c.IndexChange, on_progress: OnProgress = no_progress
) -> None:
    """Apply one change of the plan."""
    match change:
        case c.CreateIndex(index=index) | c.RebuildIndex(after=index):
            build_index(store, root, table_id, index, on_progress)
        case c.DropIndex(index=index):
            drop_index(store, root, table_id, index.name)
        case c.RenameIndex(before=before, after=after):
            rename_index(store, root, table_id, before.name, after)
        case _:
            assert_never(change)


def settle_indexes(
    store: StateStore, root: str, table_id: str, spec: TableSpec, on_progress: OnProgress = no_progress
) -> None:
    """Build what the spec has and the table lacks, such as an index that went with a column's old type."""
    live = live_indexes(refresh(store, root, table_id))
    for change in diff_indexes(spec.address, live, spec.indexes):
        apply_index_change(store, root, table_id, change, on_progress)
