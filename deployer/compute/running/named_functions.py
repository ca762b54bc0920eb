"""Finds the functions of computed columns and views that jobs on clusters call, and the functions among them that the
stack does not trust."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deployer.compute.jobs.code import REMOTE_KINDS
from deployer.compute.jobs.variables import trusted_on_clusters
from deployer.compute.packaging.project_modules import NamedFunction
from deployer.compute.schedules.schedules import default_cluster
from deployer.specs.model import Cluster, Lake, ServiceSpec, TableSpec
from deployer.specs.types.computed import ComputedByUdf
from deployer.specs.types.types import Column

SERVICE = "BACKFILL"
OF_VIEWS = "REFRESH"


def named_functions(lake: Lake) -> list[NamedFunction]:
    """Returns the project's functions that columns name. A function is `required` if a BACKFILL on a cluster calls
    it."""
    found: dict[str, NamedFunction] = {}
    for table, column, computed in _computed(lake):
        if computed.function:
            continue
        required = _cluster_of(lake, table, column) is not None
        before = found.get(computed.udf)
        if before is None or (required and not before.required):
            where = f"column {column.name} of {table.address}"
            found[computed.udf] = NamedFunction(computed.udf, where, required)
    return list(found.values())


def untrusted_functions(lake: Lake, settings: Mapping[str, str]) -> Iterator[str]:
    """Yields a remark about each function that a BACKFILL or a REFRESH on a cluster calls, but that the stack does not
    trust there.

    Raises InvalidInput for invalid settings.
    """
    trusted = trusted_on_clusters(settings)
    for service, table, what, name, is_packaged, cluster in _called(lake):
        by_author = is_packaged and (trusted.all_packages or trusted.authors)
        if name not in trusted.names and not by_author:
            yield (
                f"{service} of {table.full_name} on cluster {cluster.name} will refuse {what}: the stack "
                f"does not trust {name} there; if you know its code, write `deployer:trusted_functions: "
                f"{','.join(sorted((*trusted.names, name)))}` into the stack's configuration"
            )


def _called(lake: Lake) -> Iterator[tuple[str, TableSpec, str, str, bool, Cluster]]:
    """Yields the functions that services on clusters call. Each item has the service, the table, a text that names the
    function's use, the name or hash of the function, whether it is packaged, and the cluster."""
    for table, column, computed in _computed(lake):
        if (cluster := _cluster_of(lake, table, column)) is not None:
            name = computed.function or computed.udf
            yield SERVICE, table, f"column {column.name}", name, bool(computed.function), cluster
    for table in lake.tables:
        for called, function in sorted(table.view.functions.items()) if table.view is not None else ():
            for service in table.services:
                if service.kind == OF_VIEWS and (cluster := _cluster_of_service(lake, service)) is not None:
                    yield OF_VIEWS, table, f"the function {called}", function.source, True, cluster


def _computed(lake: Lake) -> Iterator[tuple[TableSpec, Column, ComputedByUdf]]:
    for table in lake.tables:
        for column in table.columns:
            if isinstance(column.computed, ComputedByUdf):
                yield table, column, column.computed


def _cluster_of(lake: Lake, table: TableSpec, column: Column) -> Cluster | None:
    """Returns the cluster on AWS where the table's BACKFILL computes the column; None if no cluster does."""
    for service in table.services:
        calls = service.kind == SERVICE and not service.unsafe_raw and _names_column(service, column)
        if calls and (cluster := _cluster_of_service(lake, service)) is not None:
            return cluster
    return None


def _cluster_of_service(lake: Lake, service: ServiceSpec) -> Cluster | None:
    """Returns the cluster on AWS where the service runs; None if it runs elsewhere."""
    remote = [cluster for cluster in lake.instance.clusters if cluster.kind in REMOTE_KINDS]
    if service.cluster:
        return next((cluster for cluster in remote if cluster.name == service.cluster), None)
    is_scheduled = service.trigger is not None and service.trigger.schedule is not None
    return default_cluster(remote) if is_scheduled else None


def _names_column(service: ServiceSpec, column: Column) -> bool:
    chosen = service.options.get("columns")
    return not isinstance(chosen, list | tuple) or not chosen or column.name in chosen
