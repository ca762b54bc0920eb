"""The restore that a command line names: the tables, and what it would undo of each table and of the catalog."""

from __future__ import annotations

from collections.abc import Sequence

from deployer.errors import NotFound
from deployer.services.restore.catalog import preview_catalog
from deployer.services.restore.planning import RestorePlan, Undoing, preview_restore, preview_restore_at
from deployer.state.store import StateStore
from deployer.tables.admin.ownership import require_owner
from deployer.tables.open_table import find_entries


def plan_restore(
    store: StateStore, root: str, owner: str, name: str, at: str | None, tables: Sequence[str] | None
) -> RestorePlan:
    """Returns what a restore would undo. Without `at`, it restores `tables`, or all tables that have it, to the
    savepoint `name`. With `at`, it restores the table `name` to a version or a time.

    Raises NotFound where a table or its savepoint does not exist, Refused for a table of another stack, and as
    `preview_restore` and `version_point` do.
    """
    if at is not None:
        [entry] = find_entries(store.instance().tables.values(), [name])
        require_owner(entry, store.table(entry.table_id), owner)
        return RestorePlan([preview_restore_at(store, root, entry, at)])
    catalog = preview_catalog(store, name) if not tables else None
    return RestorePlan(_to_savepoint(store, root, owner, name, tables, catalog=catalog is not None), catalog)


def _to_savepoint(
    store: StateStore, root: str, owner: str, name: str, tables: Sequence[str] | None, *, catalog: bool
) -> list[Undoing]:
    entries = find_entries(store.instance().tables.values(), tables)
    try:
        planned = preview_restore(store, root, entries, name, catalog=catalog)
    except NotFound as failure:
        if name not in {text for each in entries for text in (each.name, each.full_name)}:
            raise
        raise NotFound(failure.what, remedy=f"a table needs --at: `deployer restore {name} --at VERSION`") from None
    with_savepoint = {each.table_id for each in planned}
    for entry in entries:
        if tables and entry.table_id not in with_savepoint:
            raise NotFound(f"there is no savepoint {name} of it", where=f"table/{entry.full_name}")
        if entry.table_id in with_savepoint:
            require_owner(entry, store.table(entry.table_id), owner)
    return planned
