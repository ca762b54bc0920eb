"""Chooses the declared cluster on which a job runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deployer.compute.spark.local import LocalCluster
from deployer.errors import InvalidInput, NotFound, Refused
from deployer.live.reader import live_instance
from deployer.specs.model import Cluster
from deployer.state.model.entities import InstanceState

DEFAULT = "default"  #: the name of the cluster that is used where several are declared and a job names none


def local_cluster(clusters: Sequence[Cluster], name: str | None, where: str) -> LocalCluster:
    """Returns the sizes of a cluster of kind `local`: of the cluster `name`, or else of the only local cluster, or else
    of the local cluster that is called `default`.

    Where no cluster is declared at all, it returns default sizes. Raises NotFound for a name that is not declared,
    Refused for clusters of other kinds, and InvalidInput where the choice is not unique. `where` is the place for
    errors.
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
    """Returns the only cluster of kind `local`, or the one of several that is called `default`; None where neither
    exists."""
    local = [each for each in clusters if each.kind == "local"]
    return local[0] if len(local) == 1 else next((each for each in local if each.name == DEFAULT), None)


def declared_cluster(instance: InstanceState, where: str) -> LocalCluster:
    """Returns the sizes of the local cluster that the last `up` of the instance declared. Raises as `local_cluster`
    does."""
    live = live_instance(instance)
    return local_cluster(live.clusters if live is not None else (), None, live.address if live is not None else where)


def remote_cluster(clusters: Sequence[Cluster], name: str | None, where: str) -> Cluster | None:
    """Returns the cluster `name` if it is on AWS; None if it is of kind `local`, or `name` is None. Raises NotFound for
    a name that is not declared."""
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


#: Defaults that limit costs: the most workers of an application, and the most minutes of a job.
MAX_WORKERS, TIMEOUT_MINUTES = 10, 720


def most_workers(options: Mapping[str, Any]) -> int:
    """Returns the largest number of workers of a cluster of kind emr-serverless."""
    return int(options.get("max_workers", max(MAX_WORKERS, options.get("initial_workers", 0))))


def timeout_minutes(options: Mapping[str, Any]) -> int:
    """Returns the largest number of minutes that a job on a cluster on AWS may take."""
    return int(options.get("timeout_minutes", TIMEOUT_MINUTES))
