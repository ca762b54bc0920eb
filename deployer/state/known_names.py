"""A fast way to find the names of tables, columns and services, from known names at a version of a log.

Shell completion needs names at each key press, and opening a state is too slow for that. This module reads only the
entries after the known version. The caller reads the state itself if the log no longer has the known version, or if an
entry may change names in a way that only the reducer can evaluate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployer.platform.storage.envelope import unseal
from deployer.state.backends.protocol import Record
from deployer.state.backends.sqlite.reading import open_to_read

MOST = 2_000  #: entries that are read at most; reading the state is faster than reading more entries
_INSTANCE = "instance"
#: The updates of the instance that do not change a name of a table.
_NOT_NAMES = frozenset(("set-instance-properties", "set-table-dataset", "catalog-savepoint-taken", "catalog-restored"))
#: The updates of a table that change neither its columns nor its services.
_NOT_COLUMNS = frozenset(
    (
        *("set-lance-version", "commit-started", "files-added", "files-replaced", "rows-changed", "files-removed"),
        *("commit-abandoned", "partition-split", "rewrite-started", "dataset-removed", "pause-service"),
        *("resume-service", "run-queued", "run-started", "lease-renewed", "fragments-claimed", "cancel-wished"),
        *("run-ended", "savepoint-taken", "savepoint-removed", "savepoints-expired"),
    )
)


@dataclass(frozen=True, slots=True)
class At:
    """The identity of an entry in a log: its version and the id of its transaction."""

    version: int
    txn_id: str


@dataclass(frozen=True, slots=True)
class KnownTables:
    """The tables at an entry of the instance's log. `tables` maps a table's id to its full name and status."""

    at: At
    tables: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def active(self) -> dict[str, str]:
        """The ids of active tables by their full names."""
        return {name: table_id for table_id, (name, status) in self.tables.items() if status == "active"}


@dataclass(frozen=True, slots=True)
class KnownTable:
    """The columns and services of a table at an entry of its log."""

    at: At
    columns: tuple[str, ...]
    services: tuple[str, ...]


class NamesLog:
    """Read-only access to the logs of the state store in a folder. Raises NotFound if the folder has no store."""

    def __init__(self, folder: Path) -> None:
        self._logs = open_to_read(folder / "state.db")

    def end(self, log: str, version: int) -> At | None:
        """Returns the identity of the entry at a version, which names that are read from the state refer to. Returns
        None if the log does not have the entry."""
        found = self._logs.records(log, version - 1, 1)
        return At(version, found[0].txn_id) if found and found[0].version == version else None

    def tables(self, known: KnownTables | None) -> KnownTables | None:
        """Returns the newest names of tables; None if the caller has to read them from the state."""
        since = self._since(_INSTANCE, known.at if known else None)
        if since is None:
            return None
        tables = dict(known.tables) if known else {}
        for update in _updates(since):
            if not _applied(tables, update):
                return None
        at = At(since[-1].version, since[-1].txn_id) if since else known.at if known else None
        return None if at is None else KnownTables(at, tables)

    def table(self, table_id: str, known: KnownTable | None) -> KnownTable | None:
        """Returns the newest columns and services of a table; None if the caller has to read them from the state."""
        if known is None:
            return None
        since = self._since(table_id, known.at)
        if since is None or any(update.get("type") not in _NOT_COLUMNS for update in _updates(since)):
            return None
        return KnownTable(At(since[-1].version, since[-1].txn_id), known.columns, known.services) if since else known

    def _since(self, log: str, at: At | None) -> Sequence[Record] | None:
        """Returns the entries after `at`, or all entries if `at` is None.

        Returns None if the log lacks some of them, has another transaction at `at`, or has more than `MOST` entries.
        """
        first = at.version if at else 1
        found = self._logs.records(log, first - 1, MOST + 1)
        if not found or len(found) > MOST or [each.version for each in found] != [*range(first, first + len(found))]:
            return None
        if at is None:
            return found
        return found[1:] if found[0].txn_id == at.txn_id else None


def _updates(records: Sequence[Record]) -> list[Mapping[str, Any]]:
    found = []
    for record in records:
        document = json.loads(unseal(record.body, f"entry {record.version} of log {record.log}"))
        found += document["updates"]
    return found


def _applied(tables: dict[str, tuple[str, str]], update: Mapping[str, Any]) -> bool:
    """Applies an update to `tables`. Returns False for an update that this module does not know."""
    match update:
        case {"type": "register-table", "entry": {"table_id": i, "database": database, "name": name, "status": status}}:
            tables[i] = (f"{database}.{name}", status)
        case {"type": "set-table-status", "table_id": i, "status": status} if i in tables:
            tables[i] = (tables[i][0], status)
        case {"type": "rename-table", "table_id": i, "database": database, "name": name} if i in tables:
            tables[i] = (f"{database}.{name}", tables[i][1])
        case {"type": "remove-table", "table_id": i} if i in tables:
            del tables[i]
        case {"type": kind} if kind in _NOT_NAMES:
            pass
        case _:
            return False
    return True
