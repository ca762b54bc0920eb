"""The records of runs of table services.

Any process may queue a run. One holder takes the run and keeps a lease during the work. The state store decides races:
a queued run is started once, an ended run stays ended, and a holder that lost its run gets a Conflict at the next
renewal.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import cast

from deployer.datasets.recovery.dead_runs import dead_runs as dead_runs
from deployer.datasets.recovery.dead_runs import fail_dead_runs as fail_dead_runs
from deployer.errors import Conflict, DeployerError, NotFound
from deployer.platform.system.clock import Clock
from deployer.platform.text.masking import masked, masked_values
from deployer.state.commits import Part
from deployer.state.log.requirements import TableRequirement
from deployer.state.log.service_updates import CancelRequested, LeaseRenewed, RunEnded, RunQueued, RunStarted
from deployer.state.log.updates import TableUpdate
from deployer.state.model.entities import JSON, TableState
from deployer.state.model.services import Figures, FinalStatus, Run, ServiceKind, Wish
from deployer.state.store import StateStore
from deployer.state.transactions.services import (
    to_ask_to_end,
    to_begin_run,
    to_end_queued_run,
    to_go_on,
    to_queue_run,
    to_start_run,
)

LEASE = 60.0  #: seconds; a holder that does not renew its lease for this time is considered dead
_BEGUN = "`deployer service runs` shows it"
LOOK = 1.0  #: seconds between two reads of the requests for a run


def queue_run(
    store: StateStore,
    table_id: str,
    service: ServiceKind,
    *,
    cause: str,
    cluster: str | None = None,
    author: str | None = None,
    run_id: str | None = None,
    log: str = "",
    needs_service: bool = True,
) -> Run:
    """Queues a run. Raises Conflict where a run of the service is queued or running, or the service does not exist.

    If `needs_service` is False, a service that is not attached can be run too. A caller that may repeat the call gives
    the `run_id`. It is also the id of the transaction, so a run with this id, even an ended one, is not queued again.
    """
    own_id = run_id or Clock().new_id()
    update = RunQueued(own_id, service, cause, cluster, log)
    requirements = to_queue_run(service, needs_service=needs_service)
    state = store.commit(table_id, [update], requirements, txn_id=f"queue-{own_id}" if run_id else None, author=author)
    return find_run(state, own_id)


def find_run(state: TableState, run_id: str) -> Run:
    """Returns the run with this id. Raises NotFound for an unknown id; only the newest runs of each service are
    kept."""
    run = state.runs.get(run_id)
    if run is None:
        raise NotFound(
            f"there is no run {run_id}",
            where=f"table {state.table_id}",
            remedy="`deployer service runs` lists those that are kept",
        )
    return run


def runs_of(state: TableState, service: ServiceKind | None = None) -> list[Run]:
    """Returns the runs of one service, or of all, the newest first."""
    found = (run for run in state.runs.values() if service in (None, run.service))
    return sorted(found, key=lambda run: (run.queued_at, run.run_id), reverse=True)


class HeldRun:
    """A run that this process works on. `run` is the record of the last read. Several threads may use it."""

    def __init__(self, store: StateStore, table_id: str, run: Run, holder: str, lease: float, clock: Clock) -> None:
        self._store, self._table_id, self._holder, self._clock = store, table_id, holder, clock
        self._lease_ms, self._lock = round(lease * 1000), threading.RLock()
        self._renewed = self._looked = clock.monotonic()
        self._progress: Mapping[str, JSON] = run.progress
        self.run = run

    @property
    def run_id(self) -> str:
        return self.run.run_id

    def requirements(self) -> list[TableRequirement]:
        """Returns the requirements for a commit of the run's work. They refuse commits of a holder that lost the
        run."""
        return to_go_on(self.run_id, self._holder)

    def renew(self, progress: Mapping[str, JSON] | None = None) -> Wish | None:
        """Renews the lease, records the progress and returns the request for the run (`pause`, `cancel` or None).

        Raises Conflict where the run was lost.
        """
        with self._lock:
            self._progress = self._progress if progress is None else progress
            started = self._clock.monotonic()
            update = LeaseRenewed(self.run_id, self._lease_ms, self._progress)
            state = self._store.commit(self._table_id, [update], self.requirements())
            self.run, self._renewed, self._looked = state.runs[self.run_id], started, started
            return self.run.wish

    def look(self, progress: Mapping[str, JSON] | None = None) -> Wish | None:
        """Returns the request for the run (`pause`, `cancel` or None). Raises Conflict where the run was lost.

        It may be called often: it reads the state at most once a second, and renews the lease, which writes to the
        state, only after a third of the lease's time.
        """
        with self._lock:
            self._progress = self._progress if progress is None else progress
            now = self._clock.monotonic()
            if (now - self._renewed) * 3000 >= self._lease_ms:
                return self.renew()
            if now - self._looked >= LOOK:
                state = self._store.table(self._table_id)
                for requirement in self.requirements():
                    if unmet := requirement.failure(state):
                        where = f"table {self._table_id}"
                        raise Conflict(unmet, where=where, remedy="stop: another process has it now")
                self.run, self._looked = state.runs[self.run_id], now
            return self.run.wish

    def wait_while_paused(self, progress: Mapping[str, JSON] | None = None) -> Wish | None:
        """Waits while the request is `pause`, and keeps the lease; then returns `cancel` or None."""
        while (wish := self.look(progress)) == "pause":
            self._clock.sleep(LOOK)
        return wish

    def finish(
        self,
        status: FinalStatus = "SUCCEEDED",
        *,
        figures: Figures | None = None,
        reason: str = "",
        progress: Mapping[str, JSON] | None = None,
    ) -> Run:
        """Ends the run. Raises Conflict where the run was lost."""
        with self._lock:
            last = self._progress if progress is None else progress
            update = RunEnded(self.run_id, status, _masked(figures or Figures()), masked(reason), last)
            # the id detects a repetition after a lost answer
            txn_id = f"end-{self.run_id}-{self._holder}"
            state = self._store.commit(self._table_id, [update], self.requirements(), txn_id=txn_id)
            self.run = find_run(state, self.run_id)
            return self.run

    @contextmanager
    def kept(self) -> Iterator[HeldRun]:
        """Keeps the lease from a thread while the caller does work that cannot call `look`.

        If the run is lost meanwhile, the caller's next call raises Conflict.
        """
        over = threading.Event()

        def keep() -> None:
            while not over.wait(min(LOOK, self._lease_ms / 4000)):
                try:
                    self.look()
                except Conflict:
                    return
                except DeployerError:  # such as a time-out: the lease may still be valid at the next attempt
                    continue

        thread = threading.Thread(target=keep, name=f"lease-{self.run_id}", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            over.set()
            thread.join()


def start_run(
    store: StateStore,
    table_id: str,
    run_id: str,
    *,
    holder: str | None = None,
    lease: float = LEASE,
    log: str | None = None,
    clock: Clock | None = None,
) -> HeldRun:
    """Takes a queued run with a lease of `lease` seconds. Only one of several callers gets the run.

    Raises Conflict where another holder has the run, the service is paused, or a run that it excludes is running. The
    same `holder` gets the run again while its lease is valid.
    """
    clock = clock or Clock()
    state = store.table(table_id)
    run = find_run(state, run_id)
    if holder is not None and run.holder == holder and run.status == "RUNNING":
        held = HeldRun(store, table_id, run, holder, lease, clock)
        held.renew()
        return held
    own = holder or clock.new_id()
    update = RunStarted(run_id, own, round(lease * 1000), log)
    after = store.commit(table_id, [update], to_start_run(run_id, run.service))
    return HeldRun(store, table_id, after.runs[run_id], own, lease, clock)


def begin_runs(
    store: StateStore,
    table_ids: Sequence[str],
    service: ServiceKind,
    *,
    cause: str,
    cluster: str | None = None,
    author: str | None = None,
    run_id: str | None = None,
    lease: float = LEASE,
    target: tuple[str, ...] = (),
    job: str = "",
) -> list[HeldRun]:
    """Queues and takes a run on each table, all with one id, in one commit: on all tables or on none.

    So a process that is killed does not leave a queued run. The service need not be attached. One of several callers
    with the same `run_id` gets the runs. Raises Conflict as `queue_run` and `start_run` do.
    """
    clock = Clock()
    own_id, holder = run_id or clock.new_id(), clock.new_id()
    updates: list[TableUpdate] = [
        RunQueued(own_id, service, cause, cluster, target=target, job=job),
        RunStarted(own_id, holder, round(lease * 1000)),
    ]
    parts = [Part(table_id, updates, to_begin_run(service, target)) for table_id in table_ids]
    states = store.commit_all(parts, txn_id=f"queue-{own_id}" if run_id else None, author=author)
    begun = []
    for table_id in table_ids:
        run = find_run(cast(TableState, states[table_id]), own_id)
        if run.holder != holder:
            raise Conflict(f"run {own_id} of {service} is {run.status}", where=f"table {table_id}", remedy=_BEGUN)
        begun.append(HeldRun(store, table_id, run, holder, lease, clock))
    return begun


def cancel_run(store: StateStore, table_id: str, run_id: str, *, reason: str = "", author: str | None = None) -> Run:
    """Ends a queued run, or requests that the holder of a running one end it; does nothing for an ended run."""
    while True:
        run = find_run(store.table(table_id), run_id)
        # the run may be started or ended meanwhile, each only once
        with suppress(Conflict):
            match run.status:
                case "QUEUED":
                    ended = RunEnded(run_id, "CANCELLED", reason=masked(reason))
                    after = store.commit(table_id, [ended], to_end_queued_run(run_id), author=author)
                case "RUNNING":
                    after = store.commit(table_id, [CancelRequested(run_id)], to_ask_to_end(run_id), author=author)
                case _:
                    return run
            return find_run(after, run_id)


def end_queued_run(store: StateStore, table_id: str, run_id: str, status: FinalStatus, *, reason: str) -> Run:
    """Ends a queued run, such as one that could not be started. Raises Conflict where the run was started."""
    update = RunEnded(run_id, status, reason=masked(reason))
    return find_run(store.commit(table_id, [update], to_end_queued_run(run_id)), run_id)


def _masked(figures: Figures) -> Figures:
    """Returns the figures with known secrets masked in their texts, such as failures of catalogs."""
    return replace(figures, before=masked_values(figures.before), after=masked_values(figures.after))
