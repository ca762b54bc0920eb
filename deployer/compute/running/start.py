"""Starts a job on a cluster. The start is repeated while the job's new role is not yet known everywhere in AWS."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from deployer.compute.jobs.cluster import RemoteCluster, RemoteJob
from deployer.compute.jobs.status import StartedJob, remember
from deployer.compute.running.follow import TooEarly
from deployer.platform.system.clock import Clock

TOO_EARLY_ATTEMPTS = 3  #: most starts of a run that fails because its new role is not yet known everywhere in AWS
TOO_EARLY_PAUSE = 10.0  #: seconds before such a run is started again

T = TypeVar("T")


def start_job(cluster: RemoteCluster, root: str, job: RemoteJob, attempt: int = 1) -> tuple[StartedJob, int]:
    """Starts the job, or finds its run that is in progress, and stores the run below the root.

    Returns the run and the number of its attempt. Raises CallFailed when AWS refuses a request.
    """
    run = cluster.start(job, attempt)
    started = StartedJob(job.job_id, job.program, job.title, cluster.name, run.run_id, run.key)
    remember(root, started)
    return started, run.attempt


def run_job(
    cluster: RemoteCluster,
    root: str,
    job: RemoteJob,
    follow: Callable[[StartedJob], T],
    *,
    clock: Clock,
    on_again: Callable[[], None] = lambda: None,
    attempt: int = 1,
) -> T:
    """Starts the job with the number `attempt`, or finds its run, and returns the result of `follow`.

    A run for which `follow` raises TooEarly is started again, after a call of `on_again`.
    """
    for left in reversed(range(TOO_EARLY_ATTEMPTS)):
        started, attempt = start_job(cluster, root, job, attempt)
        try:
            return follow(started)
        except TooEarly:
            if not left:
                raise
            on_again()
            clock.sleep(TOO_EARLY_PAUSE)
            attempt += 1
    raise AssertionError  # the last attempt returns or raises
