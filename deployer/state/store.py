"""The state store, which commits transactions. Callers that only read use a StateReader (see `reader`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, overload

from deployer.errors import CommitTimedOut, Conflict
from deployer.platform.storage.objects import ObjectStore
from deployer.platform.system.clock import Clock
from deployer.platform.system.processes import local_user
from deployer.state.backends.group_commit import Ticket
from deployer.state.backends.protocol import Backend, Record
from deployer.state.commits import LOST_RACE, Committer, Part
from deployer.state.log.requirements import InstanceRequirement, Requirement, TableRequirement
from deployer.state.log.updates import InstanceUpdate, SetTableProperties, TableUpdate, Update
from deployer.state.model.entities import JSON, InstanceState, State, TableState
from deployer.state.reader import StateReader, checked_log
from deployer.state.records.keeper import RecordKeeper
from deployer.state.snapshots.files import SnapshotWriter
from deployer.state.snapshots.history import At, Time
from deployer.state.snapshots.retention import Retention, SnapshotPolicy
from deployer.state.transactions.tables import to_redeclare

if TYPE_CHECKING:
    from deployer.state.audit.logs import LogAudit
    from deployer.state.audit.repair import Step
    from deployer.state.records.files import RecordFiles
    from deployer.state.transfer.export import Export

__all__ = ["At", "Part", "StateStore", "Time"]

COMMIT_TIMEOUT = 30.0  #: seconds during which a commit is repeated after lost races
DECLARE_ATTEMPTS = 20  #: attempts to set declared properties while other writers change them


class StateStore(StateReader):
    """Access to the state of one instance, to read it and to commit to it."""

    def __init__(
        self,
        backend: Backend,
        objects: ObjectStore,
        clock: Clock | None = None,
        policy: SnapshotPolicy | None = None,
        *,
        inline_parts: int = 0,
        author: Callable[[], str] = local_user,
        records: RecordFiles | None = None,
    ) -> None:
        """Makes a store on a backend and the storage of snapshots.

        `inline_parts` is the size in bytes of the small files of a snapshot that its pointer also contains. `author`
        returns the author of commits that do not name one. `records` are the records in the tables' datasets (see
        `records.keeper`).
        """
        super().__init__(backend, objects, clock)
        self._author = author
        self._keeper = None if records is None else RecordKeeper(records, self._clock)
        self._backend, self._files = backend, objects
        self._snapshot_writer = SnapshotWriter(backend, objects, self._clock, inline_parts)
        self._committer = Committer(backend, self._cache, self._clock)
        self._retention = Retention(
            backend, objects, self._snapshot_writer, self._cache, policy or SnapshotPolicy(), self._clock
        )

    @overload
    def commit(
        self,
        log: str,
        updates: Sequence[InstanceUpdate],
        requirements: Sequence[InstanceRequirement] = (),
        *,
        txn_id: str | None = None,
        author: str | None = None,
        timeout: float = COMMIT_TIMEOUT,
        durable: bool = True,
    ) -> InstanceState: ...

    @overload
    def commit(
        self,
        log: str,
        updates: Sequence[TableUpdate],
        requirements: Sequence[TableRequirement] = (),
        *,
        txn_id: str | None = None,
        author: str | None = None,
        timeout: float = COMMIT_TIMEOUT,
        durable: bool = True,
    ) -> TableState: ...

    def commit(
        self,
        log: str,
        updates: Sequence[Update],
        requirements: Sequence[Requirement] = (),
        *,
        txn_id: str | None = None,
        author: str | None = None,
        timeout: float = COMMIT_TIMEOUT,
        durable: bool = True,
    ) -> State:
        """Commits one transaction to one log and returns the state after it (see `commit_all`)."""
        part = Part(log, updates, requirements)
        return self.commit_all([part], txn_id=txn_id, author=author, timeout=timeout, durable=durable)[log]

    def commit_all(
        self,
        parts: Sequence[Part],
        *,
        txn_id: str | None = None,
        author: str | None = None,
        timeout: float = COMMIT_TIMEOUT,
        durable: bool = True,
    ) -> Mapping[str, State]:
        """Commits one transaction to one or several logs, all or nothing, and returns the states after it.

        After a lost race, the commit is repeated on the newest state for `timeout` seconds. A transaction whose
        `txn_id` is already in the log is done, and the newest states are returned. Raises Conflict when a requirement
        fails or an update does not fit the newest state, CommitTimedOut after the timeout, and OutcomeUnknown when no
        answer came and it is unknown whether the transaction was written.

        A `durable` commit is durable when this returns. Any other commit becomes durable with the next `flush` or the
        next durable commit; callers must not report it as done before that.
        """
        for part in parts:
            checked_log(part.log)
        known = self._committer.commit(
            parts, txn_id=txn_id, author=author or self._author(), timeout=timeout, durable=durable
        )
        for each in known.values():
            self._retention.after_commit(each)
        if self._keeper is not None:
            self._keeper.after_commit(parts, self)
        return {log: each.state for log, each in known.items()}

    def declare(
        self, table_id: str, changes: Mapping[str, JSON], with_updates: Sequence[TableUpdate] = ()
    ) -> TableState:
        """Sets some declared properties of the table, in one commit with `with_updates`; None removes a property.

        Other properties stay as other writers set them. Returns the new state. Raises CommitTimedOut when other writers
        keep changing the properties.
        """
        for _ in range(DECLARE_ATTEMPTS):
            properties = self.table(table_id).properties
            merged = {**properties.declared, **changes}
            kept = {name: value for name, value in merged.items() if value is not None}
            try:
                updates = [SetTableProperties({"declared": kept}), *with_updates]
                return self.commit(table_id, updates, to_redeclare(properties.generation))
            except Conflict:
                if self.table(table_id).properties.generation == properties.generation:
                    raise
        raise CommitTimedOut("other writers keep changing the table's properties", where=f"table {table_id}")

    def fill(self, records: Sequence[Record]) -> None:
        """Writes the entries of empty logs, in this order. Raises Conflict for a log that is not empty."""
        for record in records:
            if not self._backend.put([record]) and self._backend.find(record.log, record.txn_id) != record.version:
                raise Conflict(f"log {record.log} is not empty", remedy="try again")
        self._backend.flush()

    def keep_record(self, table_id: str) -> None:
        """Writes the record of a table and its jobs into its dataset. Callers use it before they remove commit
        metadata."""
        if self._keeper is not None:
            self._keeper.keep(table_id, self)

    @property
    def transaction_logs(self) -> int | None:
        """The maximum number of logs in one transaction; None for any number."""
        return self._backend.transaction_logs

    def flush(self) -> None:
        """Makes all earlier commits of any process durable. Raises OutcomeUnknown when the disk refuses."""
        self._backend.flush()

    def turn(self, log: str, would_do: Callable[[], bytes] | None = None) -> AbstractContextManager[Ticket]:
        """Returns a lock to hold around a commit to one log and the related commit outside of the state.

        Writers on one machine wait for the lock instead of losing races. The writer that holds it may carry out the
        requests that others return from `would_do` (see `group_commit`). The lock is only an optimization: a stopped
        holder delays others only briefly, and several may hold it at once, so correctness must not depend on it.
        """
        return self._backend.turn_at(checked_log(log), would_do)

    def pause(self, lost: int) -> None:
        """Waits a random time before the next attempt, as commits do. `lost` is the number of lost races, from 1."""
        LOST_RACE.wait(lost, self._clock)

    def remove_log(self, log: str) -> None:
        """Removes all data of a log permanently: nothing can be committed to it again."""
        self._retention.remove_all(checked_log(log))

    def remove_table_log(self, table_id: str) -> None:
        """Removes all data of a table's log permanently: nothing can be committed to that id again."""
        self.remove_log(table_id)

    def remove_old(self, log: str) -> None:
        """Removes the entries and snapshots of a log that the policy does not keep. Commits that take a snapshot do
        this too."""
        self._retention.remove_old(checked_log(log))

    def forget_history(self, log: str) -> None:
        """Removes the earlier states of a log, except those that savepoints need, also from the store's files."""
        self._retention.forget_history(checked_log(log))

    def snapshot(self, log: str) -> None:
        """Takes a snapshot of the newest state now, whether or not one is due."""
        self._snapshot_writer.take(self._cache.refresh([checked_log(log)])[log].state)

    def fix(self, audit: LogAudit, *, dry_run: bool = False, drop_history: bool = False) -> list[Step]:
        """Repairs the faults that the audit found, if no committed data is lost by the repair (see `audit.repair`)."""
        from deployer.state.audit.repair import mend_log

        steps = list(mend_log(audit, self._backend, self._snapshot_writer, dry_run=dry_run, drop_history=drop_history))
        self._cache.forget(audit.log)
        return steps

    def import_from(self, path: Path) -> Export:
        """Fills this store, which must be empty, from an export."""
        from deployer.state.transfer.export import import_store

        return import_store(path, self._backend, self._files)


def to_write(store: StateReader) -> StateStore:
    """Returns the store as a StateStore. Raises TypeError, which is a programming error, if it was opened for reading
    only."""
    if not isinstance(store, StateStore):
        raise TypeError("the state was opened to be read only")
    return store
