"""Live names, from the cache and the log's new entries where possible, otherwise from the state."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from deployer.cli.completion.kept import keep, recall
from deployer.state.known_names import At, KnownTable, KnownTables, NamesLog


def table_names(root: str) -> dict[str, str]:
    """Returns the ids of the active tables by their full names. Raises DeployerError where the state cannot be read."""
    if "://" in root:
        return _read_tables(root).active
    key = f"tables\n{root}"
    log, kept = NamesLog(Path(root, "_state")), recall(key)
    before = None
    if kept is not None:
        before = KnownTables(
            At(*kept["at"]), {table: (name, status) for table, (name, status) in kept["tables"].items()}
        )
    known = log.tables(before) or _read_tables(root, log)
    if known != before and known.at.version:
        keep(key, {"at": [known.at.version, known.at.txn_id], "tables": known.tables})
    return known.active


def table_parts(root: str, name: str) -> KnownTable | None:
    """Returns the columns and services of a table; the name may lack the database. Returns None for an unknown table.
    Raises as `table_names` does."""
    tables = table_names(root)
    named = [table_id for full, table_id in tables.items() if name in (full, full.partition(".")[2])]
    table_id = tables.get(name) or (named[0] if len(named) == 1 else None)
    if table_id is None:
        return None
    if "://" in root:
        return _read_table(root, table_id)
    key = f"table\n{root}\n{table_id}"
    log, kept = NamesLog(Path(root, "_state")), recall(key)
    before = None if kept is None else KnownTable(At(*kept["at"]), tuple(kept["columns"]), tuple(kept["services"]))
    known = log.table(table_id, before) or _read_table(root, table_id, log)
    if known != before and known.at.version:
        keep(key, {"at": [known.at.version, known.at.txn_id], "columns": known.columns, "services": known.services})
    return known


_NOWHERE = At(0, "")  #: for names that cannot be found again by a log entry


def _read_tables(root: str, log: NamesLog | None = None) -> KnownTables:
    from deployer.state import open_reader
    from deployer.state.model.entities import INSTANCE_LOG

    with closing(open_reader(root)) as store:
        instance = store.instance()
    tables: Mapping[str, tuple[str, str]] = {
        table_id: (entry.full_name, entry.status) for table_id, entry in instance.tables.items()
    }
    return KnownTables((log and log.end(INSTANCE_LOG, instance.version)) or _NOWHERE, tables)


def _read_table(root: str, table_id: str, log: NamesLog | None = None) -> KnownTable:
    from deployer.specs.types.arrow import stored_schema
    from deployer.specs.types.view import HIDDEN
    from deployer.state import open_reader

    with closing(open_reader(root)) as store:
        state = store.table(table_id)
    columns = tuple(name for name in stored_schema(state.schema, table_id).names if not name.startswith(HIDDEN))
    at = (log and log.end(table_id, state.version)) or _NOWHERE
    return KnownTable(at, columns, tuple(sorted(state.services)))
