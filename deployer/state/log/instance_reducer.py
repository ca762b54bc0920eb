"""Folds updates of the instance into the instance's state (see `reducer`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from deployer.state.log.catalog_updates import CatalogRestored, CatalogSavepointTaken
from deployer.state.log.inapplicable import Inapplicable
from deployer.state.log.updates import (
    InstanceUpdate,
    RegisterTable,
    RemoveTable,
    RenameTable,
    SetInstanceProperties,
    SetTableDataset,
    SetTableStatus,
)
from deployer.state.model.catalog_savepoints import (
    CatalogSavepoint,
    catalog_records,
    catalog_savepoints,
    restored_records,
)
from deployer.state.model.declared_properties import CATALOG_SAVEPOINT
from deployer.state.model.entities import JSON, InstanceState, State, TableEntry, TableStatus
from deployer.state.model.names import is_savepoint_name
from deployer.state.model.persistent_map import layered
from deployer.state.model.table_locations import fault_between, fault_of_entry, fault_of_move, is_shared

FEW = 8  #: up to this many moved tables, the location of each is compared with those of all other tables

#: The statuses that may follow each status. An active table never becomes "creating" again: its data would be removed.
_STATUSES: Mapping[TableStatus, frozenset[TableStatus]] = {
    "creating": frozenset({"active", "deleting"}),
    "active": frozenset({"active", "deleting"}),
    "deleting": frozenset({"deleting"}),
}


def apply_to_instance(
    state: InstanceState, update: InstanceUpdate, version: int, at: int, author: str
) -> InstanceState:
    """Returns the state after one update. `version`, `at` (ms since 1970) and `author` are those of its entry.

    Raises Inapplicable when the update does not fit the state.
    """
    tables = layered(state.tables)
    match update:
        case SetInstanceProperties(changes):
            return _with_properties(state, changes)
        case RegisterTable(entry):
            if entry.table_id in tables:
                raise Inapplicable(f"table {entry.table_id} exists already")
            if fault := fault_of_entry(entry):
                raise Inapplicable(fault)
            _require_free(state, entry.full_name)
            return replace(state, tables=tables.changed({entry.table_id: entry}))
        case SetTableStatus(table_id, status):
            entry = _entry(state, table_id)
            if status not in _STATUSES[entry.status]:
                raise Inapplicable(f"table {entry.full_name} is {entry.status} and cannot become {status}")
            return replace(state, tables=tables.changed({table_id: replace(entry, status=status)}))
        case RenameTable(table_id, database, name):
            renamed = replace(_entry(state, table_id), database=database, name=name)
            _require_free(state, renamed.full_name)
            return replace(state, tables=tables.changed({table_id: renamed}))
        case SetTableDataset(table_id, location, dataset):
            entry = _entry(state, table_id)
            if fault := fault_of_move(entry, location):
                raise Inapplicable(fault)
            moved = replace(entry, location=location, dataset=dataset)
            if fault := fault_of_entry(moved):
                raise Inapplicable(fault)
            return replace(state, tables=tables.changed({table_id: moved}))
        case RemoveTable(table_id):
            _entry(state, table_id)
            return replace(state, tables=tables.changed({}, [table_id]))
        case CatalogSavepointTaken(name, expires_at, note):
            if name in catalog_savepoints(state):
                raise Inapplicable(f"the catalog has a savepoint {name} already")
            if not is_savepoint_name(name):
                raise Inapplicable(f"a savepoint cannot be called {name!r}")
            taken = CatalogSavepoint(name, at, expires_at, author, note, catalog_records(state))
            return _with_properties(state, {CATALOG_SAVEPOINT + name: taken.as_json()})
        case CatalogRestored(name):
            saved = catalog_savepoints(state).get(name)
            if saved is None:
                raise Inapplicable(f"the catalog has no savepoint {name}")
            gone: dict[str, JSON] = dict.fromkeys(catalog_records(state))
            return _with_properties(state, gone | restored_records(state, saved.records, version))
        case _:
            assert_never(update)


def _with_properties(state: InstanceState, changes: Mapping[str, JSON]) -> InstanceState:
    merged = {**state.properties, **changes}
    return replace(state, properties={name: value for name, value in merged.items() if value is not None})


def _entry(state: InstanceState, table_id: str) -> TableEntry:
    entry = state.tables.get(table_id)
    if entry is None:
        raise Inapplicable(f"table {table_id} does not exist")
    return entry


def _require_free(state: InstanceState, full_name: str) -> None:
    if taken := state.by_name(full_name):
        raise Inapplicable(f"the name {full_name} belongs to table {taken.table_id}")


def clash_since(before: State, after: State) -> str | None:
    """Returns a fault if tables of the instance share data in the state `after` that did not share it in `before`.

    No tables may share data in `before`. Returns None for states of a table.
    """
    if not isinstance(after, InstanceState) or not isinstance(before, InstanceState) or before.tables is after.tables:
        return None
    known, entries = dict(before.tables.items()), after.tables.items()
    moved = [
        entry
        for table_id, entry in entries
        if (was := known.get(table_id)) is not entry and (was is None or was.location != entry.location)
    ]
    # Sorting all locations again for each new table of an `up` would take time quadratic in the number of tables.
    if len(moved) <= FEW and not any(is_shared(entry, after.tables.values()) for entry in moved):
        return None
    return fault_between(after.tables.values())
