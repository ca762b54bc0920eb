"""The agent's loop: it ends dead runs, starts due ones in processes of their own, and waits for them.

Several agents may watch one instance: the id of a run follows from its trigger, and one holder starts it, so each run
happens once. A restarted agent needs only the state: runs of the previous agent continue in their processes; the new
agent starts queued runs and ends dead ones.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from deployer.datasets.commit_metadata import RESTORE
from deployer.errors import Conflict, DeployerError, NotFound
from deployer.platform.system.clock import Clock
from deployer.runs.records import fail_dead_runs, find_run, queue_run
from deployer.services.agent.beside import Beside, Nothing
from deployer.services.agent.watch import Look, Watch, WatchedTable
from deployer.services.agent.workers import OnEvent, Workers
from deployer.services.triggers.due import Due
from deployer.services.triggers.status import GRACE, may_start
from deployer.state.log.requirements import JobNotDone
from deployer.state.log.updates import CommitAbandoned
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.model.services import Run, ServiceKind
from deployer.state.store import StateStore
from deployer.tables.open_table import OpenTable, open_entry

SLICE = 0.2  #: seconds for which the loop sleeps at a time
PATIENCE = 60.0  #: seconds that stopped runs have to end before their processes are killed
LATE = 60.0  #: seconds without a check after which an agent is not healthy, whatever its settings


@dataclass(frozen=True, slots=True)
class Settings:
    """`every` is the time between two checks in seconds, `parallel` the number of concurrent runs, `grace` the seconds
    after which a service is overdue."""

    every: float = 5.0
    parallel: int = 2
    grace: float = GRACE


@dataclass(frozen=True, slots=True)
class _PendingRun:
    """A run to start: a due one, or (`due` is None) a queued run whose process ended."""

    table_id: str
    service: ServiceKind
    run_id: str
    why: str
    since: int
    due: Due | None


@dataclass(frozen=True, slots=True)
class _Fault:
    """A fault that is reported when it begins and when it ends."""

    event: str
    table: str
    service: str


class Agent:
    """One process of the agent. Other threads may read its attributes, and call `end` and `stop`."""

    def __init__(
        self,
        store: StateStore,
        root: str,
        on_event: OnEvent,
        settings: Settings,
        clock: Clock | None = None,
        beside: Beside | None = None,
    ) -> None:
        """`beside` is its work in addition to the services of tables."""
        self._beside: Beside = Nothing() if beside is None else beside  # an empty one is false
        self._store, self._root, self._report, self._settings = store, root, on_event, settings
        self._clock = clock or Clock()
        self._watch = Watch(store, root, settings.grace, opened=self._opened)
        self._wanted: list[_PendingRun] = []
        self._wrong: set[_Fault] = set()
        self._asked_to_end = 0
        self._well_at = self._clock.monotonic()
        self._name = f"agent {socket.gethostname()} {os.getpid()} {self._clock.new_id()[:8]}"
        self.workers = Workers(store, root, on_event, self._clock)
        self.last = Look()
        self.looks = self.failed_looks = self.dead = 0

    @property
    def is_ending(self) -> bool:
        return self._asked_to_end > 0

    @property
    def silent_for(self) -> float:
        """The seconds since the last successful check."""
        return self._clock.monotonic() - self._well_at

    @property
    def is_well(self) -> bool:
        """Returns whether the last successful check is recent enough."""
        return self.is_ending or self.silent_for <= max(LATE, 4 * self._settings.every)

    def end(self) -> None:
        """Starts no more runs, and ends with the last one; a second call stops them. For signal handlers."""
        self._asked_to_end += 1

    def stop(self) -> None:
        """Stops its runs and ends; a second call kills them."""
        self._asked_to_end += 2

    def watch(self) -> bool:
        """Works until `end` or `stop` is called. Returns whether its runs ended by themselves."""
        look_at = self._clock.monotonic()
        while not self._asked_to_end:
            self._reap()
            if self._clock.monotonic() >= look_at:
                look_at = self._clock.monotonic() + self._settings.every
                try:
                    self.look()
                except (DeployerError, OSError) as error:  # such as a bucket that is not reached
                    self.failed_looks += 1
                    self._report("trouble", why=str(error))
            self._fill()
            self._clock.sleep(SLICE)
        return self._drain()

    def once(self) -> bool:
        """Runs what is due now and returns as `watch` does. Raises DeployerError when the state cannot be read."""
        self.look()
        while (self._wanted or len(self.workers)) and not self._asked_to_end:
            self._fill()
            if not len(self.workers):
                break  # the other runs wait for runs of other processes
            self._clock.sleep(SLICE)
            self._reap()
        while len(self._beside) and not self._asked_to_end:
            self._clock.sleep(SLICE)
            self._beside.reap()
        for each in self._wanted:
            name = self.last.tables[each.table_id].entry.full_name
            self._report("left", table=name, service=each.service, why="a run that excludes it is running")
        return self._drain()

    def look(self) -> None:
        """Checks once and ends dead runs; starts no runs. Raises DeployerError when the state cannot be read."""
        self.looks += 1
        look = self._watch.look(self._clock.now())
        for table_id, seen in look.tables.items():
            if seen.dead:
                self._end_dead(table_id, seen)
        self._well_at = self._clock.monotonic()
        self._report_faults(look)
        self._beside.look(look.at)
        self.last = look
        self._wanted = sorted(_wanted(look), key=lambda each: each.since)

    def _report_faults(self, look: Look) -> None:
        wrong = dict(_wrong(look))
        for each, why in wrong.items():
            if each not in self._wrong:
                self._report(each.event, **_about(each), why=why)
        for each in self._wrong - wrong.keys():
            self._report(f"no more {each.event}", **_about(each))
        self._wrong = set(wrong)

    def _end_dead(self, table_id: str, seen: WatchedTable) -> None:
        """Fails runs of dead holders, records their commits, and abandons the others that they had begun."""
        failed = fail_dead_runs(self._store, table_id, self._clock.now())
        for run in failed:
            self.dead += 1
            self._report("dead", table=seen.entry.full_name, service=run.service, run=run.run_id, why=run.reason)
        with suppress(DeployerError):  # the next check reports it
            table = self._opened(seen.entry)
            for run in failed:
                settle_dead_run(table, run)

    def _opened(self, entry: TableEntry) -> OpenTable:
        """Opens the table, and records commits of other programs."""
        return open_entry(self._store, self._root, entry)

    def _fill(self) -> None:
        """Starts pending runs while there are free places."""
        left = []
        for each in self._wanted:
            free = len(self.workers) < self._settings.parallel and each.table_id not in self.workers
            if not free or not self._start(each):
                left.append(each)
        self._wanted = left

    def _start(self, wanted: _PendingRun) -> bool:
        """Starts the run unless another process does. False while a run that excludes it is running."""
        entry = self.last.tables[wanted.table_id].entry
        try:
            state = self._store.table(wanted.table_id)
            if not may_start(state, wanted.service):
                return False
            run = self._queued(state, wanted.due) if wanted.due else find_run(state, wanted.run_id)
            others = wanted.due is not None and run.log != self._name  # the agent that queued it starts it
            if run.status == "QUEUED" and not others:
                self.workers.start(entry, run, wanted.why)
        except (Conflict, NotFound):  # another process started it
            return True
        except (DeployerError, OSError) as error:
            self._report("trouble", table=entry.full_name, service=wanted.service, why=str(error))
        return True

    def _queued(self, state: TableState, due: Due) -> Run:
        service = state.services.get(due.service)
        cluster = service.cluster if service else None
        return queue_run(
            self._store,
            state.table_id,
            due.service,
            cause=due.cause,
            cluster=cluster,
            run_id=due.run_id,
            log=self._name,
        )

    @property
    def _running(self) -> int:
        """Returns the number of processes that run."""
        return len(self.workers) + len(self._beside)

    def _reap(self) -> None:
        self.workers.reap()
        self._beside.reap()

    def _drain(self) -> bool:
        """Waits for the runs; stops them when that is requested. Returns whether they ended by themselves."""
        if self._running:
            self._report("draining", runs=self._running)
        while self._running and self._asked_to_end < 2:
            self._clock.sleep(SLICE)
            self._reap()
        if not self._running:
            return True
        self._report("stopping", runs=self._running)
        self.workers.stop()
        self._beside.stop()
        asked, give_up = self._asked_to_end, self._clock.monotonic() + PATIENCE
        while self._running and self._clock.monotonic() < give_up and self._asked_to_end == asked:
            self._clock.sleep(SLICE)
            self._reap()
        self.workers.kill()
        self._beside.kill()
        return False


def _wanted(look: Look) -> Iterator[_PendingRun]:
    """Returns the runs to start. The time since which a condition holds is unknown."""
    for table_id, seen in look.tables.items():
        for run in seen.forgotten:
            why = "it was queued, and no process started it"
            yield _PendingRun(table_id, run.service, run.run_id, why, run.queued_at, None)
        for due in seen.due:
            yield _PendingRun(table_id, due.service, due.run_id, due.why, look.at if due.at is None else due.at, due)


def _wrong(look: Look) -> Iterator[tuple[_Fault, str]]:
    for seen in look.tables.values():
        if seen.trouble:
            yield _Fault("trouble", seen.entry.full_name, ""), seen.trouble
        if seen.freshness is not None and seen.freshness.why_late(look.at):
            yield _Fault("late", seen.entry.full_name, ""), seen.freshness.why_late(look.at)
        for each in seen.service_statuses:
            if each.overdue:
                yield _Fault("overdue", seen.entry.full_name, each.service), each.overdue


def _about(wrong: _Fault) -> dict[str, Any]:
    return {"table": wrong.table} | ({"service": wrong.service} if wrong.service else {})


def settle_dead_run(table: OpenTable, run: Run) -> list[str]:
    """Abandons the commits that a dead run began and did not make; returns their jobs.

    `table` was opened after the run was ended, so its commits are recorded. A commit in progress prevents the removal
    of later versions. If the holder was only stopped and commits later, that commit is recorded by its metadata. Files
    that were written and not committed stay until CLEAN finds them old enough, because they cannot be distinguished
    from those of a load.
    """
    given_up = []
    for job in _jobs_of(table.state, run):
        with suppress(Conflict):  # it was committed meanwhile
            table.store.commit(table.state.table_id, [CommitAbandoned(job)], [JobNotDone(job)])
            given_up.append(job)
    return given_up


def _jobs_of(state: TableState, run: Run) -> list[str]:
    """Returns the jobs of the run's commits: the run's id, and others for several commits. The job of a RESTORE records
    what it undid."""
    return [
        job
        for job, intent in state.intents.items()
        if (job == run.run_id or job.startswith(f"{run.run_id}-")) and intent.kind != RESTORE
    ]
