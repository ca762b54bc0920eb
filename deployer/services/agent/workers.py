"""The processes of an agent's runs, at most one for each table."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from deployer.errors import DeployerError
from deployer.platform.system.clock import Clock
from deployer.runs.processes import LocalRun, start_local_run
from deployer.runs.records import end_queued_run, find_run
from deployer.runs.runner import INTERRUPTED
from deployer.state.model.entities import TableEntry
from deployer.state.model.services import Run
from deployer.state.store import StateStore

PROGRESS = 20.0  #: seconds between two lines of a run's progress
STARTS = 3  #: how often a queued run's process is started before the run is failed

#: Reports an event: its name, and its details as keyword arguments.
OnEvent = Callable[..., None]


@dataclass(slots=True)
class _Worker:
    local: LocalRun
    reported_at: float


class Workers:
    """`ended` counts runs by their status. The processes of runs. Each process has its own session: a signal of the
    agent's terminal, or a kill of the agent, does not end it."""

    def __init__(self, store: StateStore, root: str, on_event: OnEvent, clock: Clock) -> None:
        self._store, self._root, self._report, self._clock = store, root, on_event, clock
        self._working: dict[str, _Worker] = {}  # by table
        self._starts: dict[str, int] = {}  # starts of runs that did not begin, by id
        self._is_stopped = False
        self.ended: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._working)

    def __contains__(self, table_id: str) -> bool:
        return table_id in self._working

    def start(self, entry: TableEntry, run: Run, why: str) -> None:
        """Starts the process of a queued run. Raises OSError when the machine cannot start a process."""
        local = start_local_run(self._store, self._root, entry, run)
        self._starts[run.run_id] = self._starts.get(run.run_id, 0) + 1
        self._working[entry.table_id] = _Worker(local, self._clock.monotonic())
        about = {"table": entry.full_name, "service": run.service, "run": run.run_id}
        self._report("started", **about, pid=local.process.pid, why=why)

    def reap(self) -> None:
        """Reports outcomes of runs whose processes have ended, and every `PROGRESS` seconds the progress of others."""
        for table_id, each in list(self._working.items()):
            if each.local.process.poll() is None:
                if self._clock.monotonic() - each.reported_at >= PROGRESS:
                    each.reported_at = self._clock.monotonic()
                    self._report_progress(each.local)
                continue
            with suppress(DeployerError):  # the next check finds its expired lease
                self._over(each.local)
            each.local.close()
            del self._working[table_id]

    def stop(self) -> None:
        """Stops the runs like Ctrl-C: they are CANCELLED, and keep their commits."""
        self._is_stopped = True
        for each in self._working.values():
            each.local.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kills processes that do not end. Their leases expire, and the next check ends their runs."""
        self._is_stopped = True
        for each in self._working.values():
            each.local.process.kill()
            each.local.process.wait()
        self.reap()

    def _over(self, local: LocalRun) -> None:
        table_id, run_id = local.entry.table_id, local.run.run_id
        run = find_run(self._store.table(table_id), run_id)
        if run.status == "QUEUED" and self._is_stopped:
            run = end_queued_run(self._store, table_id, run_id, "CANCELLED", reason=INTERRUPTED)
        elif run.status == "QUEUED":
            if self._starts.get(run_id, 0) < STARTS:
                why = local.last_error() or f"its process ended with {local.process.returncode}"
                self._report("not started", table=local.entry.full_name, service=run.service, run=run_id, why=why)
                return  # the next check starts it again
            local.settle()
            run = find_run(self._store.table(table_id), run_id)
        self._starts.pop(run_id, None)
        if run.is_open:
            return  # another holder has it, or its process was killed
        self.ended[run.status] = self.ended.get(run.status, 0) + 1
        began = run.started_at or run.queued_at
        self._report(
            "ended",
            table=local.entry.full_name,
            service=run.service,
            run=run_id,
            status=run.status,
            why=run.reason,
            seconds=round(((run.ended_at or began) - began) / 1000, 1),
            before=dict(run.figures.before),
            after=dict(run.figures.after),
        )

    def _report_progress(self, local: LocalRun) -> None:
        with suppress(DeployerError):
            run = find_run(self._store.table(local.entry.table_id), local.run.run_id)
            if run.progress:
                about = dict(run.progress)
                self._report("progress", table=local.entry.full_name, service=run.service, run=run.run_id, **about)
