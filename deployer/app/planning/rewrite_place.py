"""Where a run rewrites tables: on the cluster on AWS of their instance, or on this machine."""

from __future__ import annotations

import json
import os

from deployer.app.stack.engine import PlannedEngine
from deployer.app.workspace import Workspace
from deployer.compute.schedules.schedules import default_cluster
from deployer.plan import Plan
from deployer.plan.planning.rewrite_places import rewrites_tables, with_place
from deployer.specs.model import Lake


def with_rewrite_place(workspace: Workspace, lake: Lake, plan: Plan, engine: PlannedEngine) -> Plan:
    """The plan, which says where tables are rewritten. The provider gets the address of a cluster on AWS."""
    if not rewrites_tables(plan, lake):
        return plan
    from deployer.app.stack.state import stack_outputs
    from deployer.compute.jobs.code import OUTPUT as CODE
    from deployer.compute.running.connect import OUTPUT as CLUSTERS
    from deployer.compute.running.remote_rewrite import cluster_of
    from deployer.provider.resources.run_context import OUTPUTS_VARIABLE

    if default_cluster(lake.instance.clusters) is None:
        return plan
    outputs = {key: value for key, value in stack_outputs(workspace, engine()).items() if key in (CLUSTERS, CODE)}
    cluster = cluster_of(lake.instance, outputs)
    if cluster is None:
        return with_place(plan, lake, not_made_yet(lake))
    engine.stores.outputs = outputs
    os.environ[OUTPUTS_VARIABLE] = json.dumps(outputs)
    return with_place(plan, lake, f"on cluster {cluster.name} ({cluster.kind})")


def not_made_yet(lake: Lake) -> str:
    """Where tables are rewritten while the stack has not made the declared cluster, and what makes it first."""
    first = f"`deployer up --target {lake.instance.address}` makes it first"
    return f"on this machine, as the stack has not made the declared cluster yet; {first}"
