"""Runs of services on clusters other than this machine. The command and the client start them as jobs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from deployer.compute.jobs.cluster import RemoteCluster, RemoteJob, RunState, RunStatus
from deployer.compute.jobs.status import StartedJob, ask_to_end, read_status
from deployer.compute.running.follow import PATIENCE, PAUSE, TEMPORARY
from deployer.compute.running.start import TOO_EARLY_ATTEMPTS, TOO_EARLY_PAUSE, start_job
from deployer.errors import Conflict, DeployerError
from deployer.platform.aws.calls import CallFailed
from deployer.platform.system.clock import Clock
from deployer.runs.records import end_queued_run, find_run
from deployer.state.model.entities import TableEntry
from deployer.state.model.services import FinalStatus, Run
from deployer.state.store import StateStore

PROGRAM = "service"  #: the job's name in `spark_jobs`


def service_job(
    root: str,
    instance: str,
    table: str,
    service: str,
    *,
    cluster: str,
    options: Mapping[str, Any] | None = None,
    engine: str = "auto",
    job_id: str | None = None,
    run_id: str | None = None,
) -> RemoteJob:
    """Returns the job that immediately runs a service of `table` (`database.name`), even if the table does not have it.

    With a `run_id`, the job takes that queued run; otherwise it begins a new one. The `job_id` is random by default.
    """
    queued = () if run_id is None else (f"--run={run_id}",)
    given = () if options is None else (f"--options={json.dumps(options)}",)
    where = (f"--root={root}", f"--table={table}", f"--service={service}", f"--cluster={cluster}")
    arguments = (*where, "--now", f"--engine={engine}", *queued, *given)
    tags = {"deployer:instance": instance, "deployer:table": table, "deployer:service": service}
    return RemoteJob(PROGRAM, job_id or uuid.uuid4().hex, f"{service} {table}", arguments, tags)


@dataclass(slots=True)
class RemoteRun:
    """A run of a service in a job on a cluster. The class implements `wait.RunningWork`."""

    store: StateStore
    root: str
    entry: TableEntry
    run: Run
    cluster: RemoteCluster
    job: RemoteJob
    clock: Clock = field(default_factory=Clock)
    _started: StartedJob | None = None
    _attempt: int = 1
    _look_at: float = 0.0
    _answered_at: float = 0.0

    def start(self) -> None:
        """Starts the job. Raises the cluster's errors, such as CallFailed; the run is then FAILED."""
        try:
            self._start()
        except DeployerError as error:
            self._end_queued("FAILED", f"it was not started on cluster {self.cluster.name}: {error}")
            raise
        except BaseException:
            # A job that begins later finds that the run has ended.
            self._end_queued("CANCELLED", "interrupted while it was started")
            raise

    def settle(self) -> None:
        """Ends the run where its job ended without starting it. Reads the job's status every few seconds.

        Raises CallFailed where AWS refuses the read; the job continues.
        """
        now = self.clock.monotonic()
        if self._started is None or now < self._look_at:
            return
        self._look_at = now + PAUSE
        try:
            status = self.cluster.status(self._started.run_id)
        except CallFailed as failure:
            if failure.cause not in TEMPORARY or now - self._answered_at > PATIENCE:
                raise
            return
        self._answered_at = now
        if not status.state.ended:
            return
        if status.too_early and self._attempt < TOO_EARLY_ATTEMPTS:
            self._attempt += 1
            self.clock.sleep(TOO_EARLY_PAUSE)
            self.start()
            return
        ended: FinalStatus = "CANCELLED" if status.state is RunState.CANCELLED else "FAILED"
        self._end_queued(ended, self._why(self._started, status))

    def close(self) -> None:
        """Does nothing: there are no resources to release."""

    def leave(self) -> None:
        """Does nothing: the job ends the run."""

    def stop(self) -> None:
        """Requests that the job end, and that the cluster cancel it."""
        self._end_queued("CANCELLED", "interrupted")
        if self._started is not None:
            ask_to_end(self.root, self._started.key)
            self.cluster.cancel(self._started.run_id)

    def _start(self) -> None:
        self._started, self._attempt = start_job(self.cluster, self.root, self.job, self._attempt)
        self._answered_at = self.clock.monotonic()

    def _why(self, started: StartedJob, status: RunStatus) -> str:
        run = self.cluster.describe_run(started.run_id)
        reported = read_status(self.root, started.key)
        if reported.error is not None:
            return str(reported.error)
        detail = f": {status.detail}" if status.detail else ""
        return f"{run} ended ({status.reported}) before the run began{detail}"

    def _end_queued(self, status: FinalStatus, reason: str) -> None:
        with suppress(Conflict):  # the run was already started or ended
            if find_run(self.store.table(self.entry.table_id), self.run.run_id).status == "QUEUED":
                end_queued_run(self.store, self.entry.table_id, self.run.run_id, status, reason=reason)
