"""`deployer service run --cluster` for a cluster on AWS."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from deployer.app.workspace import Workspace
from deployer.cli.console.output import print_json
from deployer.cli.remote.run import run_on
from deployer.cli.summaries.service_run import print_done
from deployer.errors import Interrupted
from deployer.platform.files.dataclass_json import from_asdict
from deployer.runs.remote import service_job
from deployer.services.kinds.backfill.on_cluster import require_runnable
from deployer.services.registry import SERVICES
from deployer.specs.model import Cluster, Lake
from deployer.state import open_store
from deployer.state.model.times import as_document
from deployer.tables.open_table import find_entry, read_entry


@dataclass(frozen=True, slots=True)
class RemoteRunRequest:
    """A run of a service on a table. `job_id` names it; a run with a known id is followed and not started again."""

    table: str
    service: str
    options: Mapping[str, Any] | None
    engine: str
    job_id: str | None = None


def run_service_on(
    cluster: Cluster, workspace: Workspace, lake: Lake, request: RemoteRunRequest, *, as_json: bool, detach: bool
) -> int:
    """Runs the service on the cluster, and shows the outcome like a run on this machine."""
    root = workspace.root(lake)
    with closing(open_store(root)) as store:  # problems of the table are reported before the cluster causes costs
        table = read_entry(store, root, find_entry(store.instance().tables.values(), request.table))
        name = table.entry.full_name
        if request.service == "BACKFILL":
            require_runnable(table, cluster, request.options, workspace.values)
    job = service_job(
        root,
        lake.instance.name,
        name,
        request.service,
        cluster=cluster.name,
        options=request.options,
        engine=request.engine,
        job_id=request.job_id,
    )
    result = run_on(cluster, workspace, lake, job, as_json=as_json, detach=detach)
    return 0 if result is None else show(result, as_json=as_json)


def show(result: Mapping[str, Any], *, as_json: bool) -> int:
    """Prints the outcome of a run on a cluster; returns the exit code."""
    name: Any = result.get("service")
    kind = SERVICES[name].result() if name in SERVICES else None
    if kind is None:  # the results of scheduled runs lack it
        print_json(result)
    elif as_json:
        print_json({"service": result["service"], **as_document(from_asdict(kind, result, skip_unknown=True))})
    else:
        print_done(from_asdict(kind, result, skip_unknown=True))
    return Interrupted.exit_code if result["status"] == "CANCELLED" else 0
