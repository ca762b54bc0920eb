"""Rewrites a table by a job on a cluster on AWS, for an `up` that waits for it.

The job is named after the table, its dataset and what that is to become, so every `up` that wants the same means the
same job: it follows the one that runs, and starts one that ended too early again, which continues with the ranges that
are written. An `up` that is interrupted asks the job to end. One that is killed leaves it running.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from deployer.compute.jobs.cluster import RemoteCluster, RemoteJob, RunState, RunStatus
from deployer.compute.jobs.status import StartedJob, ask_to_end, read_status, remembered, request, requested
from deployer.compute.running.connect import OUTPUT, connect
from deployer.compute.running.follow import PAUSE, Watcher, follow, run_continues
from deployer.compute.running.start import run_job
from deployer.compute.schedules.schedules import default_cluster
from deployer.errors import Interrupted
from deployer.platform.aws.calls import CallFailed
from deployer.platform.aws.names import LAKE_TAG, lake_id
from deployer.platform.system.clock import Clock
from deployer.platform.system.progress import OnProgress, Progress
from deployer.specs.model import Cluster, InstanceSpec, TableSpec
from deployer.specs.serialized.specs import table_from_json, table_to_json
from deployer.specs.validation.plain_values import mapping, text, texts
from deployer.state.store import StateStore
from deployer.tables.rewrite.rewrite import to_copy

PROGRAM = "rewrite"
TO_END = 60.0  #: seconds that a job which was asked to end has for it, before its run is cancelled
SLICE = 0.5  #: seconds between two looks whether `up` is to stop
_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """What a job is to do: give the table what `spec` says. `over` are earlier attempts, which no longer write."""

    table_id: str
    spec: TableSpec
    over: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RewriteCluster:
    """The cluster on AWS that rewrites tables. `ends_drivers`: a run that was cancelled has no driver any more."""

    cluster: RemoteCluster
    ends_drivers: bool
    instance: str


def cluster_of(instance: InstanceSpec | None, outputs: Mapping[str, Any]) -> Cluster | None:
    """Returns the cluster on AWS that rewrites the instance's tables: the only one, or the one called `default`.

    None where no such cluster is declared, or the stack, by its outputs, has not made it yet.
    """
    cluster = None if instance is None else default_cluster(instance.clusters)
    return cluster if cluster is not None and cluster.name in (outputs.get(OUTPUT) or {}) else None


def connected(instance: InstanceSpec, cluster: Cluster, outputs: Mapping[str, Any]) -> RewriteCluster:
    """Returns the cluster that `cluster_of` found."""
    there = connect(cluster, outputs, f"cluster {cluster.name}")
    return RewriteCluster(there, cluster.kind == "emr-serverless", instance.name)


class _Stopped(Exception):
    """`up` is to stop."""


def rewrite_request(root: str, job_id: str) -> RewriteRequest:
    """Returns what the job of that id is to do. Raises NotFound where nothing says so, InvalidInput for what is not
    valid."""
    document = requested(root, job_id)
    spec = table_from_json(mapping(document, "spec"))
    return RewriteRequest(text(document, "table_id"), spec, frozenset(texts(document, "over")))


def rewrite_on(
    there: RewriteCluster,
    store: StateStore,
    root: str,
    table_id: str,
    spec: TableSpec,
    on_progress: OnProgress,
    clock: Clock | None = None,
) -> None:
    """Rewrites the table on the cluster, as `rewrite_table` does here, and returns once that is done.

    Raises the error that ended the job, and Interrupted where `on_progress` does: the job is asked to end then.
    """
    found = to_copy(store, root, table_id, spec)
    if found is None:
        return
    table, target = found
    job_id = f"rewrite-{table_id}-{table.state.dataset}-{target.fingerprint[:16]}"
    arguments = (f"--root={root}", f"--job-id={job_id}")
    tags = {
        "deployer:instance": there.instance,
        LAKE_TAG: lake_id(root, there.instance),
        "deployer:table": spec.full_name,
    }
    job = RemoteJob(PROGRAM, job_id, f"rewrite {spec.full_name}", arguments, tags)
    attempt, over = _next_attempt(there, root, job)
    request(root, job_id, {"table_id": table_id, "spec": table_to_json(spec), "over": sorted(over)})
    clock = clock or Clock()

    def follow_it(started: StartedJob) -> None:
        _follow(there.cluster, root, started, on_progress, clock)

    run_job(there.cluster, root, job, follow_it, clock=clock, attempt=attempt)


def _next_attempt(there: RewriteCluster, root: str, job: RemoteJob) -> tuple[int, set[str]]:
    """Returns which attempt at the job is to be started or found, and the attempts before it that no longer write."""
    before = remembered(root, job.job_id)
    keys = {job.key(number): number for number in range(1, _ATTEMPTS + 1)}
    if before is None or before.cluster != there.cluster.name or before.key not in keys:
        return 1, set()
    number = keys[before.key]
    over = set(rewrite_request(root, job.job_id).over) if number > 1 else set()
    status = there.cluster.status(before.run_id)
    if not status.state.ended:
        return number, over
    if status.state is RunState.FAILED or there.ends_drivers or read_status(root, before.key).ended:
        over.add(before.key)
    return number + 1, over


def _follow(cluster: RemoteCluster, root: str, started: StartedJob, on_progress: OnProgress, clock: Clock) -> None:
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
        follow(cluster, root, started.run_id, started.key, watcher, replace(clock, sleep=sleep), PAUSE)
    except (_Stopped, KeyboardInterrupt):
        _end(cluster, root, started, clock)
        raise Interrupted(
            f"stopped, and {run} was asked to end; the table is as it was",
            where=started.title,
            remedy="the next `deployer up` resumes with the rows that are left",
        ) from None
    except CallFailed as failure:
        raise run_continues(failure, run, "the next `deployer up` follows it") from failure


def _end(cluster: RemoteCluster, root: str, started: StartedJob, clock: Clock) -> None:
    """Asks the job to end, which keeps what it wrote. Its run is cancelled where it did not begin, or does not end."""
    ask_to_end(root, started.key)
    deadline = clock.monotonic() + TO_END
    while cluster.status(started.run_id).state is RunState.RUNNING and clock.monotonic() < deadline:
        clock.sleep(SLICE)
    if not cluster.status(started.run_id).state.ended:
        cluster.cancel(started.run_id)


def _unread(_: str) -> None:
    """Drops the lines of the job's log: AWS's own tools show them, and the result has what matters."""
