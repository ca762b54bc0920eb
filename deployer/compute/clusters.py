"""The choice of the declared cluster that a job runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployer.compute.spark.local import LocalCluster
from deployer.errors import InvalidInput, NotFound, Refused
from deployer.live.reader import live_instance
from deployer.specs.model import Cluster
from deployer.state.model.entities import InstanceState

DEFAULT = "default"  #: the name of the cluster that is meant where several are declared and none is named


def local_cluster(clusters: Sequence[Cluster], name: str | None, where: str) -> LocalCluster:
    """Returns the sizes of the cluster `name`, else of the only one of kind `local`, else of the one that is called
    `default`.

    Where no cluster is declared at all, one of default sizes. Raises NotFound for a name that is not declared, Refused
    for clusters of other kinds, InvalidInput where several could be meant.
    """
    if name is not None:
        return _sizes(_named(clusters, name, where), where)
    local = [each for each in clusters if each.kind == "local"]
    if not clusters:
        return LocalCluster()
    if not local:
        names = ", ".join(f"{each.name} ({each.kind})" for each in clusters)
        raise Refused(
            f"no cluster of kind local is declared, and none of {names} is used unless you name it",
            where=where,
            remedy=f"give `--cluster {clusters[0].name}`, or declare one of kind local too",
        )
    chosen = local_default(clusters)
    if chosen is None:
        raise InvalidInput(
            f"the clusters {', '.join(each.name for each in local)} are declared, and none is called {DEFAULT}",
            where=where,
            remedy=f"call one of them {DEFAULT}, or choose one with `--cluster NAME`",
        )
    return _sizes(chosen, where)


def local_default(clusters: Sequence[Cluster]) -> Cluster | None:
    """Returns the only cluster of kind `local`, or of several the one that is called `default`; None without one."""
    local = [each for each in clusters if each.kind == "local"]
    return local[0] if len(local) == 1 else next((each for each in local if each.name == DEFAULT), None)


def declared_cluster(instance: InstanceState, where: str) -> LocalCluster:
    """Returns the sizes of the local cluster that the instance was last applied with; raises as `local_cluster`."""
    live = live_instance(instance)
    return local_cluster(live.clusters if live is not None else (), None, live.address if live is not None else where)


def remote_cluster(clusters: Sequence[Cluster], name: str | None, where: str) -> Cluster | None:
    """Returns the cluster `name` when it is not this machine; None when it is, or none is named. Raises NotFound."""
    found = None if name is None else _named(clusters, name, where)
    return None if found is None or found.kind == "local" else found


def _named(clusters: Sequence[Cluster], name: str, where: str) -> Cluster:
    found = next((each for each in clusters if each.name == name), None)
    if found is None:
        names = ", ".join(each.name for each in clusters) or "none"
        raise NotFound(f"no cluster {name!r} is declared", where=where, remedy=f"there are: {names}")
    return found


def _sizes(cluster: Cluster, where: str) -> LocalCluster:
    if cluster.kind != "local":
        raise Refused(
            f"cluster {cluster.name} is of kind {cluster.kind}, and this is done on this machine",
            where=where,
            remedy="name a cluster of kind local",
        )
    return LocalCluster.of(cluster.options)


#: The most workers of an application whose `max_workers` is not declared, and the minutes of a job: ceilings of cost.
MAX_WORKERS, TIMEOUT_MINUTES = 10, 720


def most_workers(options: Mapping[str, Any]) -> int:
    """Returns the most workers of a cluster of kind emr-serverless."""
    return int(options.get("max_workers", max(MAX_WORKERS, options.get("initial_workers", 0))))


def timeout_minutes(options: Mapping[str, Any]) -> int:
    """Returns how many minutes a job of a cluster on AWS may take."""
    return int(options.get("timeout_minutes", TIMEOUT_MINUTES))
