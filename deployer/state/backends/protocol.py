"""The protocol that each backend of the state store implements.

A log is a dense run of records, version 1 onwards. Records at or below its *floor* have been removed, because a
snapshot replaces them. The one primitive: put version n+1 of a log unless that version exists, and only above the
floor, for several logs at once all or none. The condition on the floor prevents a stalled writer from writing a version
that was removed meanwhile.
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
    """An entry as it is stored: `body` is opaque to the backend."""

    log: str
    version: int
    txn_id: str
    body: bytes


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """A pointer to a snapshot of a log at a version; `at` is the time of that version's entry."""

    log: str
    version: int
    at: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Tail:
    """The entries that a reader lacks, as of one moment.

    Records follow `snapshot`, the newest, when `from_snapshot`, else the version that the reader asked for; only then
    may `snapshot` be left out. They are dense. `snapshot_version` is that of the newest snapshot (0: none).
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
    """The reading half of a backend: nothing that it does changes what is stored. Methods may raise OutcomeUnknown
    when no answer came."""

    def tails(self, after: Mapping[str, int]) -> Mapping[str, Tail]:
        """Returns what follows the given version of each log, all as of one moment.

        A reader at version 0, or below the floor, gets the newest snapshot and what follows that.
        """
        ...

    def records(self, log: str, after: int, limit: int | None = None) -> Sequence[Record]:
        """Records with a version above `after`, in order, at most `limit`; those removed are not among them."""
        ...

    def find(self, log: str, txn_id: str) -> int | None:
        """Returns the version at which a transaction is in the log, if it still is."""
        ...

    def snapshots(self, log: str) -> Sequence[SnapshotRecord]:
        """Returns all pointers of a log, oldest first."""
        ...

    def logs(self) -> Sequence[str]:
        """Returns the names of all logs that hold anything."""
        ...

    def close(self) -> None: ...


class Backend(LogReader, Protocol):
    """Both halves. OutcomeUnknown from a write leaves a doubt: it may have been written."""

    transaction_logs: int | None  #: how many logs one `put` may write to; None for any number

    def put(self, records: Sequence[Record]) -> bool:
        """Writes one record for each log, all or none. Returns False when any version exists or is not above the floor.

        All readers see it immediately, and it is durable after the next `flush` of any process: after a power failure
        before that, it may be lost, with all later records. It may also return False when writers collide, or when the
        backend accepts no writer for some time, and True for equal records that exist already. After OutcomeUnknown it
        may have been written, or may still be; after any other error it was not and will not be written.
        """
        ...

    def flush(self) -> None:
        """Waits until all earlier records are durable.

        After OutcomeUnknown, it is unknown whether writes since the last flush are durable. Concurrent calls share the
        disk's work, so do not call it while holding a lock.
        """
        ...

    def turn(self) -> AbstractContextManager[bool]:
        """Held around a commit: writers on one machine wait for it briefly instead of losing races.

        Yields whether another writer had it before. It is only an optimization: several may hold it at once.
        """
        ...

    def turn_at(self, log: str, would_do: Callable[[], bytes] | None = None) -> AbstractContextManager[Ticket]:
        """Held around a commit to one log and what it is about elsewhere; `would_do` returns the request, for another
        writer that may do it too (see `line`). Only a courtesy as well."""
        ...

    def add_snapshot(self, snapshot: SnapshotRecord) -> bool:
        """Adds a pointer unless that version has one or is not above the floor; False then."""
        ...

    def replace_snapshot(self, snapshot: SnapshotRecord) -> bool:
        """Puts a pointer in the place of the one that its version has; False when that version has none."""
        ...

    def begin_at(self, log: str, version: int) -> bool:
        """Makes an empty log continue after `version`, whose snapshot is to be added; False when it is not empty."""
        ...

    def wipe(self) -> None:
        """Wipes removed data from the files of the backend, if no process has them open."""
        ...

    def truncate(self, log: str, floor: int) -> Sequence[SnapshotRecord]:
        """Raises the floor, removing records at or below it and pointers below it, in one step; gives those pointers.

        A floor that is not above the log's own changes nothing. REMOVED removes all of the log forever.
        """
        ...
