"""Runs jobs on a cluster on AWS that change a table for a waiting caller: rewrites and builds of indexes.

A job's id consists of the table and the change. Therefore all callers that request the same change share one job: a
caller follows the running job, or starts it again if it ended too early. A caller that is interrupted asks the job to
end. The job of a killed caller continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from deployer.compute.jobs.cluster import RemoteCluster, RemoteJob, RunState, RunStatus
from deployer.compute.jobs.status import StartedJob, ask_to_end, read_status, remembered, request, requested
from deployer.compute.running.connect import OUTPUT, connect
from deployer.compute.running.follow import PAUSE, Watcher, follow, run_continues
from deployer.compute.running.published_clusters import published_outputs
from deployer.compute.running.start import run_job
from deployer.compute.schedules.schedules import default_cluster
from deployer.errors import Interrupted, Refused
from deployer.platform.aws.calls import CallFailed
from deployer.platform.aws.names import LAKE_TAG, lake_id
from deployer.platform.system.clock import Clock
from deployer.platform.system.progress import OnProgress, Progress
from deployer.specs.model import Cluster, InstanceSpec
from deployer.specs.validation.plain_values import texts

TO_END = 60.0  #: seconds that a job may take to end after it was asked to; then its run is cancelled
SLICE = 0.5  #: seconds between two checks whether the caller has to stop
_ATTEMPTS = 10_000


@dataclass(frozen=True, slots=True)
class TableCluster:
    """The cluster on AWS that changes tables. `ends_drivers` states that a cancelled run no longer has a driver."""

    cluster: RemoteCluster
    ends_drivers: bool
    instance: str


@dataclass(frozen=True, slots=True)
class TableJob:
    """A job that changes a table. `table` is the table's full name.

    `document` is the job's task. It is stored below the root, because it may be too long for a command line. `resumed`
    states, for error messages, how an interrupted job is resumed, and `followed` how a running job is followed.
    """

    program: str
    job_id: str
    table: str
    title: str
    document: Mapping[str, Any]
    resumed: str
    followed: str


def cluster_of(instance: InstanceSpec | None, outputs: Mapping[str, Any]) -> Cluster | None:
    """Returns the cluster on AWS that changes the instance's tables: the only one, or the one called `default`.

    Returns None where no such cluster is declared, or the stack's outputs do not have it yet.
    """
    cluster = None if instance is None else default_cluster(instance.clusters)
    return cluster if cluster is not None and cluster.name in (outputs.get(OUTPUT) or {}) else None


def connected(instance: InstanceSpec, cluster: Cluster, outputs: Mapping[str, Any]) -> TableCluster:
    """Returns the object that runs jobs on the cluster that `cluster_of` found."""
    there = connect(cluster, outputs, f"cluster {cluster.name}")
    return TableCluster(there, cluster.kind == "emr-serverless", instance.name)


def published(root: str, instance: InstanceSpec, work: str, where: str) -> TableCluster | None:
    """Returns the cluster that `deployer up` published, for callers that have only the root; None where none is
    declared.

    Raises Refused where a cluster is declared but not published. `work` begins the error's message.
    """
    declared = default_cluster(instance.clusters)
    if declared is None:
        return None
    outputs = published_outputs(root) or {}
    cluster = cluster_of(instance, outputs)
    if cluster is None:
        raise Refused(
            f"{work} on cluster {declared.name}, and the address of that cluster is not published below the root",
            where=where,
            remedy="run `deployer up`, which publishes it",
        )
    return connected(instance, cluster, outputs)


def earlier_attempts(document: Mapping[str, Any]) -> frozenset[str]:
    """Returns the keys of a job's attempts that no longer write, from the document of its request."""
    return frozenset(texts(document, "over"))


