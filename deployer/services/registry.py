"""Runs one service on one table, by its kind: what commands, jobs and the client call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args

from deployer.errors import InvalidInput, Refused
from deployer.services.clean import Cleaned, clean_table
from deployer.services.cluster import cluster_table
from deployer.services.compact import compact_table
from deployer.services.metasync import metasync_table
from deployer.services.restore import restore_table
from deployer.services.savepoints.autosavepoint import Autosaved, autosavepoint_table
from deployer.state.model.services import ServiceKind

if TYPE_CHECKING:
    from deployer.compute.spark.local import LocalCluster
    from deployer.services.cluster.results import TableClustered
    from deployer.services.compact.results import Compacted
    from deployer.services.metasync.results import Metasynced
    from deployer.services.restore.restoring import Restored
    from deployer.services.rewriting.run import Engine
    from deployer.services.runs.runner import RunRequest
    from deployer.system.progress import OnProgress

    Done = Compacted | TableClustered | Cleaned | Metasynced | Autosaved | Restored


def _without_cluster(function: Callable[..., Done]) -> Callable[..., Done]:
    """For a service that works in this process alone."""

    def runner(*arguments: Any, cluster: object = None, engine: object = None, **more: Any) -> Done:
        return function(*arguments, **more)

    return runner


#: The services that this release runs, each by a function with the arguments of `compact_table`.
RUNNERS: Mapping[str, Callable[..., Done]] = {
    "COMPACT": compact_table,
    "CLUSTER": cluster_table,
    "CLEAN": _without_cluster(clean_table),
    "METASYNC": _without_cluster(metasync_table),
    "AUTOSAVEPOINT": _without_cluster(autosavepoint_table),
    "RESTORE": _without_cluster(restore_table),
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
) -> Done:
    """Runs `service` on `table` of the instance at `root` as a run, and gives what came of it (see `compact_table`).

    Raises InvalidInput for what is no service, Refused for one that this release does not run.
    """
    return RUNNERS[runnable(service)](
        root, table, options, cluster=cluster, engine=engine, on_progress=on_progress, asked=asked
    )


def runnable(service: str) -> ServiceKind:
    """The kind of that name, in any case. Raises InvalidInput and Refused as `run_service` does."""
    kind: ServiceKind | None = next((each for each in get_args(ServiceKind) if each == service.upper()), None)
    if kind is None:
        raise InvalidInput(f"{service!r} is no service", remedy=f"use one of {', '.join(get_args(ServiceKind))}")
    if kind not in RUNNERS:
        raise Refused(f"this release does not run {kind}", remedy=f"it runs {', '.join(RUNNERS)}")
    return kind
