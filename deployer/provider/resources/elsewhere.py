"""The place where a provider runs the long work on a table: the instance's cluster on AWS, Spark on this machine, or
this process.

Modules are imported only when there is such work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from deployer.live.reader import live_instance
from deployer.platform.system.progress import OnProgress
from deployer.provider.resources.run_context import Stores
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.state.store import StateStore

if TYPE_CHECKING:
    from deployer.compute.running.table_jobs import TableCluster
    from deployer.tables.admin.tables import RewriteElsewhere
    from deployer.tables.layout.indexes.parts import BuildPlan, PlanBuild

#: returns the cluster; the work and the table's address are for an error message
Connect = Callable[[str, str], "TableCluster"]


def rewrites_elsewhere(stores: Stores, store: StateStore, root: str) -> RewriteElsewhere | None:
    """Returns a function that rewrites tables on the instance's cluster on AWS; None where this machine does it."""
    connect = _cluster(stores, store, root)
    return None if connect is None else partial(_rewrite, connect)


def plans_of_builds(stores: Stores, store: StateStore, root: str, address: str) -> PlanBuild:
    """Returns a function that plans builds of the table's indexes: those of a large table on a cluster, or with
    Spark."""

    def plan(location: str, rows: int) -> BuildPlan:
        from deployer.runs.rewriting import index_builds

        if rows > index_builds.SMALL_ROWS and (connect := _cluster(stores, store, root)) is not None:
            from deployer.compute.running.remote_index import plan_on

            return plan_on(connect("an index of the table is to be built", address))
        return index_builds.plans_by_size(store.instance)(location, rows)

    return plan


def _cluster(stores: Stores, store: StateStore, root: str) -> Connect | None:
    """Returns a function that connects to the instance's cluster on AWS; None where it has none, or the run's plan
    chooses this machine.

    A run without a plan, such as a plain `pulumi up`, uses the cluster that `deployer up` published, and is refused
    where there is none: only a plan can choose this machine.
    """
    if stores.deletions is not None and not stores.outputs:
        return None
    from deployer.compute.schedules.schedules import default_cluster

    instance = live_instance(store.instance())
    if instance is None or default_cluster(instance.clusters) is None:
        return None
    from deployer.compute.running.table_jobs import cluster_of, connected

    if cluster := cluster_of(instance, stores.outputs):
        found = connected(instance, cluster, stores.outputs)
        return lambda _work, _where: found
    return None if stores.deletions is not None else partial(_published, root, instance)


def _published(root: str, instance: InstanceSpec, work: str, where: str) -> TableCluster:
    from deployer.compute.running.table_jobs import published

    found = published(root, instance, work, where)
    if found is None:
        raise AssertionError("the instance declares a cluster")
    return found


def _rewrite(
    connect: Connect, store: StateStore, root: str, table_id: str, spec: TableSpec, on_progress: OnProgress
) -> None:
    from deployer.compute.running.remote_rewrite import rewrite_on

    rewrite_on(connect("the table is to be rewritten", spec.address), store, root, table_id, spec, on_progress)
