"""The state store: reads states, commits transactions. Writers hold a StateStore, readers need only StateReader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast, overload

from deployer.errors import InvalidInput, NotFound
from deployer.state.backend import Backend
from deployer.state.cache import StateCache
from deployer.state.clock import Clock
from deployer.state.commits import Committer, Part, longest_pause
from deployer.state.entries import Damaged, LogEntry, from_record, read_or_damaged
from deployer.state.history import At, Time, state_at
from deployer.state.line import Turn
from deployer.state.model import INSTANCE_LOG, InstanceState, State, TableState
from deployer.state.objects import ObjectStore
from deployer.state.requirements import InstanceRequirement, Requirement, TableRequirement
from deployer.state.retention import Retention, SnapshotPolicy
from deployer.state.snapshots import Snapshots
from deployer.state.updates import InstanceUpdate, TableUpdate, Update
from deployer.state.user import local_user

if TYPE_CHECKING:
    from deployer.state.audit import LogAudit
    from deployer.state.mend import Step
    from deployer.state.portable import Exported

__all__ = ["At", "Part", "StateReader", "StateStore", "Time"]

COMMIT_TIMEOUT = 30.0  #: seconds in which lost races are tried again


class StateReader(Protocol):
    """What reads the state and never writes it."""

    def instance(self, at: At | None = None) -> InstanceState: ...

    def table(self, table_id: str, at: At | None = None) -> TableState: ...

    def tables(self, table_ids: Iterable[str]) -> dict[str, TableState]: ...

    def log(self, log: str, after: int = 0, limit: int | None = None) -> list[LogEntry]: ...


class StateStore:
    """One instance's state. Safe for threads and processes; states are immutable values."""

    def __init__(
        self,
        backend: Backend,
        objects: ObjectStore,
        clock: Clock | None = None,
        policy: SnapshotPolicy | None = None,
        *,
        inline_parts: int = 0,
        author: Callable[[], str] = local_user,
    ) -> None:
        """`inline_parts`: bytes of a snapshot's small files that its pointer holds too. `author` tells who commits
        where a commit does not say."""
        clock = clock or Clock()
        self._backend, self._objects, self._clock = backend, objects, clock
        self._author = author
        self._snapshots = Snapshots(backend, objects, clock, inline_parts)
        self._cache = StateCache(backend, self._snapshots.load)
        self._committer = Committer(backend, self._cache, clock)
        self._retention = Retention(backend, objects, self._snapshots, self._cache, policy or SnapshotPolicy(), clock)

    def instance(self, at: At | None = None) -> InstanceState:
        """The state of the instance, the newest (version 0 when nothing was committed yet) or that of a time before.

        `at` is a version of the log, a `Time` or a datetime with a time zone. Raises NotFound when the state of that
        time is not kept.
        """
        if at is not None:
            return cast(InstanceState, state_at(INSTANCE_LOG, at, self._backend, self._snapshots))
        return cast(InstanceState, self._cache.refresh([INSTANCE_LOG])[INSTANCE_LOG].state)

    def table(self, table_id: str, at: At | None = None) -> TableState:
        """The state of a table, the newest or that of a time before (as in `instance`). Raises NotFound."""
        if at is not None:
            return cast(TableState, state_at(_checked(table_id), at, self._backend, self._snapshots))
        return self.tables([table_id])[table_id]

    def tables(self, table_ids: Iterable[str]) -> dict[str, TableState]:
        """The newest states of several tables, all as of one moment. Raises NotFound."""
        known = self._cache.refresh(map(_checked, table_ids))
        for log, each in known.items():
            if each.state.version == 0:
                raise NotFound("there is no such table", where=f"table {log}")
        return {log: cast(TableState, each.state) for log, each in known.items()}

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
        """Commits one transaction to one log and gives the state after it (see `commit_all`)."""
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
        """Commits one transaction to one or several logs, all or nothing, and gives the states after it.

        Lost races are tried again on the newest state for `timeout` seconds. A transaction whose `txn_id` is already
        in the log is done: the newest states are given. Raises Conflict when a requirement fails or an update makes no
        sense on the newest state, CommitTimedOut, and OutcomeUnknown when an answer was lost and nothing settled it.

        It is durable then; one that is not to be is so after `flush`, or after the next commit that is. Nobody may be
        told that it is done before that.
        """
        for part in parts:
            _checked(part.log)
        known = self._committer.commit(
            parts, txn_id=txn_id, author=author or self._author(), timeout=timeout, durable=durable
        )
        for each in known.values():
            self._retention.after_commit(each)
        return {log: each.state for log, each in known.items()}

    def flush(self) -> None:
        """Makes durable what was committed before, by whomever. Raises OutcomeUnknown when the disk refuses."""
        self._backend.flush()

    def turn(self, log: str, would_do: Callable[[], bytes] | None = None) -> AbstractContextManager[Turn]:
        """Held around a commit to one log and what it is about, where that is not in the state.

        Writers on one machine wait for it rather than lose races elsewhere, and the one that has it may do what others
        `would_do` (see `line`). Only a courtesy: a writer that was stopped with it holds nobody up for long, and
        nothing may rest on it.
        """
        return self._backend.turn_at(_checked(log), would_do)

    def pause(self, lost: int) -> None:
        """Waits a random while after so many lost races (from 1), as commits do, before one looks again."""
        self._clock.sleep(self._clock.uniform(0, longest_pause(lost)))

    def log(self, log: str, after: int = 0, limit: int | None = None) -> list[LogEntry]:
        """Entries above version `after`, oldest first, as far back as they are kept."""
        return [from_record(record) for record in self._backend.records(_checked(log), after, limit)]

    def log_with_damage(self, log: str, after: int = 0, limit: int | None = None) -> list[LogEntry | Damaged]:
        """As `log`; an entry that cannot be read is told and does not hide the others."""
        return [read_or_damaged(record) for record in self._backend.records(_checked(log), after, limit)]

    def logs(self) -> list[str]:
        """The names of all logs that hold anything."""
        return list(self._backend.logs())

    def remove_log(self, log: str) -> None:
        """Removes all that is kept of a log, for ever: nothing can be committed to it again."""
        self._retention.remove_all(_checked(log))

    def remove_table_log(self, table_id: str) -> None:
        """Removes all that is kept about a table, for ever: nothing can be committed to that id again."""
        self.remove_log(table_id)

    def remove_old(self, log: str) -> None:
        """Removes what the policy does not keep of a log; commits do so by themselves when they take a snapshot."""
        self._retention.remove_old(_checked(log))

    def snapshot(self, log: str) -> None:
        """Takes a snapshot of the newest state now, whether or not one is due."""
        self._snapshots.take(self._cache.refresh([_checked(log)])[log].state)

    def audit(self, log: str) -> LogAudit:
        """Folds the log from its beginning and compares (see `audit`): nothing is taken from what was read before."""
        from deployer.state.audit import audit_log  # these four are for people: no writer loads them

        return audit_log(_checked(log), self._backend, self._snapshots, self._objects)

    def mend(self, audit: LogAudit, *, dry_run: bool = False, drop_history: bool = False) -> list[Step]:
        """Puts right what the audit found, as far as nothing that was committed is lost by it (see `mend`)."""
        from deployer.state.mend import mend_log

        steps = list(mend_log(audit, self._backend, self._snapshots, dry_run=dry_run, drop_history=drop_history))
        self._cache.forget(audit.log)
        return steps

    def export_to(self, path: Path) -> Exported:
        """Writes all that is kept into one file, as of one moment (see `portable`)."""
        from deployer.state.portable import export_store

        return export_store(path, self._backend, self._objects, self._clock.now())

    def import_from(self, path: Path) -> Exported:
        """Fills this store, which must be empty, from an export."""
        from deployer.state.portable import import_store

        return import_store(path, self._backend, self._objects)

    def close(self) -> None:
        self._backend.close()


def _checked(log: str) -> str:
    """The name of a log, which names a folder too. Raises InvalidInput for one that cannot."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", log):
        raise InvalidInput(f"{log!r} is not a table id", remedy="table ids are letters, digits, - and _, at most 64")
    return log
