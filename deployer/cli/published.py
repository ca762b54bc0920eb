"""What `up` leaves in the lake for programs that know only its root: where its clusters on AWS are."""

from __future__ import annotations

from deployer.cli.output import note
from deployer.cli.stack_state import stack_outputs
from deployer.cli.workspace import Workspace
from deployer.compute.job_code import REMOTE_KINDS
from deployer.compute.published_clusters import publish_clusters
from deployer.engine import Engine
from deployer.errors import DeployerError
from deployer.specs.model import Lake


def publish_applied(workspace: Workspace, lake: Lake, engine: Engine) -> None:
    """Publishes the clusters on AWS as the stack has them now. What is applied stays applied if that fails."""
    if not any(each.kind in REMOTE_KINDS for each in lake.instance.clusters):
        return
    try:
        publish_clusters(
            workspace.root(lake), stack_outputs(workspace, engine), workspace.values.get("target_hosts", "")
        )
    except DeployerError as error:
        note(f"programs cannot find the clusters of the lake: {error}")
