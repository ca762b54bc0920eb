"""Savepoints: names for the content of tables of an instance, and of its catalog, at one time.

`take_savepoint` and `remove_savepoint` change only the state. `make_savepoint` and `delete_savepoint` roll tables
forward first, so that the savepoint has commits of other programs, and they keep a Lance tag for each savepoint.

The content of a savepoint stays readable: the version of the dataset (`tables/collect/garbage.py`,
`tables/rewrite/cleanup.py`) and the table's state (`state/snapshots/retention.py`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import count

from deployer.errors import Conflict, InvalidInput, NotFound
from deployer.platform.system.clock import Clock
from deployer.platform.system.failpoints import reached
from deployer.platform.text.formatting import timestamp
from deployer.platform.text.visible import shortened
from deployer.state.commits import Part
from deployer.state.log.catalog_updates import CatalogSavepointTaken
from deployer.state.log.service_updates import SavepointRemoved, SavepointsExpired, SavepointTaken
from deployer.state.log.updates import SetInstanceProperties
from deployer.state.model.catalog_savepoints import catalog_savepoints
from deployer.state.model.declared_properties import CATALOG_SAVEPOINT
from deployer.state.model.entities import INSTANCE_LOG, TableEntry, TableState
from deployer.state.model.names import is_savepoint_name
from deployer.state.model.services import Savepoint
from deployer.state.store import StateStore
from deployer.state.transactions.services import to_remove_savepoint, to_take_savepoint
from deployer.tables.inspect.savepoint_tags import settle_tags, tag_now
from deployer.tables.open_table import OpenTable, open_entry


def name_by_time(prefix: str, at: int, taken: Container[str]) -> str:
    """Returns a name with the time `at` (ms) that is not in `taken`, such as `auto-20300101T000000Z`, or the same with
    `-2` at its end."""
    stem = prefix + timestamp(at).replace("-", "").replace(":", "")
    names = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def take_savepoint(
    store: StateStore,
    table_ids: Iterable[str],
    name: str,
    *,
    expires_at: int | None = None,
    note: str = "",
    author: str | None = None,
    catalog: bool = False,
) -> Mapping[str, Savepoint]:
    """Takes a savepoint of all tables in one transaction, or of none; returns the savepoints by table id.

    With `catalog`, the records of the catalog are part of it. Each savepoint has the newest version of the dataset that
    the state has recorded, whatever is committed meanwhile. To include versions that only Lance has, open the tables
    first, which rolls them forward. DynamoDB allows at most 49 tables; the catalog counts as one.

    Raises InvalidInput for an invalid name, and Conflict where a table or the catalog has a savepoint with this name.
    """
    if not is_savepoint_name(name):
        raise InvalidInput(
            f"a savepoint cannot be called {name!r}",
            remedy="use letters, digits, '.', '_' and '-', at most 100, the first a letter or digit; no '..', and not "
            "'.' or '.lock' at the end",
        )
    update, requirements = SavepointTaken(name, expires_at, note), to_take_savepoint(name)
    parts = [Part(table_id, [update], requirements) for table_id in sorted(set(table_ids))]
    if catalog:
        parts.append(Part(INSTANCE_LOG, [CatalogSavepointTaken(name, expires_at, note)]))
    states = store.commit_all(parts, author=author)
    return {each: state.savepoints[name] for each, state in states.items() if isinstance(state, TableState)}


def remove_savepoint(
    store: StateStore, table_ids: Iterable[str], name: str, *, author: str | None = None, catalog: bool = False
) -> None:
    """Removes the savepoint with this name from all the tables, and with `catalog` from the catalog, or from none.

    Raises Conflict where a table has no such savepoint.
    """
    if not is_savepoint_name(name):
        raise Conflict(f"there is no savepoint {shortened(name)}", remedy="`deployer savepoint list` names them")
    requirements = to_remove_savepoint(name)
    parts = [Part(table_id, [SavepointRemoved(name)], requirements) for table_id in sorted(set(table_ids))]
    if catalog:
        parts.append(Part(INSTANCE_LOG, [SetInstanceProperties({CATALOG_SAVEPOINT + name: None})]))
    store.commit_all(parts, author=author)


def expire_catalog_savepoints(store: StateStore, now: int | None = None) -> list[str]:
    """Removes the catalog's savepoints that have expired at `now` (ms); returns their names."""
    at = Clock().now() if now is None else now
    found = catalog_savepoints(store.instance()).values()
    over = [each.name for each in found if each.expires_at is not None and each.expires_at <= at]
    if over:
        gone = SetInstanceProperties({CATALOG_SAVEPOINT + name: None for name in over})
        store.commit(INSTANCE_LOG, [gone])
    return over


