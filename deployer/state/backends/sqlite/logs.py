"""The statements that read the logs of a state store in a SQLite file, for readers and writers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from deployer.errors import Corrupt, NotFound
from deployer.platform.files.private import refuse_link
from deployer.platform.storage.envelope import RECOVERY, refuse_newer
from deployer.state.backends.protocol import Record, SnapshotRecord, Tail
from deployer.state.model.lost_store import RECOVERY as LOST
from deployer.state.model.lost_store import missing_beside

# One statement reads one moment, so entries, floors and snapshots are consistent whatever is committed meanwhile.
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

Row = tuple[Any, ...]


class SqliteRows(Protocol):
    """An open SQLite file, for writing or only for reading."""

    path: Path

    def rows(self, statement: str, parameters: Sequence[object] = ()) -> Sequence[Row]:
        """Returns all rows of a statement that only reads."""
        ...

    def close(self) -> None: ...


class SqliteLogs:
    """The implementation of `protocol.LogReader` on SQLite."""

    def __init__(self, file: SqliteRows) -> None:
        self._file, self._path, self._rows = file, file.path, file.rows

    def check(self) -> None:
        """Raises NotFound for a file that is not a state store yet, and Refused for a newer format."""
        found = self.format()
        if found == 0:
            raise missing_store(self._path)
        refuse_newer(found, self._path)

    def format(self) -> int:
        """Returns the format number that is stored in the file; 0 for a file without a state store."""
        ((found,),) = self._rows("PRAGMA user_version")
        return int(found)

    def tails(self, after: Mapping[str, int]) -> Mapping[str, Tail]:
        tails: dict[str, Tail] = {}
        records: dict[str, list[Record]] = {log: [] for log in after}
        wanted = json.dumps(list(after.items()))
        for log, floor, jumped, at_version, at, snapshot, version, txn_id, body in self._rows(_TAILS, (wanted,)):
            if log not in tails:
                pointer = None if at_version is None else self._pointer(log, at_version, at, snapshot)
                tails[log] = Tail(self._number(floor, log), pointer, bool(jumped), (), at_version or 0)
            if version is not None:
                records[log].append(self._record(log, version, txn_id, body))
        # of a thousand logs that are read at once, most have no new records
        for log, new in records.items():
            if new:
                tails[log] = replace(tails[log], records=tuple(new))
        return tails

    def records(self, log: str, after: int, limit: int | None = None) -> Sequence[Record]:
        rows = self._rows(
            "SELECT version, txn_id, body FROM entries WHERE log = ? AND version > ? ORDER BY version LIMIT ?",
            (log, after, -1 if limit is None else limit),
        )
        return [self._record(log, *row) for row in rows]

    def find(self, log: str, txn_id: str) -> int | None:
        ((version,),) = self._rows("SELECT max(version) FROM entries WHERE txn_id = ? AND log = ?", (txn_id, log))
        return None if version is None else self._number(version, log)

    def snapshots(self, log: str) -> Sequence[SnapshotRecord]:
        rows = self._rows("SELECT version, at, body FROM snapshots WHERE log = ? ORDER BY version", (log,))
        return [self._pointer(log, *row) for row in rows]

    def logs(self) -> Sequence[str]:
        rows = self._rows("SELECT log FROM entries UNION SELECT log FROM snapshots ORDER BY log")
        return [log for (log,) in rows if isinstance(log, str)]

    def close(self) -> None:
        self._file.close()

    # The tables that deployer creates are STRICT. Tables of a file from another source may contain values of any type.

    def _record(self, log: str, version: object, txn_id: object, body: object) -> Record:
        if not isinstance(txn_id, str) or not isinstance(body, bytes):
            raise Corrupt("it is not an entry", where=f"log {log} in {self._path}", remedy=RECOVERY)
        return Record(log, self._number(version, log), txn_id, body)

    def _pointer(self, log: str, version: object, at: object, body: object) -> SnapshotRecord:
        if not isinstance(body, bytes):
            raise Corrupt("it is not a snapshot", where=f"log {log} in {self._path}", remedy=RECOVERY)
        return SnapshotRecord(log, self._number(version, log), self._number(at, log), body)

    def _number(self, value: object, log: str) -> int:
        if not isinstance(value, int):
            raise Corrupt(f"{value!r} is not a number", where=f"log {log} in {self._path}", remedy=RECOVERY)
        return value


def check_files(path: Path) -> None:
    """Raises NotFound if there is no state store at `path`, and Refused if one of its files or its folder is a link."""
    refuse_links(path)
    if not path.is_file():
        raise missing_store(path)


def refuse_links(path: Path) -> None:
    """Raises Refused if the file, its folder, or a file that SQLite keeps beside it is a link, which SQLite would
    follow."""
    for each in (path.parent, path, *(path.with_name(f"{path.name}-{ending}") for ending in ("wal", "shm", "journal"))):
        refuse_link(each)


def missing_store(path: Path) -> NotFound:
    """Returns the error for a missing state store at `path`, which is ROOT/_state/state.db. The error names the
    datasets that still exist."""
    if left := missing_beside(path.parent.parent):
        return NotFound(left, where=path, remedy=LOST)
    return NotFound("there is no state store", where=path, remedy="create the instance first: deployer up")
