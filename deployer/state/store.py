"""The state store: reads states, commits transactions. Writers hold a StateStore, readers need only StateReader."""

from __future__ import annotations

import getpass
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, cast, overload

from deployer.errors import NotFound
from deployer.state.backend import REMOVED, Backend, SnapshotRecord
from deployer.state.cache import Known, StateCache
from deployer.state.clock import Clock
from deployer.state.commits import Committer, Part
from deployer.state.entries import LogEntry, from_record
from deployer.state.model import INSTANCE_LOG, InstanceState, State, TableState
from deployer.state.requirements import InstanceRequirement, Requirement, TableRequirement
from deployer.state.updates import InstanceUpdate, TableUpdate, Update

COMMIT_TIMEOUT = 30.0  #: seconds in which lost races are tried again


class StateReader(Protocol):
    """What reads the state and never writes it."""

    def instance(self) -> InstanceState: ...

    def table(self, table_id: str) -> TableState: ...

    def tables(self, table_ids: Iterable[str]) -> dict[str, TableState]: ...

    def log(self, log: str, after: int = 0, limit: int | None = None) -> list[LogEntry]: ...


class StateStore:
    """One instance's state. Safe for threads and processes; states are immutable values."""

    def __init__(self, backend: Backend, clock: Clock | None = None) -> None:
        self._backend, self._clock = backend, clock or Clock()
        self._cache = StateCache(backend, self._load)
        self._committer = Committer(backend, self._cache, self._clock)

    def instance(self) -> InstanceState:
        """The newest state of the instance; version 0 when nothing was committed yet."""
        return cast(InstanceState, self._cache.refresh([INSTANCE_LOG])[INSTANCE_LOG].state)

    def table(self, table_id: str) -> TableState:
        """The newest state of a table. Raises NotFound when it was never created or was removed."""
        return self.tables([table_id])[table_id]

    def tables(self, table_ids: Iterable[str]) -> dict[str, TableState]:
        """The newest states of several tables, all as of one moment. Raises NotFound."""
        known = self._cache.refresh(list(table_ids))
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
    ) -> State:
        """Commits one transaction to one log and gives the state after it (see `commit_all`)."""
        part = Part(log, updates, requirements)
        return self.commit_all([part], txn_id=txn_id, author=author, timeout=timeout)[log]

    def commit_all(
        self,
        parts: Sequence[Part],
        *,
        txn_id: str | None = None,
        author: str | None = None,
        timeout: float = COMMIT_TIMEOUT,
    ) -> Mapping[str, State]:
        """Commits one transaction to one or several logs, all or nothing, and gives the states after it.

        Lost races are tried again on the newest state for `timeout` seconds. A transaction whose `txn_id` is already
        in the log is done: the newest states are given. Raises Conflict when a requirement fails or an update makes no
        sense on the newest state, CommitTimedOut, and OutcomeUnknown when an answer was lost and nothing settled it.
        """
        known = self._committer.commit(parts, txn_id=txn_id, author=author or _user(), timeout=timeout)
        return {log: each.state for log, each in known.items()}

    def log(self, log: str, after: int = 0, limit: int | None = None) -> list[LogEntry]:
        """Entries above version `after`, oldest first, as far back as they are kept."""
        return [from_record(record) for record in self._backend.records(log, after, limit)]

    def remove_table_log(self, table_id: str) -> None:
        """Removes all that is kept about a table, for ever: nothing can be committed to that id again."""
        self._backend.truncate(table_id, REMOVED)
        self._cache.forget(table_id)

    def close(self) -> None:
        self._backend.close()

    def _load(self, snapshot: SnapshotRecord) -> Known:
        raise NotFound("snapshots are not read yet", where=f"log {snapshot.log}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        return "unknown"
