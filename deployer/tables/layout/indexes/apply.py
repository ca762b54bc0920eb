"""Applies the changes of a table's indexes that a plan contains."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.indexes.read import RememberedIndex, live_indexes, observed_indexes, remembered_indexes
from deployer.datasets.indexes.sections import rename_segments
from deployer.datasets.lance_transactions import commit_now
from deployer.datasets.recovery.rollforward import refresh
from deployer.errors import NotFound
from deployer.plan import changes as c
from deployer.plan.diff.indexes import diff_indexes
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.tables.layout.indexes.build import build_index, change_remembered, committed, drop_index, remember
from deployer.tables.layout.indexes.parts import PlanBuild, in_one_part

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.specs.model import IndexSpec, TableSpec
    from deployer.state.store import StateStore


def apply_index_change(
    store: StateStore,
    root: str,
    table_id: str,
    change: c.IndexChange,
    on_progress: OnProgress = no_progress,
    plan_build: PlanBuild = in_one_part,
) -> None:
    """Applies one change of the plan."""
    match change:
        case c.CreateIndex(index=index) | c.RebuildIndex(after=index):
            location = dataset_location(root, store.instance().tables[table_id])
            plan = plan_build(location, store.table(table_id).files.rows)
            build_index(store, root, table_id, index, on_progress, plan=plan)
        case c.DropIndex(index=index):
            drop_index(store, root, table_id, index.name)
        case c.RenameIndex(before=before, after=after):
            rename_index(store, root, table_id, before.name, after)
        case _:
            assert_never(change)


def settle_indexes(
    store: StateStore,
    root: str,
    table_id: str,
    spec: TableSpec,
    on_progress: OnProgress = no_progress,
    plan_build: PlanBuild = in_one_part,
) -> None:
    """Builds the indexes of the spec that the table lacks, such as an index that was dropped with a column's old
    type."""
    live = live_indexes(refresh(store, root, table_id))
    for change in diff_indexes(spec.address, live, spec.indexes):
        apply_index_change(store, root, table_id, change, on_progress, plan_build)


def rename_index(store: StateStore, root: str, table_id: str, name: str, after: IndexSpec) -> None:
    """Renames the index `name` to the name of `after`, which has the same declaration. Can be repeated after a crash.

    Raises Conflict where others keep committing, NotFound where the index does not exist.
    """
    entry = store.instance().tables[table_id]
    location = dataset_location(root, entry)
    state = refresh(store, root, table_id)
    waiting = remembered_indexes(state.properties).get(name)
    if name in observed_indexes(open_dataset(location)):
        # The record keeps the parameters that Lance does not report.
        remember(store, table_id, RememberedIndex(after, "building", state.dataset))
        reached("tables.index.begun")

        def rename(dataset: LanceDataset) -> None:
            commit_now(location, dataset, rename_segments(location, dataset, name, after.name))

        committed(entry, root, rename)
        reached("tables.index.renamed")
        refresh(store, root, table_id)
    elif waiting is not None:  # the index has no files yet
        renamed = RememberedIndex(after, waiting.status, waiting.dataset)
        change_remembered(
            store, table_id, lambda all_: {**{key: all_[key] for key in all_ if key != name}, after.name: renamed}
        )
    else:
        raise NotFound(f"the table has no index {name} any more", where=entry.address, remedy="preview again")
