"""The backend of an instance on local disk: the tables of one SQLite file (see `file`)."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from deployer.errors import Refused
from deployer.platform.files.private import create_file, is_shared, make_private_folder, tighten
from deployer.platform.storage.envelope import FORMAT
from deployer.state.backends.fair_lock import FairLock
from deployer.state.backends.group_commit import CommitQueue, Ticket
from deployer.state.backends.protocol import REMOVED, Record, SnapshotRecord, Tail
from deployer.state.backends.sqlite.file import NotWritten, SqliteFile
from deployer.state.backends.sqlite.logs import SqliteLogs, check_files, refuse_links

OLDEST_SQLITE = (3, 37, 0)  #: the first version with STRICT tables

_APPLICATION_ID = 0x44535431  # marks the file as a state store
_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    log TEXT NOT NULL, version INTEGER NOT NULL, txn_id TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (log, version)
) STRICT;
CREATE INDEX IF NOT EXISTS entries_by_transaction ON entries (txn_id, log);
CREATE TABLE IF NOT EXISTS snapshots (
    log TEXT NOT NULL, version INTEGER NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (log, version)
) STRICT;
CREATE TABLE IF NOT EXISTS floors (log TEXT PRIMARY KEY, floor INTEGER NOT NULL) STRICT, WITHOUT ROWID;
"""
_ANYTHING = """
SELECT 1 FROM entries WHERE log = ? UNION SELECT 1 FROM snapshots WHERE log = ? LIMIT 1
"""


class SqliteBackend:
    """The implementation of `protocol.Backend` on SQLite. It is safe for threads and for processes, forked or not.

    The file must be on a local disk.
    """

    transaction_logs: int | None = None

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise Refused(
                f"this Python has SQLite {sqlite3.sqlite_version}", remedy="use a Python with SQLite 3.37 or later"
            )
        self._path = path
        self._turns = FairLock(path.with_name(f"{path.name}-turn"))
        self._lines: dict[str, CommitQueue] = {}
        self._file = SqliteFile(path)
        if create:
            refuse_links(path)
            make_private_folder(path.parent, path.parent)
            with suppress(FileExistsError):  # SQLite gives its other files the mode of this file
                os.close(create_file(path, shared=is_shared(path.parent)))
        else:
            check_files(path)
            tighten(path.parent)
            tighten(path)
        self._logs = SqliteLogs(self._file)
        if not create or self._logs.format():
            self._logs.check()
        else:
            self._create()

    def _create(self) -> None:
        with self._file.writing() as connection:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")

    def put(self, records: Sequence[Record]) -> bool:
        try:
            with self._file.visibly_writing() as connection:
                for record in records:
                    if record.version <= _floor(connection, record.log):
                        connection.rollback()
                        return False
                    connection.execute(
                        "INSERT INTO entries (log, version, txn_id, body) VALUES (?, ?, ?, ?)",
                        (record.log, record.version, record.txn_id, record.body),
                    )
        except NotWritten:
            return False
        return True

    def flush(self) -> None:
        self._file.flush()

    def turn(self) -> AbstractContextManager[bool]:
        return self._turns.taken()

    def turn_at(self, log: str, would_do: Callable[[], bytes] | None = None) -> AbstractContextManager[Ticket]:
        line = self._lines.get(log)
        if line is None:
            line = self._lines.setdefault(log, CommitQueue(*self._line_files(log)))
        return line.turn(would_do)

    def _line_files(self, log: str) -> tuple[Path, Path]:
        name = self._path.name
        return self._path.with_name(f"{name}-turn-{log}"), self._path.with_name(f"{name}-line-{log}")

    def tails(self, after: Mapping[str, int]) -> Mapping[str, Tail]:
        return self._logs.tails(after)

    def records(self, log: str, after: int, limit: int | None = None) -> Sequence[Record]:
        return self._logs.records(log, after, limit)

    def find(self, log: str, txn_id: str) -> int | None:
        return self._logs.find(log, txn_id)

    def snapshots(self, log: str) -> Sequence[SnapshotRecord]:
        return self._logs.snapshots(log)

    def logs(self) -> Sequence[str]:
        return self._logs.logs()

    def add_snapshot(self, snapshot: SnapshotRecord) -> bool:
        with self._file.writing() as connection:
            if snapshot.version <= _floor(connection, snapshot.log):
                return False
            cursor = connection.execute(
                "INSERT INTO snapshots (log, version, at, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (snapshot.log, snapshot.version, snapshot.at, snapshot.body),
            )
            return cursor.rowcount == 1

    def replace_snapshot(self, snapshot: SnapshotRecord) -> bool:
        with self._file.writing() as connection:
            cursor = connection.execute(
                "UPDATE snapshots SET at = ?, body = ? WHERE log = ? AND version = ?",
                (snapshot.at, snapshot.body, snapshot.log, snapshot.version),
            )
            return cursor.rowcount == 1

    def begin_at(self, log: str, version: int) -> bool:
        with self._file.writing() as connection:
            if _floor(connection, log) or connection.execute(_ANYTHING, (log, log)).fetchone():
                return False
            connection.execute("INSERT INTO floors (log, floor) VALUES (?, ?)", (log, version - 1))
        return True

    def wipe(self) -> None:
        self._file.wipe()

    def truncate(self, log: str, floor: int) -> Sequence[SnapshotRecord]:
        if floor == REMOVED:
            lock, requests = self._line_files(log)
            lock.unlink(missing_ok=True)
            shutil.rmtree(requests, ignore_errors=True)
        with self._file.writing() as connection:
            if floor <= _floor(connection, log):
                return []
            rows = connection.execute(
                "DELETE FROM snapshots WHERE log = ? AND version < ? RETURNING version, at, body", (log, floor)
            ).fetchall()
            connection.execute("DELETE FROM entries WHERE log = ? AND version <= ?", (log, floor))
            connection.execute(
                "INSERT INTO floors (log, floor) VALUES (?, ?) ON CONFLICT DO UPDATE SET floor = excluded.floor",
                (log, floor),
            )
        return [SnapshotRecord(log, *row) for row in sorted(rows)]

    def close(self) -> None:
        self._logs.close()


def _floor(connection: sqlite3.Connection, log: str) -> int:
    row = connection.execute("SELECT floor FROM floors WHERE log = ?", (log,)).fetchone()
    return row[0] if row else 0
