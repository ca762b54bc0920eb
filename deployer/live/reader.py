"""The state store's records as the models that the specs have."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from deployer.errors import Corrupt, DeployerError, NotFound
from deployer.live.former import former_datasets
from deployer.live.indexes import live_indexes
from deployer.live.model import LiveLake, LiveTable, TableStatistics, UnfinishedTable
from deployer.live.rollforward import current
from deployer.live.services import live_services
from deployer.specs.arrow import columns_of
from deployer.specs.json_form import instance_from_json, key_from_json
from deployer.specs.model import InstanceSpec, Storage, TableSpec
from deployer.state.envelope import FORGED
from deployer.state.model import InstanceState, TableEntry, TableState
from deployer.state.names import shortened
from deployer.state.store import StateStore

#: Properties of the instance: its spec as last applied, and who applied it.
SPEC, OWNER = "spec", "owner"
#: What a table's `declared` remembers beside its owner: the split points that were asked for.
SPLIT_POINTS = "split_points"
#: And how many rows a leaf may hold before it is split.
MAX_ROWS_PER_LEAF = "max_rows_per_leaf"

READERS = 16  #: tables on S3 that are read at the same time


def read_lake(store: StateStore, root: str) -> LiveLake:
    """The whole lake, rolled forward to what Lance has; tables being created or deleted are left out."""
    live = read_tables(store, root, active_tables(store))
    instance = store.instance()
    by_address = {table.spec.address: table for table in live.values()}
    owner = instance_owner(instance)
    return LiveLake(live_instance(instance), by_address, owner, read=True, unfinished=unfinished_tables(store))


def active_tables(store: StateStore) -> dict[str, tuple[TableEntry, TableState]]:
    """Tables that are neither being created nor being deleted, by id, read at once. Of others there may be no log."""
    entries = {table_id: entry for table_id, entry in store.instance().tables.items() if entry.status == "active"}
    states = store.tables(tuple(entries))
    return {table_id: (entry, states[table_id]) for table_id, entry in entries.items()}


def unfinished_tables(store: StateStore) -> tuple[UnfinishedTable, ...]:
    """The tables whose creation or deletion was cut off, by name; rarely any."""
    entries = sorted(
        (entry for entry in store.instance().tables.values() if entry.status != "active"), key=lambda each: each.address
    )
    return tuple(_unfinished(store, entry) for entry in entries)


def _unfinished(store: StateStore, entry: TableEntry) -> UnfinishedTable:
    try:
        state = store.table(entry.table_id)
    except NotFound:
        return UnfinishedTable(entry)
    owner = str(state.properties.declared.get(OWNER, ""))
    protected = state.properties.deletion_protection
    return UnfinishedTable(entry, owner, state.files.rows, protected, former_datasets(state))


def read_tables(
    store: StateStore, root: str, found: Mapping[str, tuple[TableEntry, TableState]]
) -> dict[str, LiveTable]:
    """Live tables by id, in the order in which they were found; on S3 several are asked for at once."""

    def read(each: tuple[TableEntry, TableState]) -> LiveTable:
        return read_table(store, root, *each)

    if "://" not in root or len(found) < 2:
        return {table_id: read(each) for table_id, each in found.items()}
    with ThreadPoolExecutor(min(READERS, len(found)), thread_name_prefix="live") as pool:
        return dict(zip(found, pool.map(read, found.values()), strict=True))


def read_table(store: StateStore, root: str, entry: TableEntry, state: TableState | None = None) -> LiveTable:
    """The live table of an active entry, rolled forward to its newest dataset version.

    `state` is for a caller who has read many at once.
    """
    return live_table(*current(store, root, entry, state or store.table(entry.table_id)))


def live_instance(state: InstanceState) -> InstanceSpec | None:
    """The instance's spec as it was last applied; None when it has none. Raises Corrupt for one that cannot be read."""
    declared: Any = state.properties.get(SPEC)
    if not isinstance(declared, Mapping):
        return None
    try:
        return instance_from_json(declared)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _unreadable(error, "the instance") from error


def instance_owner(state: InstanceState) -> str:
    """The `project/stack` that manages the instance; empty when nothing says so."""
    return str(state.properties.get(OWNER, ""))


def live_table(entry: TableEntry, state: TableState) -> LiveTable:
    """A table's spec from its Lance schema and its properties. Raises Corrupt where they are none of a table."""
    try:
        return _live_table(entry, state)
    except DeployerError:
        raise
    except Exception as error:  # of Arrow, or of a value of another shape, which may be anybody's
        raise _unreadable(error, entry.address) from error


def _unreadable(error: Exception, where: str) -> Corrupt:
    said = shortened(f"{type(error).__name__}: {error}")
    return Corrupt(f"what the state says of it cannot be read ({said})", where=where, remedy=FORGED)


def _live_table(entry: TableEntry, state: TableState) -> LiveTable:
    import pyarrow as pa

    properties = state.properties
    columns = columns_of(pa.ipc.read_schema(pa.py_buffer(state.schema)))
    by_name = {column.name: column for column in columns}
    keys = [by_name[name] for name in properties.row_keys if name in by_name]  # others may drop a key's column
    points: Any = properties.declared.get(SPLIT_POINTS, ()) if len(keys) == len(properties.row_keys) else ()
    storage: Any = properties.storage
    spec = TableSpec(
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
        storage=Storage(**storage),
        tags={key: str(value) for key, value in properties.tags.items()},
        indexes=live_indexes(state),
        services=live_services(state),
    )
    owner = str(properties.declared.get(OWNER, ""))
    former = former_datasets(state) if state.datasets else ()
    return LiveTable(spec, entry.table_id, entry.location, owner, statistics(state), former)


def leaf_limit(state: TableState) -> int | None:
    """How many rows a leaf of the table may hold before it is split; None when nothing says so."""
    declared: Any = state.properties.declared.get(MAX_ROWS_PER_LEAF)
    return None if declared is None else int(declared)


def statistics(state: TableState) -> TableStatistics:
    """Sizes of the table's newest version."""
    return TableStatistics(
        rows=state.files.rows,
        bytes=state.files.bytes,
        files=state.files.count,
        leaves=len(state.leaves()),
        lance_version=state.lance_version,
        state_version=state.version,
        generation=state.properties.generation,
    )
