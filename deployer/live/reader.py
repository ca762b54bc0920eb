"""Reads the state store's records into the models of specs.

This module does not write anything. A table that cannot be read is reported, and the others are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from deployer.datasets.dataset import dataset_location
from deployer.datasets.files.local_files import require_whole
from deployer.datasets.indexes.read import live_indexes
from deployer.datasets.recovery.as_recorded import as_recorded
from deployer.errors import Corrupt, DeployerError, Interrupted, InvalidInput, NotFound
from deployer.live.backfill_rates import backfill_rates
from deployer.live.former_datasets import former_datasets
from deployer.live.model import LiveLake, LiveTable, TableStatistics, UnfinishedTable, Unreadable
from deployer.live.services import live_services
from deployer.live.uncomputed import ids_of_columns, uncomputed_columns
from deployer.platform.storage.envelope import FORGED
from deployer.platform.system.progress import OnProgress, counted, no_progress
from deployer.platform.text.visible import shortened
from deployer.specs.declarations.embeddings import embedding_from_json
from deployer.specs.model import Embedding, Hold, InstanceSpec, Retention, TableSpec
from deployer.specs.serialized.retention import holds_from_json, retained_changes_from_json, retention_from_json
from deployer.specs.serialized.specs import instance_from_json, key_from_json, storage_from_json
from deployer.specs.types.arrow import stored_columns
from deployer.specs.types.view import HIDDEN, ViewSpec, view_from_stored
from deployer.specs.validation.plain_values import flag, lists, mapping, optional_whole
from deployer.state.model.declared_properties import (
    EMBEDDING,
    HOLDS,
    MAX_ROWS_PER_LEAF,
    OWNER,
    RETAIN_CHANGES,
    RETENTION,
    SPEC,
    SPLIT_POINTS,
    UNIQUE,
    VIEW,
)
from deployer.state.model.entities import InstanceState, TableEntry, TableState
from deployer.state.model.services import SHARED_LEASE
from deployer.state.reader import StateReader

T = TypeVar("T")

READING_TABLES = "reading tables"  #: the text for progress
READERS = 16  #: tables on S3 that are read at the same time


@dataclass(frozen=True, slots=True)
class ActiveTables:
    """Tables that are neither being created nor being deleted, by id, and those whose logs cannot be read."""

    found: Mapping[str, tuple[TableEntry, TableState]] = field(default_factory=dict)
    unreadable: Mapping[str, Unreadable] = field(default_factory=dict)


def read_lake(
    store: StateReader, root: str, only: Collection[str] | None = None, on_progress: OnProgress = no_progress
) -> LiveLake:
    """Returns the whole lake with all that Lance has; tables being created or deleted are left out.

    `only`: reads only the tables at these addresses.
    """
    active = active_tables(store, only, on_progress)
    read = {**read_tables(store, root, active.found, on_progress), **active.unreadable}
    return lake_of(store.instance(), [*read.values(), *unfinished_tables(store, only)])


def lake_of(instance: InstanceState, tables: Iterable[LiveTable | UnfinishedTable | Unreadable]) -> LiveLake:
    """Returns the lake of an instance whose tables were read."""
    found: dict[str, LiveTable] = {}
    unfinished: list[UnfinishedTable] = []
    unreadable: dict[str, Unreadable] = {}
    for table in tables:
        match table:
            case LiveTable():
                found[table.spec.address] = table
            case UnfinishedTable():
                unfinished.append(table)
            case Unreadable():
                unreadable[table.address] = table
    owner = instance_owner(instance)
    return LiveLake(live_instance(instance), found, owner, True, tuple(unfinished), unreadable)


def active_tables(
    store: StateReader, only: Collection[str] | None = None, on_progress: OnProgress = no_progress
) -> ActiveTables:
    """Returns the active tables, read at once; `only` those at these addresses. Other tables may have no log."""
    entries = {table_id: entry for table_id, entry in _entries(store, only) if entry.status == "active"}
    states, failures = store.each_table(tuple(entries), on_progress)
    found = {table_id: (entry, states[table_id]) for table_id, entry in entries.items() if table_id in states}
    return ActiveTables(found, {table_id: _without_log(entries[table_id], why) for table_id, why in failures.items()})


def _entries(store: StateReader, only: Collection[str] | None) -> Iterable[tuple[str, TableEntry]]:
    return ((id_, entry) for id_, entry in store.instance().tables.items() if only is None or entry.address in only)


def _without_log(entry: TableEntry, why: DeployerError) -> Unreadable:
    if not isinstance(why, NotFound):
        return unreadable(entry, why)
    remedy = f"restore _state from a backup, or delete the table: `deployer table delete {entry.full_name} --force`"
    return Unreadable(entry.address, entry.table_id, "the state store has no log of it", remedy)


def unreadable(entry: TableEntry, why: DeployerError) -> Unreadable:
    """Returns the table of an entry that cannot be read."""
    address = f"table/{entry.full_name}"
    where = "" if why.where is None or str(why.where) == address else f"{why.where}: "
    return Unreadable(address, entry.table_id, f"{where}{why.what}", why.remedy)


def unfinished_tables(store: StateReader, only: Collection[str] | None = None) -> list[UnfinishedTable | Unreadable]:
    """Returns the tables whose creation or deletion was interrupted, by name; rarely any. `only` those at these
    addresses."""
    entries = {table_id: entry for table_id, entry in _entries(store, only) if entry.status != "active"}
    states, failures = store.each_table(tuple(entries)) if entries else ({}, {})
    in_order = sorted(entries.values(), key=lambda each: each.address)
    return [_unfinished(entry, states.get(entry.table_id), failures.get(entry.table_id)) for entry in in_order]


def _unfinished(
    entry: TableEntry, state: TableState | None, failure: DeployerError | None
) -> UnfinishedTable | Unreadable:
    if failure is not None and not isinstance(failure, NotFound):
        return unreadable(entry, failure)
    if state is None:  # without a log, only its entry exists
        return UnfinishedTable(entry)
    try:
        former = _read(lambda: former_datasets(state), entry.address)
    except Corrupt as why:
        return unreadable(entry, why)
    owner = str(state.properties.declared.get(OWNER, ""))
    return UnfinishedTable(entry, owner, state.files.rows, state.properties.deletion_protection, former)


def read_tables(
    store: StateReader,
    root: str,
    found: Mapping[str, tuple[TableEntry, TableState]],
    on_progress: OnProgress = no_progress,
) -> dict[str, LiveTable | Unreadable]:
    """Returns live tables by id, in the order in which they were found; on S3 several are read in parallel.

    A table that was removed meanwhile is left out.
    """

    def read(each: tuple[TableEntry, TableState]) -> LiveTable | Unreadable | None:
        return read_or_why(store, root, *each)

    if "://" not in root or len(found) < 2:
        in_turn = counted(found.items(), len(found), READING_TABLES, "tables", on_progress)
        tables = {table_id: read(each) for table_id, each in in_turn}
    else:
        with ThreadPoolExecutor(min(READERS, len(found)), thread_name_prefix="live") as pool:
            each_read = zip(found, pool.map(read, found.values()), strict=True)
            tables = dict(counted(each_read, len(found), READING_TABLES, "tables", on_progress))
    return {table_id: table for table_id, table in tables.items() if table is not None}


def read_or_why(store: StateReader, root: str, entry: TableEntry, state: TableState) -> LiveTable | Unreadable | None:
    """Returns the live table of an active entry, or the reason why it cannot be read; None when it was removed
    meanwhile."""
    try:
        return read_table(store, root, entry, state)
    except Interrupted:
        raise
    except DeployerError as why:
        now = store.instance().tables.get(entry.table_id) if isinstance(why, NotFound) else entry
        return unreadable(entry, why) if now is not None and now.status == "active" else None


def read_table(store: StateReader, root: str, entry: TableEntry, state: TableState | None = None) -> LiveTable:
    """Returns the live table of an active entry, with all that Lance has. Raises Corrupt, NotFound and the refusals of
    storage.

    `state` is for a caller that has read many at once.
    """
    seen = as_recorded(store, root, entry, state or store.table(entry.table_id))
    require_whole(dataset_location(root, seen.entry), seen.state.files.bytes, seen.manifest)
    table = live_table(seen.entry, seen.state)
    ids_of = partial(ids_of_columns, dataset_location(root, seen.entry))
    found = uncomputed_columns(seen.state, table.spec.columns, ids_of)
    return replace(table, recorded=seen.recorded, uncomputed=found)


def live_instance(state: InstanceState) -> InstanceSpec | None:
    """Returns the instance's spec as it was last applied; None when it has none. Raises Corrupt for one that cannot be
    read."""
    declared: Any = state.properties.get(SPEC)
    if not isinstance(declared, Mapping):
        return None
    return _read(lambda: instance_from_json(declared), "the instance")


def instance_owner(state: InstanceState) -> str:
    """Returns the `project/stack` that manages the instance; empty when none is recorded."""
    return str(state.properties.get(OWNER, ""))


def live_table(entry: TableEntry, state: TableState) -> LiveTable:
    """Returns a table's spec from its Lance schema and its properties. Raises Corrupt where they do not belong to a
    table."""
    return _read(lambda: _live_table(entry, state), entry.address)


def _read(read: Callable[[], T], where: str) -> T:
    """Returns the result of `read`. Raises Corrupt for a record of another shape."""
    try:
        return read()
    except Corrupt as error:
        raise Corrupt(error.what, where=where, remedy=error.remedy) from None
    except InvalidInput as error:
        message = error.what
    except DeployerError:
        raise
    except Exception as error:  # an error of Arrow, or of a value without a check
        message = shortened(f"{type(error).__name__}: {error}")
    raise Corrupt(f"its record in the state cannot be read: {message}", where=where, remedy=FORGED)


def _live_table(entry: TableEntry, state: TableState) -> LiveTable:
    owner = str(state.properties.declared.get(OWNER, ""))
    former = former_datasets(state) if state.datasets else ()
    spec = _spec(entry, state)
    computed = [column.name for column in spec.columns if column.computed is not None]
    return LiveTable(
        spec,
        entry.table_id,
        entry.location,
        owner,
        statistics(state),
        former,
        savepoints=savepoint_names(state),
        rates=backfill_rates(state, computed),
    )


def savepoint_names(state: TableState) -> tuple[str, ...]:
    """Returns the names of the table's savepoints that a deletion would lose, the newest first: without leases of
    readers, which expire by themselves."""
    newest_first = sorted(state.savepoints.values(), key=lambda each: (-each.at, each.name))
    return tuple(each.name for each in newest_first if not each.name.startswith(SHARED_LEASE))


def _spec(entry: TableEntry, state: TableState) -> TableSpec:
    properties = state.properties
    columns = stored_columns(state.schema)
    view = view_of(state)
    if view is not None:
        columns = tuple(column for column in columns if not column.name.startswith(HIDDEN))
    by_name = {column.name: column for column in columns}
    keys = [by_name[name] for name in properties.row_keys if name in by_name]  # another program may drop a key's column
    points = lists(properties.declared, SPLIT_POINTS) if len(keys) == len(properties.row_keys) else ()
    return TableSpec(
        database=entry.database,
        name=entry.name,
        columns=columns,
        row_keys=properties.row_keys,
        sort_keys=properties.sort_keys,
        split_points=tuple(key_from_json(point, keys) for point in points),
        max_rows_per_leaf=leaf_limit(state),
        description=properties.description,
        online=properties.online,
        deletion_protection=properties.deletion_protection,
        storage=storage_from_json(properties.storage),
        tags={key: str(value) for key, value in properties.tags.items()},
        indexes=live_indexes(state),
        services=live_services(state),
        unique=has_unique_keys(state),
        embedding=declared_embedding(state),
        retention=retention_of(state),
        holds=holds_of(state),
        retain_changes=retained_changes(state),
        view=view,
    )


def leaf_limit(state: TableState) -> int | None:
    """Returns how many rows a leaf of the table may hold before it is split; None when no limit is declared."""
    return optional_whole(state.properties.declared, MAX_ROWS_PER_LEAF)


def declared_embedding(state: TableState) -> Embedding | None:
    """Returns the table's embedding function; None without one. Raises InvalidInput for an invalid value."""
    return embedding_from_json(mapping(state.properties.declared, EMBEDDING, {}))


