"""All table services of this release by their kinds. Commands, jobs, triggers and the client look them up here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from deployer.errors import DeployerError, InvalidInput
from deployer.services.definition import ServiceDefinition
from deployer.services.kinds.backfill import BACKFILL
from deployer.services.kinds.clean import CLEAN
from deployer.services.kinds.cluster import CLUSTER
from deployer.services.kinds.compact import COMPACT
from deployer.services.kinds.expire import EXPIRE
from deployer.services.kinds.ingest import INGEST
from deployer.services.kinds.metasync import METASYNC
from deployer.services.kinds.refresh import REFRESH
from deployer.services.restore import RESTORE
from deployer.services.savepoints.autosavepoint import AUTOSAVEPOINT
from deployer.specs.yaml.suggestions import nearest
from deployer.state.model.services import ServiceKind

if TYPE_CHECKING:
    from deployer.compute.spark.local import LocalCluster
    from deployer.platform.system.progress import OnProgress
    from deployer.runs.rewriting.run import Engine
    from deployer.runs.runner import RunRequest
    from deployer.services.kinds.backfill.results import BackfillResult
    from deployer.services.kinds.clean import CleanResult
    from deployer.services.kinds.cluster.results import ClusterResult
    from deployer.services.kinds.compact.results import CompactResult
    from deployer.services.kinds.expire.results import ExpireResult
    from deployer.services.kinds.ingest.results import IngestFilesResult
    from deployer.services.kinds.metasync.results import MetasyncResult
    from deployer.services.restore.restoring import Restored
    from deployer.services.savepoints.autosavepoint import AutosavepointResult
    from deployer.tables.open_table import ReadTable
    from deployer.views.refresh.results import RefreshJobResult

    ServiceResult = (
        CompactResult
        | ClusterResult
        | CleanResult
        | MetasyncResult
        | IngestFilesResult
        | ExpireResult
        | BackfillResult
        | RefreshJobResult
        | AutosavepointResult
        | Restored
    )

SERVICES: Mapping[ServiceKind, ServiceDefinition[Any, Any]] = {
    each.kind: each
    for each in (COMPACT, CLUSTER, CLEAN, METASYNC, INGEST, EXPIRE, BACKFILL, REFRESH, AUTOSAVEPOINT, RESTORE)
}


def run_service(
    root: str,
    table: str,
    service: str,
    options: Mapping[str, Any] | None = None,
    *,
    cluster: Callable[[], LocalCluster] | None = None,
    engine: Engine = "auto",
    on_progress: OnProgress | None = None,
    asked: RunRequest | None = None,
) -> ServiceResult:
    """Runs a service on `table` of the instance at `root` and returns its result.

    `service` is its kind, in upper or lower case. Raises InvalidInput for an unknown kind, and the same errors as
    `ServiceDefinition.run`.
    """
    done: ServiceResult = SERVICES[runnable(service)].run(
        root, table, options, cluster=cluster, engine=engine, on_progress=on_progress, asked=asked
    )
    return done


def runnable(service: str) -> ServiceKind:
    """Returns the kind with this name, in upper or lower case. Raises InvalidInput for an unknown name."""
    for kind in SERVICES:
        if kind == service.upper():
            return kind
    near = nearest(service, tuple(SERVICES))
    remedy = f"did you mean {near}?" if near else f"use one of {', '.join(SERVICES)}"
    raise InvalidInput(f"{service!r} is not a valid service", remedy=remedy)


def forecast(table: ReadTable, kind: ServiceKind) -> str:
    """Returns a description of what the next run of the table's service would do, or the reason why that is unknown."""
    try:
        return SERVICES[kind].forecast(table)
    except DeployerError as error:
        return f"unknown: {error.what}"
