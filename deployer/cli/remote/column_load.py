"""`deployer column load --cluster` for a cluster on AWS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deployer.app.workspace import Workspace
from deployer.cli.console.output import print_json
from deployer.cli.remote.run import run_on
from deployer.cli.remote.uploads import refuse_own_files, remove_uploads, upload_files
from deployer.cli.summaries.column_load import print_load, result_from
from deployer.columns.load.request import LoadRequest
from deployer.compute.jobs.cluster import RemoteJob
from deployer.specs.model import Cluster, Lake
from deployer.tables.ingest.files.model import Format
from spark_jobs.columns import arguments_of

PROGRAM = "columns"

_FORMATS = {"parquet": Format.PARQUET, "lance": Format.LANCE, "ipc": Format.ARROW, None: None}


def load_on(
    cluster: Cluster,
    workspace: Workspace,
    lake: Lake,
    table: str,
    request: LoadRequest,
    job_id: str,
    *,
    as_json: bool,
    detach: bool,
    upload: bool,
) -> int:
    """Loads columns of the table of that name on the cluster, and shows the result like a load on this machine."""
    refuse_own_files(request.source, upload=upload)
    root = workspace.root(lake)
    if upload:
        paths = upload_files(root, job_id, request.source, _FORMATS[request.source_format], as_json=as_json)
        request = replace(request, source=paths)
    tags = {"deployer:instance": lake.instance.name, "deployer:table": table}
    job = RemoteJob(PROGRAM, job_id, f"load columns of {table}", arguments_of(root, table, request, job_id), tags)
    result = run_on(cluster, workspace, lake, job, as_json=as_json, detach=detach)
    if result is not None:
        show(root, job_id, result, as_json=as_json)
    return 0


def show(root: str, job_id: str, result: Mapping[str, Any], *, as_json: bool) -> None:
    """Shows the result of a load on a cluster, and removes the files that were uploaded for it."""
    if as_json:
        print_json(result)
    else:
        print_load(str(result["table"]), result_from(result))
    remove_uploads(root, job_id)
