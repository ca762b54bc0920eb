"""Writes into a lake's state what deployer never writes, as somebody would who may write it: checksums are right."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

from deployer.platform.storage.envelope import seal, unseal
from deployer.state import open_store
from deployer.state.model.entities import INSTANCE_LOG, InstanceState, TableEntry

Update = Mapping[str, Any]

LONG_AGO = 1_000  #: ms since 1970


def database_of(root: Path) -> Path:
    return root / "_state" / "state.db"


def table(root: Path, name: str) -> TableEntry:
    """The table of that name as the state stores it."""
    with closing(open_store(root)) as store:
        return next(entry for entry in store.instance().tables.values() if entry.name == name)


def instance(root: Path) -> InstanceState:
    with closing(open_store(root)) as store:
        return store.instance()


def append(root: Path, log: str, *updates: Update, aged: int | None = None, **changes: Any) -> int:
    """Appends one entry to a log: the newest one's document with these updates; gives its version.

    `aged` makes it and the entries before it at least as old as that (ms); `changes` are other members of its document.
    """
    if aged is not None:
        age(root, log, aged)
    with closing(sqlite3.connect(database_of(root))) as database, database:
        newest = database.execute(
            "SELECT version, body FROM entries WHERE log = ? ORDER BY version DESC LIMIT 1", (log,)
        ).fetchone()
        version, body = newest or (0, None)
        before = json.loads(unseal(body, "")) if body else {"log": log, "author": "ann", "at": LONG_AGO}
        document = {**before, "version": version + 1, "txn_id": f"{version + 1:032x}", "requirements": []}
        document |= {"updates": list(updates), **changes}
        put(database, log, version + 1, document["txn_id"], json.dumps(document).encode())
    return int(version) + 1


def put(database: sqlite3.Connection, log: str, version: int, txn_id: str, payload: bytes) -> None:
    """Puts an entry, whatever it says."""
    database.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (log, version, txn_id, seal(payload)))


def append_raw(root: Path, log: str, payload: bytes) -> None:
    """Appends bytes that are no entry."""
    with closing(sqlite3.connect(database_of(root))) as database, database:
        (version,) = database.execute("SELECT max(version) FROM entries WHERE log = ?", (log,)).fetchone()
        put(database, log, version + 1, "ab" * 16, payload)


def age(root: Path, log: str, at: int) -> None:
    """Makes all entries of a log at least as old as `at` (ms)."""
    with closing(sqlite3.connect(database_of(root))) as database, database:
        for version, body in database.execute("SELECT version, body FROM entries WHERE log = ?", (log,)).fetchall():
            document = json.loads(unseal(body, ""))
            document["at"] = min(document["at"], at)
            where = (seal(json.dumps(document).encode()), log, version)
            database.execute("UPDATE entries SET body = ? WHERE log = ? AND version = ?", where)


def to_instance(root: Path, *updates: Update) -> int:
    return append(root, INSTANCE_LOG, *updates)


def tree(folder: Path, besides: Sequence[str] = ("_state", "_deployer", ".pulumi", "__pycache__")) -> dict[str, bytes]:
    """All files below a folder with their content, but for those in folders of these names: by default what deployer
    records, and caches."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and not set(besides) & set(path.relative_to(folder).parts)
    }


def put_snapshot(root: Path, log: str, change: Callable[[dict[str, pa.Table]], dict[str, pa.Table]]) -> None:
    """Puts a snapshot of a log's newest state, its tables changed, in the place of the whole log."""
    import pyarrow.parquet as pq

    from deployer.platform.storage.envelope import digest
    from deployer.state.snapshots.columns import to_parts

    with closing(open_store(root)) as store:
        state = store.instance() if log == INSTANCE_LOG else store.table(log)
    folder = f"{log}/{state.version:020}-{'0a' * 4}"
    parts: dict[str, dict[str, Any]] = {}
    for name, table in change(dict(to_parts(state))).items():
        file = root / "_state" / "snapshots" / folder / f"{name}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, file)
        data = file.read_bytes()
        parts[name] = {"rows": table.num_rows, "bytes": len(data), "digest": digest(data).hex()}
    manifest = {"format": 3, "log": log, "version": state.version, "at": state.at, "location": folder, "parts": parts}
    with closing(sqlite3.connect(database_of(root))) as database, database:
        body = seal(json.dumps(manifest).encode())
        database.execute("INSERT INTO snapshots VALUES (?, ?, ?, ?)", (log, state.version, state.at, body))
        database.execute("DELETE FROM entries WHERE log = ?", (log,))
        database.execute("INSERT OR REPLACE INTO floors VALUES (?, ?)", (log, state.version))
