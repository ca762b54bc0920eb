"""One SQLite file in write-ahead log mode: a connection for each thread, transactions, and flushes.

By default, SQLite flushes the log while it blocks all other writers. Here it is configured not to flush
(`synchronous=NORMAL`), and this module flushes the log after SQLite's lock is released, so that one flush covers the
writes of several processes. The log is one file that only grows until its pages are in the database and flushed there,
so a flush covers all earlier writes.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deployer.errors import Corrupt, DeployerError, OutcomeUnknown
from deployer.platform.storage.envelope import RECOVERY

BUSY_TIMEOUT = 5.0  #: seconds for which a statement waits for another process's transaction


class NotWritten(DeployerError):
    """The transaction was rolled back: a row with the same key exists already, or the file was busy."""

    kind = "NotWritten"


class Connection(sqlite3.Connection):
    """A connection with the id of its process. A forked child must neither use nor close its parent's connection."""

    process = 0


#: A lock that is held while a connection maps the index of a log for writing, and as long as a connection has it mapped
#: for reading only. SQLite has one mapping of an index per process, and refuses writes to a mapping made for reading.
index_lock = threading.Lock()
os.register_at_fork(after_in_child=lambda: index_lock._at_fork_reinit())  # type: ignore[attr-defined]

_abandoned: list[sqlite3.Connection] = []


def abandon(connection: Connection) -> None:
    """Keeps a connection of the parent process referenced, so that this forked process never closes it."""
    _abandoned.append(connection)


class SqliteFile:
    """Access to one SQLite file. It is safe for threads, which have a connection each, and for processes, forked or
    not.

    The file must be on a local disk: SQLite's write-ahead log does not work over a network file system.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yields the thread's connection. Raises NotWritten for a row that exists already, and any other error of
        SQLite as a DeployerError."""
        try:
            yield self._connection()
        except sqlite3.IntegrityError as error:
            raise NotWritten("the version exists already", where=self.path) from error
        except sqlite3.DatabaseError as error:
            raise as_deployer_error(error, self.path) from error

    def rows(self, statement: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Returns all rows of a statement that only reads."""
        with self.reading() as connection:
            return connection.execute(statement, parameters).fetchall()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yields the connection in a transaction as `visibly_writing` does, and makes the transaction durable at the
        end."""
        with self.visibly_writing() as connection:
            yield connection
        self.flush()

    @contextmanager
    def visibly_writing(self) -> Iterator[Connection]:
        """Yields the connection in a write transaction, and commits it at the end unless the block rolled it back."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.rollback()
                raise
            if connection.in_transaction:
                self._commit(connection)

    def wipe(self) -> None:
        """Rewrites the database without free pages, and empties the write-ahead log unless other connections read
        it."""
        with self.reading() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def flush(self) -> None:
        """Makes all earlier commits of any process durable. Raises OutcomeUnknown when the disk reports an error."""
        try:
            # A connection cannot flush the log. SQLite's locks are on other files, so closing the log releases none.
            log = os.open(f"{self.path}-wal", os.O_RDONLY | os.O_CLOEXEC)
            try:
                _flush(log)
            finally:
                os.close(log)
        except FileNotFoundError:
            return  # all connections were closed, so the pages of the log are in the database and flushed
        except OSError as error:
            raise OutcomeUnknown(
                f"whether commits reached the disk is unknown: {error.strerror}",
                where=self.path,
                remedy="check the disk, then the newest state",
            ) from error

    def close(self) -> None:
        for connection in list(self._connections):
            if connection.process == os.getpid():
                connection.close()
        self._local = threading.local()

    def _commit(self, connection: Connection) -> None:
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.rollback()
            if primary_code(error) == sqlite3.SQLITE_FULL:
                raise  # the last frame is the one that commits, and the disk had no room for it
            # Any other failed COMMIT may have written its frames; only the log can show whether it did.
            raise OutcomeUnknown(f"the commit was not confirmed: {error}", where=self.path) from error

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is not None and connection.process == os.getpid():
            return connection
        if connection is not None:
            abandon(connection)
        connection = sqlite3.connect(
            self.path, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, factory=Connection
        )
        connection.process = os.getpid()
        with index_lock:
            _use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")  # see `flush`
        self._local.connection = connection
        self._connections.add(connection)
        return connection


def as_deployer_error(error: sqlite3.DatabaseError, path: Path) -> DeployerError:
    """Returns SQLite's error about the file at `path` as a DeployerError."""
    code = primary_code(error)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return Corrupt(f"the state store's file is damaged: {error}", where=path, remedy=RECOVERY)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return NotWritten(
            f"another process has held the state store for {BUSY_TIMEOUT:.0f} s", where=path, remedy="try again"
        )
    if code == sqlite3.SQLITE_FULL:
        return DeployerError(
            "the disk is full, and the state store was not changed",
            where=path,
            remedy="free some space, then run the command again",
        )
    return DeployerError(
        f"the state store cannot be used: {error}",
        where=path,
        remedy="check the disk: its free space, its permissions and its health",
    )


def primary_code(error: sqlite3.Error) -> int:
    """Returns SQLite's primary result code of an error (https://www.sqlite.org/rescode.html); 0 if it has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


#: Flushes the data of a file and the metadata that reading needs. macOS only has a flush of the data and all metadata.
_flush = getattr(os, "fdatasync", os.fsync)


def _use_wal(connection: sqlite3.Connection) -> None:
    """Turns the write-ahead log on. It repeats the statement, because SQLite does not wait while another process turns
    the log on for a new file."""
    deadline = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.001)
        else:
            return
