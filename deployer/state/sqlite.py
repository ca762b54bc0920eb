"""The backend of an instance on local disk: the tables of one SQLite file (see `sqlite_file`)."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path

from deployer.errors import NotFound, Refused
from deployer.files.private import create_file, is_shared, make_private_folder, tighten
from deployer.state.backend import REMOVED, Record, SnapshotRecord, Tail
from deployer.state.envelope import FORMAT, refuse_newer
from deployer.state.line import Line, Turn
from deployer.state.sqlite_file import NotWritten, SqliteFile
from deployer.state.turns import Turns

OLDEST_SQLITE = (3, 37, 0)  #: the first with STRICT tables

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
# One statement is one moment: entries, floors and snapshots fit each other whatever is committed meanwhile.
_TAILS = """
WITH wanted AS (SELECT json_extract(value, '$[0]') AS log, json_extract(value, '$[1]') AS after FROM json_each(?)),
heads AS (
    SELECT log, after, coalesce((SELECT floor FROM floors f WHERE f.log = w.log), 0) AS floor,
           (SELECT max(version) FROM snapshots s WHERE s.log = w.log) AS snapshot
    FROM wanted w
),
starts AS (
    SELECT *, CASE WHEN after = 0 OR after < floor THEN coalesce(snapshot, 0) ELSE after END AS start FROM heads
)
SELECT h.log, h.floor, h.start <> h.after, s.version, s.at, s.body, e.version, e.txn_id, e.body
FROM starts h
LEFT JOIN snapshots s ON s.log = h.log AND s.version = h.snapshot
LEFT JOIN entries e ON e.log = h.log AND e.version > h.start
ORDER BY h.log, e.version
"""

_ANYTHING = """
SELECT 1 FROM entries WHERE log = ? UNION SELECT 1 FROM snapshots WHERE log = ? LIMIT 1
"""


class SqliteBackend:
    """Fulfils `backend.Backend`. Safe for threads and for processes, forked or not. The file is on a local disk."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise Refused(
                f"this Python has SQLite {sqlite3.sqlite_version}", remedy="use a Python with SQLite 3.37 or later"
            )
        self._path = path
        self._turns = Turns(path.with_name(f"{path.name}-turn"))
        self._lines: dict[str, Line] = {}
        self._file = SqliteFile(path)
        if create:
            make_private_folder(path.parent, path.parent)
            with suppress(FileExistsError):  # SQLite gives its other files the mode of this one
                os.close(create_file(path, shared=is_shared(path.parent)))
        elif not path.is_file():
            raise _missing(path)
        else:
            tighten(path.parent)
            tighten(path)
        with self._file.reading() as connection:
            found = _format_of(connection)
        if found == 0 and not create:
            raise _missing(path)
        refuse_newer(found, path)
        if found == 0:
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

    def turn_at(self, log: str, would_do: Callable[[], bytes] | None = None) -> AbstractContextManager[Turn]:
        line = self._lines.get(log)
        if line is None:
            line = self._lines.setdefault(log, Line(*self._line_files(log)))
        return line.turn(would_do)

    def _line_files(self, log: str) -> tuple[Path, Path]:
        name = self._path.name
        return self._path.with_name(f"{name}-turn-{log}"), self._path.with_name(f"{name}-line-{log}")

    def tails(self, after: Mapping[str, int]) -> Mapping[str, Tail]:
        tails: dict[str, Tail] = {}
        records: dict[str, list[Record]] = {log: [] for log in after}
        with self._file.reading() as connection:
            for log, floor, jumped, at_version, at, snapshot, version, txn_id, body in connection.execute(
                _TAILS, (json.dumps(list(after.items())),)
            ):
                if log not in tails:
                    pointer = None if at_version is None else SnapshotRecord(log, at_version, at, snapshot)
                    tails[log] = Tail(floor, pointer, bool(jumped), (), at_version or 0)
                if version is not None:
                    records[log].append(Record(log, version, txn_id, body))
        # most of a thousand logs that are asked for at once have nothing new
        for log, new in records.items():
            if new:
                tails[log] = replace(tails[log], records=tuple(new))
        return tails

    def records(self, log: str, after: int, limit: int | None = None) -> Sequence[Record]:
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT version, txn_id, body FROM entries WHERE log = ? AND version > ? ORDER BY version LIMIT ?",
                (log, after, -1 if limit is None else limit),
            ).fetchall()
        return [Record(log, *row) for row in rows]

    def find(self, log: str, txn_id: str) -> int | None:
        with self._file.reading() as connection:
            row = connection.execute(
                "SELECT max(version) FROM entries WHERE txn_id = ? AND log = ?", (txn_id, log)
            ).fetchone()
        version: int | None = row[0]
        return version

    def snapshots(self, log: str) -> Sequence[SnapshotRecord]:
        with self._file.reading() as connection:
            rows = connection.execute(
                "SELECT version, at, body FROM snapshots WHERE log = ? ORDER BY version", (log,)
            ).fetchall()
        return [SnapshotRecord(log, *row) for row in rows]

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

    def truncate(self, log: str, floor: int) -> Sequence[SnapshotRecord]:
        if floor == REMOVED:
            lock, offers = self._line_files(log)
            lock.unlink(missing_ok=True)
            shutil.rmtree(offers, ignore_errors=True)
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

    def logs(self) -> Sequence[str]:
        with self._file.reading() as connection:
            rows = connection.execute("SELECT log FROM entries UNION SELECT log FROM snapshots ORDER BY log").fetchall()
        return [log for (log,) in rows]

    def close(self) -> None:
        self._file.close()


def _floor(connection: sqlite3.Connection, log: str) -> int:
    row = connection.execute("SELECT floor FROM floors WHERE log = ?", (log,)).fetchone()
    return row[0] if row else 0


def _format_of(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def _missing(path: Path) -> NotFound:
    return NotFound("there is no state store", where=path, remedy="create the instance first: deployer up")
