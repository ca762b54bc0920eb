"""What `up` leaves in the lake for programs that know only its root: where its clusters on AWS are, and their code."""

from __future__ import annotations

import json

from deployer.app.reporter import Reporter
from deployer.app.stack.state import stack_outputs
from deployer.app.workspace import Workspace
from deployer.compute.jobs.code import REMOTE_KINDS
from deployer.compute.old_job_code import DAYS, remove_old_code
from deployer.compute.running.published_clusters import publish_clusters
from deployer.engine import Engine
from deployer.errors import DeployerError
from deployer.specs.model import Lake
from deployer.text.formatting import count, size


def publish_applied(workspace: Workspace, lake: Lake, engine: Engine, reporter: Reporter) -> None:
    """Publishes the clusters on AWS as the stack has them now. What is applied stays applied if that fails."""
    if not any(each.kind in REMOTE_KINDS for each in lake.instance.clusters):
        return
    try:
        publish_clusters(
            workspace.root(lake), stack_outputs(workspace, engine), workspace.values.get("target_hosts", "")
        )
    except DeployerError as error:
        reporter.note(f"programs cannot find the clusters of the lake: {error}")


def remove_unused_code(workspace: Workspace, lake: Lake, engine: Engine, reporter: Reporter) -> None:
    """Removes code of jobs that the stack has not named for long. What is applied stays applied if that fails."""
    root = workspace.root(lake)
    if not root.startswith("s3://"):
        return
    try:
        removed = remove_old_code(root, lambda: json.dumps(dict(engine.export(workspace.stack_ref))))
    except DeployerError as error:
        reporter.note(f"old code of jobs was not looked for: {error}")
        return
    if removed.objects:
        amount = f"{count(removed.objects, 'object')}, {size(removed.bytes)}"
        reporter.note(f"removed code of jobs that nothing has named for {DAYS} days: {amount}")
