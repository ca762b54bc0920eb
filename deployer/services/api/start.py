"""Queues a run and starts it at its service's place: in a process of this machine, or on a cluster on AWS."""

from __future__ import annotations

from deployer.compute.clusters import remote_cluster
from deployer.compute.running.published_clusters import published_cluster
from deployer.errors import DeployerError
from deployer.live.reader import live_instance
from deployer.runs.processes import LocalRun, start_local_run
from deployer.runs.records import end_queued_run, fail_dead_runs
from deployer.runs.remote import RemoteRun, service_job
from deployer.runs.wait import RunningWork
from deployer.services.api import management
from deployer.services.kinds.backfill.on_cluster import require_runnable
from deployer.specs.model import Cluster
from deployer.state.model.services import Run, ServiceKind
from deployer.tables.open_table import OpenTable


def start_on_demand(table: OpenTable, kind: ServiceKind, *, author: str | None = None) -> tuple[Run, RunningWork]:
    """Queues a run of the service, attached or not, and starts it. Returns the run, and its place.

    Raises the errors of `management.queue`, and NotFound for a cluster that does not exist, before anything is queued.
    A run that cannot be started has FAILED, and the error is raised.
    """
    found = _cluster_of(table, kind)
    cluster = None if found is None else published_cluster(table.root, found)
    if found is not None and kind == "BACKFILL":
        require_runnable(table, found)
    fail_dead_runs(table.store, table.entry.table_id)
    run = management.queue(table.refreshed(), kind, author=author)
    if cluster is None:
        return run, _started_here(table, run)
    instance = live_instance(table.store.instance())
    job = service_job(
        table.root,
        instance.name if instance else "",
        table.entry.full_name,
        kind,
        cluster=cluster.name,
        job_id=run.run_id,
        run_id=run.run_id,
    )
    remote = RemoteRun(table.store, table.root, table.entry, run, cluster, job)
    remote.start()
    return run, remote


def _cluster_of(table: OpenTable, kind: ServiceKind) -> Cluster | None:
    """Returns the cluster on AWS that the service names; None for this machine. Raises NotFound for one not
    declared."""
    service, instance = table.state.services.get(kind), live_instance(table.store.instance())
    if service is None or instance is None:
        return None
    return remote_cluster(instance.clusters, service.cluster, table.address)


def _started_here(table: OpenTable, run: Run) -> LocalRun:
    try:
        return start_local_run(table.store, table.root, table.entry, run)
    except BaseException as error:
        reason = f"its process could not be started: {error or type(error).__name__}"
        end_queued_run(table.store, table.entry.table_id, run.run_id, "FAILED", reason=reason)
        if not isinstance(error, OSError):
            raise
        raise DeployerError(reason, where=table.address, remedy="free memory or processes, and run it again") from error
