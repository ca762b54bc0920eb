"""Reading of a SQLite file in write-ahead log mode that leaves no trace: it makes no lock file, `-wal` or `-shm`, and
does not change times of files.

SQLite also makes `-wal` and `-shm` for a reader if it may. This module prevents that in three ways:

- If the write-ahead log is empty, the file has all data and is opened as immutable, which makes no other file. After
  each statement, the module checks whether another process wrote meanwhile, and then runs the statement again.
- If the log is not empty and its index exists, both are opened for reading only. Writers see such a reader, and do not
  move pages that it reads.
- If the log is not empty, and the index is missing (as in a copy of a folder), does not fit the log, or cannot be
  locked for seconds, a private copy is read. SQLite needs ten seconds for each statement to detect an index that does
  not fit. So the header of the log is checked first, and an index that did not fit is remembered until the log changes.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import threading
import weakref
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from deployer.errors import OutcomeUnknown
from deployer.platform.files.full_disk import DISK_FULL, settle_temporary_folder
from deployer.platform.files.temporary import temporary_folder
from deployer.state.backends.sqlite.file import BUSY_TIMEOUT, Connection, abandon, as_deployer_error, index_lock
from deployer.state.backends.sqlite.logs import Row, SqliteLogs, check_files, missing_store

_IN_MEMORY = "/dev/shm"  # noqa: S108 (a private folder of this user is made there)
_ATTEMPTS = 50  #: attempts to run a statement while other processes write
_WAL_MAGIC, _WAL_HEADER = 0x377F0682, 32  # https://sqlite.org/fileformat2.html#walformat
#: The modification time and the size of each log whose index could not be used.
_unfit: dict[Path, tuple[int, int]] = {}


@dataclass(frozen=True, slots=True)
class _Look:
    """The state of the files at one moment. `log`: `-wal` is not empty. `index`: `-shm` exists."""

    identity: tuple[int, int, int]
    log: bool
    index: bool


def open_to_read(path: Path) -> SqliteLogs:
    """Returns the logs in the file at `path`, opened for reading only. Raises NotFound if there is no state store, and
    Refused for a newer format."""
    check_files(path)
    logs = SqliteLogs(SqliteReading(path))
    logs.check()
    return logs


class SqliteReading:
    """Read-only access to a SQLite file. It is safe for threads, which have a connection each, and for processes,
    forked or not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()

    def rows(self, statement: str, parameters: Sequence[object] = ()) -> list[Row]:
        """Returns all rows of a statement that only reads, as of one moment.

        Raises NotFound if the file no longer exists, and OutcomeUnknown if it changes faster than it can be read.
        """
        for _ in range(_ATTEMPTS):
            look = self._look()
            try:
                if look.log and look.index:
                    if self._index_may_fit():
                        return self._shared(statement, parameters)
                    found = self._apart(statement, parameters)
                else:
                    found = self._connection(look).execute(statement, parameters).fetchall()
            except sqlite3.DatabaseError as error:
                self._drop()
                if self._look() != look:
                    continue
                if error.sqlite_errorcode != sqlite3.SQLITE_PROTOCOL:
                    raise as_deployer_error(error, self.path) from error
                try:
                    _unfit[self.path] = self._log_identity()
                    found = self._apart(statement, parameters)
                except FileNotFoundError:
                    continue
            except FileNotFoundError:  # the log was removed, because its last writer closed it
                continue
            if self._look() == look:
                return found
            self._drop()
        raise OutcomeUnknown(
            "the state store changes faster than it can be read",
            where=self.path,
            remedy="try again when there are fewer writers",
        )

    def close(self) -> None:
        for connection in list(self._connections):
            if connection.process == os.getpid():
                connection.close()
        self._local = threading.local()

    def _look(self) -> _Look:
        log = 0
        try:
            about = self.path.stat()
        except FileNotFoundError:
            raise missing_store(self.path) from None
        with suppress(FileNotFoundError):
            log = Path(f"{self.path}-wal").stat().st_size
        return _Look((about.st_ino, about.st_mtime_ns, about.st_size), log > 0, os.path.lexists(f"{self.path}-shm"))

    def _log_identity(self) -> tuple[int, int]:
        about = Path(f"{self.path}-wal").stat()
        return about.st_mtime_ns, about.st_size

    def _index_may_fit(self) -> bool:
        """Returns whether the index may fit the log: False if the log's header is damaged, or if SQLite could not use
        the index of this log before."""
        if self.path in _unfit and _unfit[self.path] == self._log_identity():
            return False
        # SQLite's locks are on the database and on the index, so opening and closing the log here releases none.
        with Path(f"{self.path}-wal").open("rb") as log:
            return _is_wal_header(log.read(_WAL_HEADER))

    def _shared(self, statement: str, parameters: Sequence[object]) -> list[Row]:
        """Returns the rows while others may write, with a connection for only this statement (see `index_lock`)."""
        self._drop()
        with index_lock, closing(_opened(f"file:{quote(str(self.path))}?mode=ro&readonly_shm=1")) as connection:
            return connection.execute(statement, parameters).fetchall()

    def _apart(self, statement: str, parameters: Sequence[object]) -> list[Row]:
        """Returns the rows from a private copy, for a log whose index cannot be used or is locked for seconds."""
        with closing(self._copied()) as connection:
            return connection.execute(statement, parameters).fetchall()

    def _connection(self, look: _Look) -> Connection:
        """Returns this thread's connection to the file in the state `look`."""
        held: Connection | None = getattr(self._local, "connection", None)
        if held is not None and held.process == os.getpid() and self._local.look == look:
            return held
        self._drop()
        alone = f"file:{quote(str(self.path))}?mode=ro&immutable=1"
        connection = self._copied() if look.log else _opened(alone)
        self._local.connection, self._local.look = connection, look
        self._connections.add(connection)
        return connection

    def _drop(self) -> None:
        held: Connection | None = getattr(self._local, "connection", None)
        if held is not None and held.process == os.getpid():
            held.close()
        elif held is not None:
            abandon(held)
        self._local.connection = None

    def _copied(self) -> Connection:
        """Returns a connection to the content of a private copy, in memory. If the disk is full, the copied files are
        in memory too."""
        settle_temporary_folder()
        try:
            return self._copied_by_way_of(None)
        except OSError as failure:
            if failure.errno not in DISK_FULL or not Path(_IN_MEMORY).is_dir():
                raise
            return self._copied_by_way_of(Path(_IN_MEMORY))

    def _copied_by_way_of(self, place: Path | None) -> Connection:
        connection = _opened(":memory:")
        with temporary_folder("state", place) as folder:
            copy = folder / self.path.name
            shutil.copyfile(self.path, copy)
            shutil.copyfile(f"{self.path}-wal", f"{copy}-wal")
            original = sqlite3.connect(copy)
            try:
                original.backup(connection)
            finally:
                original.close()
        return connection


def _is_wal_header(header: bytes) -> bool:
    """Returns whether a log's header has the checksum that SQLite's file format defines."""
    magic = int.from_bytes(header[:4])
    if len(header) < _WAL_HEADER or magic & ~1 != _WAL_MAGIC:
        return False
    numbers = struct.unpack(f"{'>' if magic & 1 else '<'}6I", header[:24])
    first = second = 0
    for left, right in zip(numbers[::2], numbers[1::2], strict=True):
        first = (first + left + second) % 2**32
        second = (second + right + first) % 2**32
    return header[24:] == struct.pack(">2I", first, second)


def _opened(name: str) -> Connection:
    connection = sqlite3.connect(
        name, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False, factory=Connection
    )
    connection.process = os.getpid()
    return connection
