"""Empties a table: an empty dataset takes the place of the one with the rows, by one commit.

Columns, keys, settings, declared indexes and the table's id stay, and so does the partition tree unless another is
wanted. The rows are kept where they are for as long as the table's `storage.keep_replaced_for` says, for `query --at`
and for who still reads them. A load that runs meanwhile is told that its rows are not in the table, and one that was
done can be run again under the same job id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from deployer.errors import CommitTimedOut, Conflict, Refused
from deployer.live.former import kept_ms
from deployer.live.lance_io import latest_version, open_dataset
from deployer.live.reader import SPLIT_POINTS, live_table
from deployer.specs.json_form import key_to_json
from deployer.specs.model import KeyValue, TableSpec
from deployer.state.commits import Part
from deployer.state.conflicts import to_begin_rewrite, to_swap
from deployer.state.failpoints import reached
from deployer.state.location import rewrite_location
from deployer.state.model import INSTANCE_LOG, Dataset, Partition
from deployer.state.requirements import TableHasStatus
from deployer.state.store import StateStore
from deployer.state.updates import RewriteStarted, SetTableDataset, SetTableProperties, TableRewritten, TableUpdate
from deployer.tables.dataset import OpenTable, open_entry
from deployer.tables.indexes import settle_indexes
from deployer.tables.progress import OnProgress, untold
from deployer.tables.protection import rows_held
from deployer.tables.removal import require_removable
from deployer.tables.rewrite_cleanup import give_up
from deployer.tables.rewrite_progress import Progress
from deployer.tables.rewrite_target import create_target, target_of
from deployer.tables.split_points import declared_partitions
from deployer.tables.storage import dataset_uri

ATTEMPTS = 20  #: how often it is tried again because others commit meanwhile
_TARGET = "empty"  #: of the dataset that is to take the place: no rewrite has such a fingerprint


@dataclass(frozen=True, slots=True)
class Emptied:
    """What a table held before; `kept_at` is where that is (empty: it held nothing), until `kept_until` (ms, UTC)."""

    table: str
    rows: int
    bytes: int
    files: int
    leaves: int
    kept_at: str = ""
    kept_until: int = 0


def reinitialise_table(
    store: StateStore,
    root: str,
    table_id: str,
    *,
    delete_partitions: bool = False,
    split_points: Sequence[tuple[KeyValue, ...]] | None = None,
    allow_destroy: bool = False,
    on_progress: OnProgress = untold,
) -> Emptied:
    """Empties the table. It keeps its partition tree, unless `delete_partitions`: then it gets the leaves that
    `split_points` make, which become the declared ones, or else those that are declared, without what was split since.

    Raises Refused when it holds rows and is protected, unless `allow_destroy`; Conflict while it is being rewritten;
    Corrupt where its recorded keys do not fit its columns.
    """
    for _ in range(ATTEMPTS):
        table = open_entry(store, root, store.instance().tables[table_id])
        live = live_table(table.entry, table.state)
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
        if (emptied := _replace(table, wanted, tree)) is not None:
            settle_indexes(store, root, table_id, wanted, on_progress)
            return emptied
    raise CommitTimedOut(
        "others commit to the table faster than it can be emptied", where=table.address, attempts=ATTEMPTS
    )


def _replace(table: OpenTable, wanted: TableSpec, tree: Sequence[Partition]) -> Emptied | None:
    """Puts an empty dataset in the place of the one there is; None when the table moved on meanwhile."""
    store, state, entry = table.store, table.state, table.entry
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
        create_target(new, table, target_of(table, live_table(entry, state).spec))
        reached("tables.reinitialise.created")
        dataset = open_dataset(new)
        schema = dataset.schema.serialize().to_pybytes()
        updates: list[TableUpdate] = [
            TableRewritten(number, entry.location, schema, dataset.version, tuple(tree), (), forgets_jobs=True)
        ]
        declared = [key_to_json(point) for point in wanted.split_points]
        if declared != list(state.properties.declared.get(SPLIT_POINTS) or ()):  # type: ignore[arg-type]
            updates.insert(0, SetTableProperties({"declared": {**state.properties.declared, SPLIT_POINTS: declared}}))
        moved = SetTableDataset(entry.table_id, location, number)
        unchanged = to_swap(state.dataset, state.properties.generation, state.lance_version)
        try:
            if latest_version(table.location) != state.lance_version:  # what was added is to be told, and is kept too
                raise Conflict("somebody committed to the dataset")
            after = store.commit_all(
                [
                    Part(INSTANCE_LOG, [moved], [TableHasStatus(entry.table_id, "active")]),
                    Part(entry.table_id, updates, unchanged),
                ]
            )[entry.table_id]
        except Conflict:
            give_up(store, table.root, entry.table_id, number, location)
            return None
        reached("tables.reinitialise.swapped")
    files = state.files
    until = after.at + kept_ms(state)
    leaves = sum(each.is_leaf for each in tree)
    return Emptied(entry.full_name, files.rows, files.bytes, files.count, leaves, entry.location, until)


def _give_up_others(table: OpenTable) -> None:
    """Removes what rewrites left that were cut off: they would go on with rows that are in the table no more."""
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
