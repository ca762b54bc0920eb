"""Folds updates of the instance into its state (see `reducer`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

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
from deployer.state.model.entities import InstanceState, State, TableEntry, TableStatus
from deployer.state.model.persistent_map import layered
from deployer.state.model.table_locations import fault_between, fault_of_entry, fault_of_move, is_shared

FEW = 8  #: tables whose places are compared with those of all others, one by one

#: What a table's status may become. One that holds data is never being created again: that would remove it.
_STATUSES: Mapping[TableStatus, frozenset[TableStatus]] = {
    "creating": frozenset({"active", "deleting"}),
    "active": frozenset({"active", "deleting"}),
    "deleting": frozenset({"deleting"}),
}


def apply_to_instance(state: InstanceState, update: InstanceUpdate) -> InstanceState:
    tables = layered(state.tables)
    match update:
        case SetInstanceProperties(changes):
            merged = {**state.properties, **changes}
            return replace(state, properties={name: value for name, value in merged.items() if value is not None})
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
        case _:
            assert_never(update)


def _entry(state: InstanceState, table_id: str) -> TableEntry:
    entry = state.tables.get(table_id)
    if entry is None:
        raise Inapplicable(f"table {table_id} does not exist")
    return entry


def _require_free(state: InstanceState, full_name: str) -> None:
    if taken := state.by_name(full_name):
        raise Inapplicable(f"the name {full_name} belongs to table {taken.table_id}")


def clash_since(before: State, after: State) -> str | None:
    """Returns the fault of tables of the instance that share data since `before`, when none did."""
    if not isinstance(after, InstanceState) or not isinstance(before, InstanceState) or before.tables is after.tables:
        return None
    known, entries = dict(before.tables.items()), after.tables.items()
    moved = [
        entry
        for table_id, entry in entries
        if (was := known.get(table_id)) is not entry and (was is None or was.location != entry.location)
    ]
    # To sort all places for each new table of an `up` takes a time that grows with the square of their number.
    if len(moved) <= FEW and not any(is_shared(entry, after.tables.values()) for entry in moved):
        return None
    return fault_between(after.tables.values())
