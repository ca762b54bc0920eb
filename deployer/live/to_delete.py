"""Live tables that cannot be read, for commands that delete them."""

from __future__ import annotations

from dataclasses import replace

from deployer.errors import Corrupt
from deployer.live.model import LiveLake, LiveTable, TableStatistics
from deployer.live.reader import live_table, savepoint_names, statistics
from deployer.specs.model import TableSpec
from deployer.state.model.declared_properties import OWNER
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.reader import StateReader


def as_far_as_known(store: StateReader, live: LiveLake) -> LiveLake:
    """Returns the lake with its unreadable tables among `tables`, for callers that delete them: by their logs,
    otherwise by their entries. An unknown property counts as protected, and as one of a table of the instance's
    owner."""
    entries = store.instance().tables
    found = {address: entries[each.table_id] for address, each in live.unreadable.items() if each.table_id in entries}
    states, _ = store.each_table(tuple(entry.table_id for entry in found.values()))
    known = {address: _known(entry, states.get(entry.table_id), live.owner) for address, entry in found.items()}
    return replace(live, tables={**live.tables, **known})


def _known(entry: TableEntry, state: TableState | None, owner: str) -> LiveTable:
    spec = TableSpec(entry.database, entry.name, ())
    if state is None:
        unknown = TableStatistics(known=False)
        return LiveTable(replace(spec, deletion_protection=True), entry.table_id, entry.location, owner, unknown)
    try:
        return live_table(entry, state)
    except Corrupt:
        protected = replace(spec, deletion_protection=state.properties.deletion_protection)
        own = str(state.properties.declared.get(OWNER, ""))
        names = savepoint_names(state)
        return LiveTable(protected, entry.table_id, entry.location, own, statistics(state), savepoints=names)
