"""Makes and removes savepoints of what Lance has now, with a Lance tag for each.

`deployer.services.savepoints.savepoints` changes the state alone. Here tables are rolled forward first, so that what
other programs committed is in the savepoint, and tags are kept in step (`deployer.tables.inspect.savepoint_tags`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from deployer.errors import Conflict, InvalidInput, NotFound
from deployer.services.savepoints.savepoints import remove_savepoint, take_savepoint
from deployer.state.model.entities import TableEntry
from deployer.state.model.names import is_savepoint_name
from deployer.state.model.services import Savepoint
from deployer.state.store import StateStore
from deployer.system.failpoints import reached
from deployer.tables.inspect.savepoint_tags import settle_tags, tag_now
from deployer.tables.open_table import OpenTable, open_entry


def make_savepoint(
    store: StateStore,
    root: str,
    entries: Iterable[TableEntry],
    name: str,
    *,
    expires_at: int | None = None,
    note: str = "",
    author: str | None = None,
) -> Mapping[str, Savepoint]:
    """A savepoint of each table, all of one moment, by table id; of all or of none.

    A process that dies leaves all of the savepoint or tags that the next savepoint or clean-up removes.
    Raises InvalidInput for such a name or no table, Conflict when a table has a savepoint of that name.
    """
    tables = [open_entry(store, root, entry) for entry in entries]
    if not tables:
        raise InvalidInput("there is no table to make a savepoint of", remedy="declare one and run `deployer up`")
    having = sorted(table.entry.full_name for table in tables if name in table.state.savepoints)
    if having:
        raise Conflict(
            f"there is a savepoint {name} already", where=", ".join(having), remedy="give another name, or delete it"
        )
    if is_savepoint_name(name):
        for table in tables:
            tag_now(table, name)
            reached("services.savepoint.tagged")
    try:
        taken = take_savepoint(
            store, [table.entry.table_id for table in tables], name, expires_at=expires_at, note=note, author=author
        )
    finally:
        reached("services.savepoint.recorded")
        _settle(tables)
    return taken


def tables_with(store: StateStore, root: str, entries: Iterable[TableEntry], name: str) -> list[OpenTable]:
    """The tables that have a savepoint of that name. Raises NotFound when none has it."""
    tables = [open_entry(store, root, entry) for entry in entries]
    having = [table for table in tables if name in table.state.savepoints]
    if not having:
        known = sorted({each for table in tables for each in table.state.savepoints})
        raise NotFound(
            f"there is no savepoint {name}", remedy=f"there are {', '.join(known)}" if known else "there is none at all"
        )
    return having


def delete_savepoint(store: StateStore, root: str, entries: Iterable[TableEntry], name: str) -> Sequence[str]:
    """Removes the savepoint of that name from those of the tables that have it; gives their names.

    Raises NotFound when none has it.
    """
    having = tables_with(store, root, entries, name)
    remove_savepoint(store, [table.entry.table_id for table in having], name)
    reached("services.savepoint.removed")
    _settle(having)
    return [table.entry.full_name for table in having]


def _settle(tables: Sequence[OpenTable]) -> None:
    for table in tables:
        settle_tags(table)
