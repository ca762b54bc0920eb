"""Waits for the end of a run in another process, on this machine or on a cluster."""

from __future__ import annotations

import time
from typing import Protocol

from deployer.errors import DeployerError
from deployer.platform.aws.calls import CallFailed
from deployer.runs.records import fail_dead_runs, find_run
from deployer.state.model.services import Run
from deployer.tables.open_table import OpenTable

POLL = 0.5  #: the default number of seconds between two checks
LEAST = 0.01  #: the least number of seconds between two checks, whatever the caller's interval


class TimedOut(DeployerError, TimeoutError):
    """The error that a run did not end in time; the run continues."""

    kind = "TimedOut"


class RunningWork(Protocol):
    """The process or job that does a run. `LocalRun` is a process on this machine; `RemoteRun` is a job on a
    cluster."""

    def settle(self) -> None:
        """Ends the run where its process or job ended without starting it."""

    def close(self) -> None:
        """Releases the resources of the work after the end of the run."""

    def stop(self) -> None:
        """Ends the work, and releases its resources."""

    def leave(self) -> None:
        """Leaves the work running, and releases its resources now or when the work ends."""


def wait_for(
    table: OpenTable, run: Run, timeout: float | None, poll_interval: float | None, working: RunningWork | None = None
) -> Run:
    """Waits for the end of the run, and returns its record. `timeout` and `poll_interval` are in seconds.

    Raises TimedOut where the run does not end in time, and CallFailed where AWS refuses a call; the run then continues.
    Any other exception during the wait, such as Ctrl-C, also ends the work.
    """
    try:
        run = _ended(table, run, timeout, poll_interval, working)
    except (TimedOut, CallFailed):
        if working is not None:
            working.leave()
        raise
    except BaseException:
        if working is not None:
            working.stop()
        raise
    if working is not None:
        working.close()
    return run


def _ended(
    table: OpenTable, run: Run, timeout: float | None, poll_interval: float | None, working: RunningWork | None
) -> Run:
    pause = max(POLL if poll_interval is None else poll_interval, LEAST)
    give_up = None if timeout is None else time.monotonic() + timeout
    while run.is_open:
        left = pause if give_up is None else give_up - time.monotonic()
        if left <= 0:
            raise TimedOut(
                f"the run {run.run_id} of {run.service} is {run.status.lower()} after {timeout:g} s, and continues",
                where=table.address,
                remedy="check it with show_runs_in_table_service, or end it with cancel_table_service",
            )
        time.sleep(min(pause, left))
        if working is not None:
            working.settle()
        fail_dead_runs(table.store, table.entry.table_id)
        run = find_run(table.store.table(table.entry.table_id), run.run_id)
    return run
