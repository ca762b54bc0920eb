"""Changes a table's name and its online flag, only in the state store; no data is moved."""

from __future__ import annotations

from deployer.state.log.updates import RenameTable, SetTableProperties
from deployer.state.model.entities import INSTANCE_LOG, TableEntry
from deployer.state.store import StateStore
from deployer.state.transactions.tables import to_rename


def rename_table(store: StateStore, entry: TableEntry, database: str, name: str) -> bool:
    """Renames the table; returns False when it has the name already. Readers by its id or place are not affected.

    Raises Conflict when the name belongs to another table, or when the table is removed meanwhile.
    """
    if (entry.database, entry.name) == (database, name):
        return False
    store.commit(
        INSTANCE_LOG,
        [RenameTable(entry.table_id, database, name)],
        to_rename(entry.table_id, database, name),
    )
    return True


def set_online(store: StateStore, table_id: str, online: bool) -> bool:
    """Puts a table online or takes it offline; returns False when nothing changed."""
    if store.table(table_id).properties.online == online:
        return False
    store.commit(table_id, [SetTableProperties({"online": online})])
    return True
