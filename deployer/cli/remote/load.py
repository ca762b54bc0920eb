"""`deployer ingest --cluster` for a cluster on AWS."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from deployer.app.workspace import Workspace
from deployer.cli.console.output import note, print_json
from deployer.cli.remote.run import run_on
from deployer.cli.remote.uploads import refuse_own_files, remove_uploads, upload_files
from deployer.cli.summaries.load import print_result, result_from
from deployer.compute.jobs.cluster import RemoteJob
from deployer.errors import InvalidInput
from deployer.specs.model import Cluster, Lake
from deployer.state import open_store
from deployer.tables.ingest.attempt import done_before
from deployer.tables.ingest.files.source_files import is_on_s3
from deployer.tables.ingest.request import IngestRequest
from deployer.tables.open_table import find_entry
from spark_jobs.ingest import arguments_of

PROGRAM = "ingest"


def ingest_on(
    cluster: Cluster,
    workspace: Workspace,
    lake: Lake,
    table: str,
    request: IngestRequest,
    *,
    as_json: bool,
    detach: bool,
    upload: bool,
) -> int:
    """Loads on the cluster, and shows the result like a load on this machine."""
    refuse_own_files(request.paths, upload=upload)
    _refuse_own_bad_rows(request)
    root = workspace.root(lake)
    with closing(open_store(root)) as store:  # problems of the table are reported before the cluster causes costs
        entry = find_entry(store.instance().tables.values(), table)
        done_before(store, root, entry, request)
        name = entry.full_name
    job_id = request.job_id or uuid.uuid4().hex
    paths = request.paths
    if upload:
        paths = upload_files(root, job_id, paths, request.format, as_json=as_json)
    arguments = arguments_of(root, name, replace(request, job_id=job_id, paths=paths))
    tags = {"deployer:instance": lake.instance.name, "deployer:table": name}
    job = RemoteJob(PROGRAM, job_id, f"ingest {name}", arguments, tags)
    result = run_on(cluster, workspace, lake, job, as_json=as_json, detach=detach)
    if result is not None:
        show(root, job_id, result, as_json=as_json)
    return 0


def show(root: str, job_id: str, result: Mapping[str, Any], *, as_json: bool) -> None:
    """Shows the result of a load on a cluster, and removes the files that were uploaded for it."""
    if as_json:
        print_json(result)
    else:
        print_result(result_from(result), "the file that --bad-rows names")
        for text in result.get("notes", ()):
            note(text)
        for due in result.get("services", ()):
            note(f"{due['service']} was due ({due['why']}): {due['status'] or due['failure']}")
    remove_uploads(root, job_id)


def _refuse_own_bad_rows(request: IngestRequest) -> None:
    """Raises InvalidInput where bad rows would be written to this machine, because a cluster writes to S3."""
    if request.bad_rows is not None and not is_on_s3(str(request.bad_rows)):
        raise InvalidInput(
            "a cluster on AWS cannot write files of this machine",
            where=str(request.bad_rows),
            remedy="give --bad-rows an s3:// address below the lake's root",
        )
