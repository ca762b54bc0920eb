"""Follows a run on a cluster to its end: its state, the progress of its job, and the lines that it prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from deployer.compute.jobs.cluster import RemoteCluster, RunState, RunStatus
from deployer.compute.jobs.status import JobStatus, read_status
from deployer.errors import DeployerError, Interrupted, OutcomeUnknown
from deployer.platform.aws.calls import CallFailed, Cause
from deployer.platform.system.clock import Clock
from deployer.platform.system.progress import Progress

PAUSE = 3.0  #: seconds between two requests of the status
PATIENCE = 300.0  #: seconds without an answer from AWS after which following ends; the run continues
LAST_LINES = 15.0  #: seconds to wait for further lines after a run that ended without a stored result or error

#: The causes of failed requests that are temporary.
TEMPORARY = (Cause.THROTTLED, Cause.UNREACHABLE)


@dataclass(frozen=True, slots=True)
class Watcher:
    """The callbacks for a run: for changes of its state, for the progress of its job, and for each line that it
    prints."""

    on_status: Callable[[RunStatus], None]
    on_progress: Callable[[Progress], None]
    on_line: Callable[[str], None]


def run_continues(failure: CallFailed, run: str, remedy: str) -> CallFailed:
    """Returns the error for a failed request about `run`. It states that the run continues; `remedy` states how to
    follow the run."""
    return CallFailed(
        failure.cause,
        failure.aws_message,
        failure.what,
        where=run,
        remedy=f"{failure.remedy}. The run continues; {remedy}",
    )


class TooEarly(DeployerError):
    """The error for a run that failed because a new resource was not yet known everywhere in AWS."""

    kind = "TooEarly"


def follow(
    cluster: RemoteCluster, root: str, run_id: str, key: str, watcher: Watcher, clock: Clock, pause: float = PAUSE
) -> Mapping[str, Any]:
    """Waits for the end of the run, and returns the result of its job. Raises the error that ended the job or the run.

    Raises CallFailed when AWS refuses a request, or gives no answer for `PATIENCE` seconds; the run then continues. The
    run also continues after a KeyboardInterrupt.
    """
    shown: RunStatus | None = None
    looked = clock.monotonic()
    while True:
        try:
            status = cluster.status(run_id)
            if status != shown:
                watcher.on_status(status)
                shown = status
            _show_lines(cluster, run_id, watcher)
            report = _read_status(root, key)
            looked = clock.monotonic()
        except CallFailed as failure:
            if failure.cause not in TEMPORARY or clock.monotonic() - looked > PATIENCE:
                raise
        else:
            if report.progress is not None and not report.ended:
                watcher.on_progress(report.progress)
            if status.state.ended:
                return _ended(cluster, run_id, status, report, watcher, clock, pause)
        clock.sleep(pause)


def _ended(
    cluster: RemoteCluster,
    run_id: str,
    status: RunStatus,
    report: JobStatus,
    watcher: Watcher,
    clock: Clock,
    pause: float,
) -> Mapping[str, Any]:
    run = cluster.describe_run(run_id)
    if report.result is not None:  # the end of the run does not matter once its job has a result
        return report.result
    if report.error is not None:
        raise report.error
    detail = f": {status.detail}" if status.detail else ""
    if status.too_early:
        raise TooEarly(f"the run failed{detail}", where=run, remedy="run `deployer up`, and try again in a minute")
    if status.state is RunState.CANCELLED:
        raise Interrupted(
            f"the run was cancelled{detail}",
            where=run,
            remedy="the table is unchanged, unless the job had committed; run it again with its --job-id, which "
            "adds nothing twice",
        )
    deadline = clock.monotonic() + LAST_LINES
    while clock.monotonic() < deadline:  # CloudWatch has lines only after a delay
        clock.sleep(pause)
        _show_lines(cluster, run_id, watcher)
    if status.state is RunState.SUCCEEDED:
        raise DeployerError(
            "the run succeeded, and its job stored no result: it is of another release, or may not write below "
            "the root",
            where=run,
            remedy="run `deployer up`, which puts the job code of this release there, then the same command again",
        )
    raise DeployerError(
        f"the run failed{detail or ', and AWS gives no reason'}; its job was ended before it could say why",
        where=run,
        remedy="read the lines above and the cluster's sizes; run it again with the same --job-id: nothing is added "
        "twice",
    )


def _read_status(root: str, key: str) -> JobStatus:
    try:
        return read_status(root, key)
    except DeployerError as error:
        cause = Cause.UNREACHABLE if isinstance(error, OutcomeUnknown) else Cause.REFUSED
        raise CallFailed(cause, error.what, error.what, where=error.where, remedy=error.remedy) from error


def _show_lines(cluster: RemoteCluster, run_id: str, watcher: Watcher) -> None:
    """Passes new lines to the watcher. A run whose logs cannot be read is followed without lines."""
    try:
        lines = cluster.new_lines(run_id)
    except CallFailed as failure:
        if failure.cause is Cause.CREDENTIALS:
            raise
        return
    for line in lines:
        watcher.on_line(line)
