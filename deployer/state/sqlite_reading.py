"""A SQLite file in write-ahead log mode, read without a trace: no lock file, no `-wal`, no `-shm`, no change of times.

SQLite makes `-wal` and `-shm` for a reader too where it may. Three cases keep it from that:

- Nothing is in the write-ahead log: the file holds everything and is opened as immutable, which makes nothing. Whether
  somebody wrote meanwhile is looked at after each statement, which is then run again.
- The log holds something and its index is there: both are opened for reading only. Writers see such a reader, and do
  not move pages under it.
- The log holds something and the index is missing, as in a copy of a folder: a private copy is read.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deployer.errors import OutcomeUnknown
from deployer.state.sqlite_file import BUSY_TIMEOUT, Connection, abandon, failure_in_words

_ATTEMPTS = 50  #: how often a statement is run again because somebody wrote meanwhile


@dataclass(frozen=True, slots=True)
class _Look:
    """What the files look like. `log` and `index`: whether `-wal` holds anything, and whether `-shm` is there."""

    identity: tuple[int, int, int]
    log: bool
    index: bool

    @property
    def is_shared(self) -> bool:
        return self.log and self.index


class SqliteReading:
    """Safe for threads (a connection each) and for processes, forked or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()

    def rows(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a statement that changes nothing, as of one moment. Raises FileNotFoundError."""
        for _ in range(_ATTEMPTS):
            look = self._look()
            try:
                found = self._connection(look).execute(statement, parameters).fetchall()
            except sqlite3.DatabaseError as error:
                self._drop()
                if self._look() == look:
                    raise failure_in_words(error, self.path) from error
                continue
            except FileNotFoundError:  # the log, which is gone when its last writer closes it
                continue
            if look.is_shared or self._look() == look:
                return found
            self._drop()
        raise OutcomeUnknown(
            "the state store changes faster than it can be read", where=self.path, remedy="try again when fewer write"
        )

    def close(self) -> None:
        for connection in list(self._connections):
            if connection.process == os.getpid():
                connection.close()
        self._local = threading.local()

    def _look(self) -> _Look:
        about, log = self.path.stat(), 0
        with suppress(FileNotFoundError):
            log = Path(f"{self.path}-wal").stat().st_size
        return _Look((about.st_ino, about.st_mtime_ns, about.st_size), log > 0, os.path.lexists(f"{self.path}-shm"))

    def _connection(self, look: _Look) -> Connection:
        """This thread's connection, opened as the look wants it. One to a log that is shared serves while it is."""
        held: Connection | None = getattr(self._local, "connection", None)
        if held is not None and held.process == os.getpid() and self._serves(look):
            return held
        self._drop()
        if look.log and not look.index:
            connection = self._copied()
        else:
            mode = "readonly_shm=1" if look.is_shared else "immutable=1"
            connection = _opened(f"file:{quote(str(self.path))}?mode=ro&{mode}")
        self._local.connection, self._local.look = connection, look
        self._connections.add(connection)
        return connection

    def _serves(self, look: _Look) -> bool:
        before: _Look = self._local.look
        return look == before or (look.is_shared and before.is_shared and look.identity[0] == before.identity[0])

    def _drop(self) -> None:
        held: Connection | None = getattr(self._local, "connection", None)
        if held is not None and held.process == os.getpid():
            held.close()
        elif held is not None:
            abandon(held)
        self._local.connection = None

    def _copied(self) -> Connection:
        """The content of a private copy, in memory."""
        connection = _opened(":memory:")
        with tempfile.TemporaryDirectory(prefix="deployer-state-") as folder:
            copy = Path(folder, self.path.name)
            shutil.copyfile(self.path, copy)
            shutil.copyfile(f"{self.path}-wal", f"{copy}-wal")
            original = sqlite3.connect(copy)
            try:
                original.backup(connection)
            finally:
                original.close()
        return connection


def _opened(name: str) -> Connection:
    connection = sqlite3.connect(
        name, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, factory=Connection
    )
    connection.process = os.getpid()
    return connection
