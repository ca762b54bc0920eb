"""Empties a table: an empty dataset replaces the one with the rows, by one commit.

Columns, keys, settings, declared indexes and the table's id stay, and so does the partition tree unless a new one is
requested. The rows are kept for the table's `storage.keep_replaced_for`, for `query --at` and for running readers. A
concurrent load fails with an error that its rows are not in the table. A finished load can be run again with the same
job id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from deployer.errors import CommitTimedOut, Refused
from deployer.live.former_datasets import kept_ms
from deployer.live.reader import live_table
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.specs.model import KeyValue, TableSpec
from deployer.specs.serialized.specs import key_to_json
from deployer.state.log.updates import SetTableProperties, TableUpdate
from deployer.state.model.declared_properties import SPLIT_POINTS
from deployer.state.model.entities import Partition
from deployer.state.model.times import TIME
from deployer.state.store import StateStore
from deployer.tables.evolution.rewrite.empty_dataset import ATTEMPTS, swap_in
from deployer.tables.evolution.rewrite.target import create_target, target_of
from deployer.tables.inspect.protection import refuse_held_table, rows_held
from deployer.tables.layout.indexes.apply import settle_indexes
from deployer.tables.layout.partitions.split_points import declared_partitions
from deployer.tables.open_table import OpenTable, open_entry


@dataclass(frozen=True, slots=True)
class FormerContent:
    """The former content of a table; `kept_at` is its place (empty: there was no content) until `kept_until` (ms,
    UTC)."""

    table: str
    rows: int
    bytes: int
    files: int
    leaves: int
    kept_at: str = ""
    kept_until: int = field(default=0, metadata=TIME)


def reinitialise_table(
    store: StateStore,
    root: str,
    table_id: str,
    *,
    delete_partitions: bool = False,
    split_points: Sequence[tuple[KeyValue, ...]] | None = None,
    allow_destroy: bool = False,
    on_progress: OnProgress = no_progress,
) -> FormerContent:
    """Empties the table. It keeps its partition tree, unless `delete_partitions`: then it gets the leaves of
    `split_points`, which become the declared ones, or otherwise the declared leaves without later splits.

    Raises Refused when it holds rows and is protected, unless `allow_destroy`; Conflict while it is being rewritten;
    Corrupt where its recorded keys do not fit its columns.
    """
    for _ in range(ATTEMPTS):
        table = open_entry(store, root, store.instance().tables[table_id])
        live = live_table(table.entry, table.state)
        refuse_held_table(store, table.entry)
        table.layout()  # raises Corrupt before anything is written where keys and columns disagree
        held = rows_held(root, live) if live.spec.deletion_protection and not allow_destroy else 0
        if held:
            raise Refused(
                f"the table holds {held:,} rows and is protected from deletion",
                where=table.address,
                remedy="set deletion_protection: false, or give the command that names the table",
            )
        wanted = live.spec if split_points is None else replace(live.spec, split_points=tuple(split_points))
        if split_points and not wanted.row_keys:
            raise Refused("a table without row keys has one partition", where=table.address, remedy="leave them out")
        tree = declared_partitions(wanted) if delete_partitions else tuple(table.state.partitions.values())
        if (emptied := _replace(table, wanted, tree, on_progress)) is not None:
            settle_indexes(store, root, table_id, wanted, on_progress)
            return emptied
    raise CommitTimedOut(
        "other processes commit to the table faster than it can be emptied", where=table.address, attempts=ATTEMPTS
    )


def _replace(
    table: OpenTable, wanted: TableSpec, tree: Sequence[Partition], on_progress: OnProgress
) -> FormerContent | None:
    """Replaces the dataset by an empty one; returns None when the table changed meanwhile."""
    state = table.state
    target = target_of(table, live_table(table.entry, state).spec)
    declared = [key_to_json(point) for point in wanted.split_points]
    changes: list[TableUpdate] = []
    if declared != list(state.properties.declared.get(SPLIT_POINTS) or ()):  # type: ignore[arg-type]
        changes.append(SetTableProperties({"declared": {**state.properties.declared, SPLIT_POINTS: declared}}))

    def create(location: str) -> tuple[TableUpdate, ...]:
        create_target(location, table, target)
        return ()

    after = swap_in(table, create, changes, tree, forgets_jobs=True, on_progress=on_progress)
    if after is None:
        return None
    files = state.files
    leaves = sum(each.is_leaf for each in tree)
    until = after + kept_ms(state)
    return FormerContent(
        table.entry.full_name, files.rows, files.bytes, files.count, leaves, table.entry.location, until
    )