def expire_savepoints(store: StateStore, table_id: str, now: int | None = None) -> list[Savepoint]:
    """Removes the table's savepoints that have expired at `now` (ms); returns them."""
    at = Clock().now() if now is None else now
    over = [
        each
        for each in store.table(table_id).savepoints.values()
        if each.expires_at is not None and each.expires_at <= at
    ]
    if over:
        store.commit(table_id, [SavepointsExpired(at)])
    return over


def make_savepoint(
    store: StateStore,
    root: str,
    entries: Iterable[TableEntry],
    name: str,
    *,
    expires_at: int | None = None,
    note: str = "",
    author: str | None = None,
    catalog: bool = False,
) -> Mapping[str, Savepoint]:
    """Makes a savepoint of all tables, and with `catalog` of the catalog, at one time, or of none; returns those of
    tables by table id.

    A process that dies leaves the whole savepoint, or only tags that the next savepoint or clean-up removes. Raises
    InvalidInput for an invalid name or without a table, and Conflict where a table or the catalog has a savepoint with
    this name.
    """
    tables = [open_entry(store, root, entry) for entry in entries]
    if not tables and not catalog:
        raise InvalidInput("there is no table to make a savepoint of", remedy="declare one and run `deployer up`")
    having = sorted(table.entry.full_name for table in tables if name in table.state.savepoints)
    if catalog and name in catalog_savepoints(store.instance()):
        having.append("the catalog")
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
            store,
            [table.entry.table_id for table in tables],
            name,
            expires_at=expires_at,
            note=note,
            author=author,
            catalog=catalog,
        )
    finally:
        reached("services.savepoint.recorded")
        _settle(tables)
    return taken


def tables_with(
    store: StateStore, root: str, entries: Iterable[TableEntry], name: str, *, catalog: bool = False
) -> list[OpenTable]:
    """Returns the tables that have a savepoint with this name. Raises NotFound where none has it, unless the `catalog`
    does."""
    tables = [open_entry(store, root, entry) for entry in entries]
    having = [table for table in tables if name in table.state.savepoints]
    if not having and not catalog:
        known = sorted({each for table in tables for each in table.state.savepoints})
        raise NotFound(
            f"there is no savepoint {name}",
            remedy=f"there are {', '.join(known)}" if known else "there are no savepoints",
        )
    return having


def delete_savepoint(
    store: StateStore, root: str, entries: Iterable[TableEntry], name: str, *, catalog: bool = False
) -> Sequence[str]:
    """Removes the savepoint with this name from the tables that have it, and with `catalog` from the catalog.

    Returns the names of these tables, and `the catalog`. Raises NotFound where none has the savepoint.
    """
    has_catalog = catalog and name in catalog_savepoints(store.instance())
    having = tables_with(store, root, entries, name, catalog=has_catalog)
    remove_savepoint(store, [table.entry.table_id for table in having], name, catalog=has_catalog)
    reached("services.savepoint.removed")
    _settle(having)
    return [*(table.entry.full_name for table in having), *(["the catalog"] if has_catalog else [])]


def _settle(tables: Sequence[OpenTable]) -> None:
    for table in tables:
        settle_tags(table)
