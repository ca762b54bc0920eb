"""Puts another dataset in the place of a table's dataset, by one commit: to empty the table, to give a table without
rows any other columns and keys, or to build a view again.

The former dataset is kept for the table's `storage.keep_replaced_for`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from deployer.datasets.dataset import latest_version, open_dataset
from deployer.datasets.storage.places import dataset_uri
from deployer.datasets.storage.removal import require_removable
from deployer.errors import CommitTimedOut, Conflict, DeployerError, Refused
from deployer.live.model import LiveTable
from deployer.plan import changes as c
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.specs.model import TableSpec
from deployer.state.commits import Part
from deployer.state.log.requirements import TableHasStatus
from deployer.state.log.updates import RewriteStarted, SetTableDataset, SetTableProperties, TableRewritten, TableUpdate
from deployer.state.model.entities import INSTANCE_LOG, Dataset, Partition
from deployer.state.model.location import rewrite_location
from deployer.state.store import StateStore
from deployer.state.transactions.tables import to_begin_rewrite, to_swap
from deployer.tables.evolution.rewrite.claims import wait_for_writers
from deployer.tables.evolution.rewrite.cleanup import give_up
from deployer.tables.evolution.rewrite.progress import Progress
from deployer.tables.evolution.rewrite.target import create_empty, target_without_rows
from deployer.tables.inspect.recorded import recorded_table
from deployer.tables.layout.indexes.apply import apply_index_change
from deployer.tables.layout.partitions.split_points import declared_partitions
from deployer.tables.open_table import OpenTable, open_entry

if TYPE_CHECKING:
    pass

ATTEMPTS = 20  #: how often a swap is tried again because others commit meanwhile
_TARGET = "empty"  #: fingerprint of the replacing dataset; no rewrite has this fingerprint


def redeclare_empty(
    store: StateStore, root: str, live: LiveTable, spec: TableSpec, changes: Sequence[c.Change]
) -> LiveTable:
    """Gives a table without rows the columns, keys, split points and storage of `spec`, whatever its current ones.

    Of `changes`, those that drop indexes are made too. Returns the resulting table, which may differ from `spec` in all
    other properties. Raises Refused when the table holds rows meanwhile, CommitTimedOut when others keep changing it.
    """
    for change in changes:
        if isinstance(change, c.DropIndex):
            apply_index_change(store, root, live.table_id, change)
    target = target_without_rows(spec)
    for _ in range(ATTEMPTS):
        table = open_entry(store, root, store.instance().tables[live.table_id])
        if rows := table.state.files.rows:
            raise Refused(
                f"{rows:,} rows were loaded since this was planned, when the table held none; the table is unchanged",
                where=spec.address,
                remedy="preview again",
            )

        def create(location: str, table: OpenTable = table) -> tuple[TableUpdate, ...]:
            create_empty(location, table, target, target.schema)
            return ()

        changed = [SetTableProperties(target.properties(table.state))]
        if swap_in(table, create, changed, declared_partitions(spec)) is not None:
            return recorded_table(store, root, store.instance().tables[live.table_id])
    raise CommitTimedOut(
        "other processes commit to the table faster than it can be changed", where=spec.address, attempts=ATTEMPTS
    )


def swap_in(
    table: OpenTable,
    create: Callable[[str], Sequence[TableUpdate]],
    changes: Sequence[TableUpdate],
    tree: Sequence[Partition],
    *,
    forgets_jobs: bool = False,
    on_progress: OnProgress = no_progress,
) -> int | None:
    """Swaps in the dataset that `create` makes at the given location, together with `changes`.

    `create` returns the updates for the rows that it wrote; none for a dataset without rows. Returns the time of the
    commit, in ms since 1970; None when the table has changed since it was opened. Waits for runs that write columns of
    the table.
    """
    store, state, entry = table.store, table.state, table.entry
    if wait_for_writers(store, entry.table_id, table.address, on_progress):
        return None
    _give_up_others(table)
    number = max((each.number for each in state.datasets), default=1) + 1
    location = rewrite_location(entry.location, entry.table_id, number)
    try:
        store.commit(
            entry.table_id,
            [RewriteStarted(number, location, _TARGET)],
            to_begin_rewrite(state.dataset, state.properties.generation),
        )
    except Conflict:
        return None
    reached("tables.reinitialise.started")
    with _held(table, location):
        new = dataset_uri(table.root, location)
        try:
            rows = create(new)
        except Exception:  # such as a query that fails for a row: the table keeps its rows
            with suppress(DeployerError):  # the next `up` removes the rest
                give_up(store, table.root, entry.table_id, number, location)
            raise
        reached("tables.reinitialise.created")
        dataset = open_dataset(new)
        schema = dataset.schema.serialize().to_pybytes()
        rewritten = TableRewritten(
            number, entry.location, schema, dataset.version, tuple(tree), (), forgets_jobs=forgets_jobs
        )
        moved = SetTableDataset(entry.table_id, location, number)
        unchanged = to_swap(state.dataset, state.properties.generation, state.lance_version)
        try:
            if (
                latest_version(table.location) != state.lance_version
            ):  # the added rows must be visible, and are kept too
                raise Conflict("another process committed to the dataset")
            after = store.commit_all(
                [
                    Part(INSTANCE_LOG, [moved], [TableHasStatus(entry.table_id, "active")]),
                    Part(entry.table_id, [*changes, rewritten, *rows], unchanged),
                ]
            )[entry.table_id]
        except Conflict:
            give_up(store, table.root, entry.table_id, number, location)
            return None
        reached("tables.reinitialise.swapped")
    return after.at


def _give_up_others(table: OpenTable) -> None:
    """Removes the datasets of interrupted rewrites, which would resume with rows that are no longer in the table."""
    for each in table.state.datasets:
        if each.status == "writing":
            require_removable(table.store, table.root, table.entry.table_id, each.location, unfinished=True)
            with _held(table, each.location):
                if _status(table, each) == "writing":
                    give_up(table.store, table.root, table.entry.table_id, each.number, each.location)


def _status(table: OpenTable, dataset: Dataset) -> str:
    return {each.number: each.status for each in table.store.table(table.entry.table_id).datasets}[dataset.number]


@contextmanager
def _held(table: OpenTable, location: str) -> Iterator[None]:
    uri = dataset_uri(table.root, location)
    progress = Progress(uri)
    with progress.held():
        yield
    progress.remove()