def has_unique_keys(state: TableState) -> bool:
    """Returns whether no two rows of the table may have the same row keys. Raises InvalidInput for a value that is not
    a flag."""
    return bool(state.properties.row_keys) and flag(state.properties.declared, UNIQUE, False)


def retention_of(state: TableState) -> Retention | None:
    """Returns how long rows of the table are kept; None: forever. Raises InvalidInput for what no spec could say."""
    return retention_from_json(state.properties.declared.get(RETENTION))


def holds_of(state: TableState) -> tuple[Hold, ...]:
    """Returns the legal holds on rows of the table. Raises InvalidInput for what no spec could say."""
    return holds_from_json(state.properties.declared.get(HOLDS))


def retained_changes(state: TableState) -> str | None:
    """Returns how long changes of the table can be read; None: as long as versions are kept. Raises InvalidInput for
    what no spec could say."""
    return retained_changes_from_json(state.properties.declared.get(RETAIN_CHANGES))


def view_of(state: TableState) -> ViewSpec | None:
    """Returns how the rows of a view are made; None for a table that is not one. Raises InvalidInput for what is not a
    definition."""
    return view_from_stored(state.properties.declared.get(VIEW))


def statistics(state: TableState) -> TableStatistics:
    """Returns the sizes of the table's newest version."""
    return TableStatistics(
        rows=state.files.rows,
        bytes=state.files.bytes,
        files=state.files.count,
        leaves=len(state.leaves()),
        lance_version=state.lance_version,
        state_version=state.version,
        generation=state.properties.generation,
    )
