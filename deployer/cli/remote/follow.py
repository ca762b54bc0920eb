"""`deployer follow`: follows a job on a cluster until it ends."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName


def follow(
    job: Annotated[str, typer.Argument(help="The job's id, which the command that started it printed.")],
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Follow a job that runs on a cluster on AWS, from any machine. Ctrl-C asks whether to cancel it."""
    from deployer.app.stack.engine import engine_for
    from deployer.app.stack.state import stack_outputs
    from deployer.app.workspace import open_workspace
    from deployer.cli.console.output import print_json
    from deployer.cli.remote import column_backfill as backfill_remote
    from deployer.cli.remote import column_load as columns_remote
    from deployer.cli.remote import load as ingest_remote
    from deployer.cli.remote import service as service_remote
    from deployer.cli.remote.run import follow_command, follow_run
    from deployer.compute.clusters import remote_cluster
    from deployer.compute.jobs.status import remembered
    from deployer.compute.running.connect import connect
    from deployer.errors import NotFound
    from deployer.runs.remote import PROGRAM as SERVICE_PROGRAM

    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    root, instance = workspace.root(lake), lake.instance
    started = remembered(root, job)
    if started is None:
        raise NotFound(f"no job {job} was started on a cluster", where=root, remedy="check the id, and the stack")
    cluster = remote_cluster(instance.clusters, started.cluster, instance.address)
    if cluster is None:
        raise NotFound(
            f"the cluster {started.cluster}, on which job {job} was started, is of kind local now",
            where=instance.address,
            remedy=f"find {started.run_id} with AWS's own tools",
        )
    there = connect(cluster, stack_outputs(workspace, engine_for(workspace, lake)), f"stack {stack}")
    result = follow_run(there, root, started, follow_command(job, stack), as_json=as_json)
    if started.program == ingest_remote.PROGRAM:
        ingest_remote.show(root, job, result, as_json=as_json)
        return 0
    if started.program == columns_remote.PROGRAM:
        columns_remote.show(root, job, result, as_json=as_json)
        return 0
    if started.program == backfill_remote.PROGRAM:
        backfill_remote.show(result, as_json=as_json)
        return 0
    if started.program == SERVICE_PROGRAM:
        return service_remote.show(result, as_json=as_json)
    print_json(result)
    return 0
