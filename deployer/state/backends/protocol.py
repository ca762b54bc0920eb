"""The protocol that each backend of the state store implements.

A log is a sequence of records without gaps, from version 1. Records at or below its *floor* have been removed, because
a snapshot replaces them. The basic operation puts version n+1 of a log if that version does not exist and is above the
floor; for several logs at once, it puts all records or none. The condition on the floor prevents a stalled writer from
writing a version that was removed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from deployer.state.backends.group_commit import Ticket

REMOVED = 2**63 - 1  #: the floor of a log that was removed: nothing can be put above it


@dataclass(frozen=True, slots=True)
class Record:
    """A stored entry of a log. The backend does not interpret `body`."""

    log: str
    version: int
    txn_id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """A pointer to a snapshot of a log at a version. `at` is the time of that version's entry, in ms since 1970."""

    log: str
    version: int
    at: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Tail:
    """The part of a log that a reader lacks, as of one moment.

    With `from_snapshot`, the records follow `snapshot`, which is the newest one. Otherwise they follow the version that
    the reader asked for, and `snapshot` may be None. The records have no gaps. `snapshot_version` is the version of the
    newest snapshot; 0 means that there is none.
    """

    floor: int
    snapshot: SnapshotRecord | None
    from_snapshot: bool
    records: tuple[Record, ...]
    snapshot_version: int = 0

    @property
    def removed(self) -> bool:
        return self.floor == REMOVED


class LogReader(Protocol):
    """The part of a backend that reads. Its methods change nothing that is stored.

    They may raise OutcomeUnknown when no answer came.
    """

    def tails(self, after: Mapping[str, int]) -> Mapping[str, Tail]:
        """Returns the records after the given version of each log, all as of one moment.

        A reader at version 0, or below the floor, gets the newest snapshot and the records after the snapshot.
        """
        ...

    def records(self, log: str, after: int, limit: int | None = None) -> Sequence[Record]:
        """Returns the records with a version above `after` that were not removed, in order, at most `limit`."""
        ...

    def find(self, log: str, txn_id: str) -> int | None:
        """Returns the version of a transaction's entry in the log; None if the log does not have it or no longer."""
        ...

    def snapshots(self, log: str) -> Sequence[SnapshotRecord]:
        """Returns all pointers of a log, oldest first."""
        ...

    def logs(self) -> Sequence[str]:
        """Returns the names of all logs that are not empty."""
        ...

    def close(self) -> None: ...


class Backend(LogReader, Protocol):
    """A backend that reads and writes. After OutcomeUnknown from a write, the data may have been written."""

    transaction_logs: int | None  #: the maximum number of logs in one `put`; None for any number

    def put(self, records: Sequence[Record]) -> bool:
        """Writes one record for each log, all or none. Returns False when any version exists or is not above the floor.

        All readers see the records immediately. They are durable after the next `flush` of any process; a power failure
        before that may lose them together with all later records. `put` may also return False when writers collide or
        when the backend accepts no writer for some time, and True for equal records that exist already. After
        OutcomeUnknown, the records may have been written or may still be written; after any other error they were not
        and will not be written.
        """
        ...

    def flush(self) -> None:
        """Waits until all earlier records are durable.

        After OutcomeUnknown, it is unknown whether writes since the last flush are durable. Concurrent calls share the
        disk's work, so do not call it while holding a lock.
        """
        ...

    def turn(self) -> AbstractContextManager[bool]:
        """Returns a lock to hold around a commit: writers on one machine wait for it briefly instead of losing races.

        The lock yields whether another writer had it before. It is only an optimization: several may hold it at once.
        """
        ...

    def turn_at(self, log: str, would_do: Callable[[], bytes] | None = None) -> AbstractContextManager[Ticket]:
        """Returns a lock to hold around a commit to one log and the related commit outside of the state.

        `would_do` returns the request that another writer may carry out meanwhile (see `group_commit`). This lock is
        only an optimization too.
        """
        ...

    def add_snapshot(self, snapshot: SnapshotRecord) -> bool:
        """Adds a pointer. Returns False, and adds nothing, if its version has one already or is not above the floor."""
        ...

    def replace_snapshot(self, snapshot: SnapshotRecord) -> bool:
        """Replaces the pointer of the same version. Returns False, and writes nothing, if that version has none."""
        ...

    def begin_at(self, log: str, version: int) -> bool:
        """Makes an empty log continue after `version`. The caller then adds the snapshot of that version. Returns
        False if the log is not empty."""
        ...

    def wipe(self) -> None:
        """Wipes removed data from the files of the backend, if no process has them open."""
        ...

    def truncate(self, log: str, floor: int) -> Sequence[SnapshotRecord]:
        """Raises the floor, and removes records at or below it and pointers below it in one step. Returns the removed
        pointers.

        A floor that is not above the current one changes nothing. REMOVED removes the whole log permanently.
        """
        ...