def run_table_job(
    there: TableCluster, root: str, wanted: TableJob, on_progress: OnProgress, clock: Clock | None = None
) -> Mapping[str, Any]:
    """Runs the job on the cluster, waits for its end, and returns its result.

    Raises the error that ended the job. Raises Interrupted where `on_progress` raises it; the job is then asked to end.
    """
    tags = {
        "deployer:instance": there.instance,
        LAKE_TAG: lake_id(root, there.instance),
        "deployer:table": wanted.table,
    }
    arguments = (f"--root={root}", f"--job-id={wanted.job_id}")
    job = RemoteJob(wanted.program, wanted.job_id, wanted.title, arguments, tags)
    attempt, over = _next_attempt(there, root, job)
    request(root, job.job_id, {**wanted.document, "over": sorted(over)})
    clock = clock or Clock()

    def follow_it(started: StartedJob) -> Mapping[str, Any]:
        return _follow(there.cluster, root, started, wanted, on_progress, clock)

    return run_job(there.cluster, root, job, follow_it, clock=clock, attempt=attempt)


class _Stopped(Exception):
    """The error that makes the caller stop following the job."""


def _next_attempt(there: TableCluster, root: str, job: RemoteJob) -> tuple[int, set[str]]:
    """Returns the number of the attempt to start or find, and the keys of earlier attempts that no longer write."""
    before = remembered(root, job.job_id)
    if before is None or before.cluster != there.cluster.name:
        return 1, set()
    number = next((number for number in range(1, _ATTEMPTS + 1) if job.key(number) == before.key), 0)
    if not number:
        return 1, set()
    over = set(earlier_attempts(requested(root, job.job_id))) if number > 1 else set()
    status = there.cluster.status(before.run_id)
    if not status.state.ended:
        return number, over
    if status.state is RunState.FAILED or there.ends_drivers or read_status(root, before.key).ended:
        over.add(before.key)
    return number + 1, over


def _follow(
    cluster: RemoteCluster, root: str, started: StartedJob, wanted: TableJob, on_progress: OnProgress, clock: Clock
) -> Mapping[str, Any]:
    run = cluster.describe_run(started.run_id)
    now = Progress(f"{run}: starting", 0, None, "")

    def look() -> None:
        try:
            on_progress(now)
        except Interrupted as stop:
            raise _Stopped from stop

    def report(progress: Progress) -> None:
        nonlocal now
        now = progress
        look()

    def on_status(status: RunStatus) -> None:
        report(Progress(f"{run}: {status.state} ({status.reported})", 0, None, ""))

    def sleep(seconds: float) -> None:
        until = clock.monotonic() + seconds
        while (left := until - clock.monotonic()) > 0:
            clock.sleep(min(SLICE, left))
            look()

    def on_job(progress: Progress) -> None:
        report(replace(progress, doing=f"{progress.doing} on {cluster.name}"))

    try:
        watcher = Watcher(on_status, on_job, _unread)
        return follow(cluster, root, started.run_id, started.key, watcher, replace(clock, sleep=sleep), PAUSE)
    except (_Stopped, KeyboardInterrupt):
        _end(cluster, root, started, clock)
        raise Interrupted(
            f"stopped, and {run} was asked to end; the table is unchanged",
            where=started.title,
            remedy=wanted.resumed,
        ) from None
    except CallFailed as failure:
        raise run_continues(failure, run, wanted.followed) from failure


def _end(cluster: RemoteCluster, root: str, started: StartedJob, clock: Clock) -> None:
    """Asks the job to end; the job keeps the files that it wrote. Cancels its run where the job has not begun, or does
    not end within `TO_END` seconds."""
    ask_to_end(root, started.key)
    deadline = clock.monotonic() + TO_END
    while cluster.status(started.run_id).state is RunState.RUNNING and clock.monotonic() < deadline:
        clock.sleep(SLICE)
    if not cluster.status(started.run_id).state.ended:
        cluster.cancel(started.run_id)


def _unread(_: str) -> None:
    """Ignores the lines of the job's log. AWS's own tools show them, and the result has the relevant data."""
