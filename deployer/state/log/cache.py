"""The newest known state of each log, updated by reading only newer entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from threading import Lock

from deployer.errors import Corrupt, DeployerError, NotFound, Refused
from deployer.platform.storage.objects import Missing
from deployer.platform.system.progress import OnProgress, counted, no_progress
from deployer.state.backends.protocol import LogReader, Record, SnapshotRecord, Tail
from deployer.state.log.entries import LogEntry, from_record
from deployer.state.log.reducer import empty_state, fold
from deployer.state.model.entities import INSTANCE_LOG, InstanceState, State

_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class CachedState:
    """A state, and the growth of the log since the newest snapshot. `snapshot_version` 0 means that there is none.

    `snapshot_bytes` and `log_bytes` are sizes in bytes: of the snapshot's parts, and of the entries after it.
    """

    state: State
    snapshot_version: int = 0
    snapshot_bytes: int = 0
    log_bytes: int = 0

    @property
    def log_length(self) -> int:
        return self.state.version - self.snapshot_version


#: A function that returns the state of a snapshot and the snapshot's size in bytes. For a damaged snapshot, it makes
#: the same state from an older snapshot and the log.
LoadSnapshot = Callable[[SnapshotRecord], "CachedState"]


class StateCache:
    """A thread-safe cache of the newest known state of each log. A state that it returned never changes."""

    def __init__(self, logs: LogReader, load: LoadSnapshot) -> None:
        self._logs, self._load = logs, load
        self._known: dict[str, CachedState] = {}
        self._lock = Lock()

    def peek(self, log: str) -> CachedState | None:
        return self._known.get(log)

    def refresh(self, logs: Iterable[str], on_progress: OnProgress = no_progress) -> dict[str, CachedState]:
        """Returns the newest states of the logs, all as of one moment, in one request.

        Raises NotFound for a log that was removed, and Corrupt for a damaged one.
        """
        known = {log: self._known.get(log) or CachedState(empty_state(log)) for log in logs}
        for _ in range(_ATTEMPTS):
            tails = self._logs.tails({log: each.state.version for log, each in known.items()})
            try:
                each = counted(tails.items(), len(tails), "reading the state", "tables", on_progress)
                caught_up = {log: self._caught_up(known[log], tail, log) for log, tail in each}
            except Missing:
                continue  # retention removed the snapshot between the two reads; a newer snapshot exists
            self.keep(caught_up.values())
            return caught_up
        raise Corrupt("its snapshots are removed faster than they can be read", where=", ".join(known))

    def refresh_each(
        self, logs: Iterable[str], on_progress: OnProgress = no_progress
    ) -> tuple[dict[str, CachedState], dict[str, DeployerError]]:
        """Returns the newest state of each log that can be read, and the failure of each log that cannot.

        After a failure, each half of the logs is read on its own, so that the failing logs are found. Raises errors
        that do not concern the content of a single log.
        """
        wanted = list(logs)
        try:
            return self.refresh(wanted, on_progress), {}
        except (Corrupt, NotFound, Refused) as error:
            if len(wanted) == 1:
                return {}, {wanted[0]: error}
        half = len(wanted) // 2
        first, second = self.refresh_each(wanted[:half]), self.refresh_each(wanted[half:])
        return first[0] | second[0], first[1] | second[1]

    def keep(self, known: Iterable[CachedState]) -> None:
        with self._lock:
            for each in known:
                log = log_of(each.state)
                held = self._known.get(log)
                if held is None or held.state.version <= each.state.version:
                    self._known[log] = each

    def forget(self, log: str) -> None:
        with self._lock:
            self._known.pop(log, None)

    def _caught_up(self, known: CachedState, tail: Tail, log: str) -> CachedState:
        if tail.removed:
            self.forget(log)
            raise NotFound("it was removed", where="the instance" if log == INSTANCE_LOG else f"table {log}")
        if tail.from_snapshot and tail.snapshot is not None:
            known = self._load(tail.snapshot)
        elif tail.snapshot_version > known.snapshot_version:
            # Another process took a snapshot of a state that this reader has already.
            known = replace(known, snapshot_version=tail.snapshot_version, log_bytes=0)
        return grown(known, [(from_record(record, to_fold=True), record) for record in tail.records])


def grown(known: CachedState, entries: Iterable[tuple[LogEntry, Record]]) -> CachedState:
    """Returns the cached state after more entries, which follow it."""
    listed = list(entries)
    if not listed:
        return known
    return replace(
        known,
        state=fold(known.state, [entry for entry, _ in listed]),
        log_bytes=known.log_bytes + sum(len(record.body) for _, record in listed),
    )


def log_of(state: State) -> str:
    """Returns the name of the log whose entries make this state."""
    return INSTANCE_LOG if isinstance(state, InstanceState) else state.table_id
