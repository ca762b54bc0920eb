"""`deployer column backfill --cluster` for a cluster on AWS."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from deployer.app.workspace import Workspace
from deployer.cli.console.output import print_json
from deployer.cli.remote.run import run_on
from deployer.cli.summaries.column_backfill import print_backfill, result_from
from deployer.columns.backfill.request import BackfillRequest
from deployer.compute.jobs.cluster import RemoteJob
from deployer.services.kinds.backfill.on_cluster import require_computable
from deployer.specs.model import Cluster, Lake
from deployer.state import open_store
from deployer.tables.open_table import find_entry, open_entry
from spark_jobs.backfill import arguments_of

if TYPE_CHECKING:
    from deployer.platform.isolation.trusted_functions import TrustedFunctions

PROGRAM = "backfill"


def backfill_on(
    cluster: Cluster,
    workspace: Workspace,
    lake: Lake,
    table: str,
    request: BackfillRequest,
    trusted: TrustedFunctions,
    job_id: str,
    *,
    as_json: bool,
    detach: bool,
) -> int:
    """Computes a column of the table on the cluster, and shows the result like a backfill on this machine. The
    functions that are trusted here run on the cluster; this machine does not import them."""
    root = workspace.root(lake)
    with closing(open_store(root)) as store:  # problems are reported before the cluster causes costs
        opened = open_entry(store, root, find_entry(store.instance().tables.values(), table))
        name = opened.entry.full_name
        if job_id not in opened.state.jobs:
            require_computable(opened, cluster, request.column, trusted)
    tags = {"deployer:instance": lake.instance.name, "deployer:table": name}
    arguments = arguments_of(root, name, request, trusted, job_id, cluster.name)
    job = RemoteJob(PROGRAM, job_id, f"backfill {request.column} of {name}", arguments, tags)
    result = run_on(cluster, workspace, lake, job, as_json=as_json, detach=detach)
    if result is not None:
        show(result, as_json=as_json)
    return 0


def show(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Shows the result of a backfill on a cluster."""
    if as_json:
        print_json(result)
    else:
        print_backfill(str(result["table"]), result_from(result))
