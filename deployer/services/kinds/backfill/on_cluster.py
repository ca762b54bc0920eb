"""The requirements of a BACKFILL on a cluster: its functions are trusted there, and can be imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployer.columns.backfill.admission import admit_function
from deployer.columns.backfill.resolve import computable_column
from deployer.compute.jobs.code import JobCode, architecture_of
from deployer.compute.jobs.variables import trusted_on_clusters
from deployer.compute.packaging.project_modules import not_of_jobs
from deployer.compute.packaging.requirements import declared_requirements
from deployer.compute.running.published_clusters import published_outputs
from deployer.errors import NotFound, Refused
from deployer.functions.packages.package import PackageInfo
from deployer.functions.packages.stored import function_info
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.services.definition import options_of
from deployer.services.kinds.backfill.job import chosen_columns, computed_columns
from deployer.services.kinds.backfill.options import BackfillOptions
from deployer.specs.model import Cluster
from deployer.specs.types.computed import ComputedByUdf
from deployer.tables.open_table import OpenTable, ReadTable


def require_runnable(
    table: ReadTable,
    cluster: Cluster,
    options: Mapping[str, Any] | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Checks before a job starts whether its functions can run on the cluster, by the stack's published settings.

    `options` are those of the run, by default those of the table's own service. `settings` are those of the stack, by
    default the applied ones. Raises Refused for a function that is not trusted on clusters, whose module the stack has
    not uploaded, or that needs a package that jobs lack. Raises InvalidInput as the run does.
    """
    outputs = published_outputs(table.root) or {}
    trusted = trusted_on_clusters(outputs if settings is None else settings)
    computed = computed_columns(table)
    names = chosen_columns(table, BackfillOptions.of(options_of(table.state, "BACKFILL", options)).columns)
    for name in names:
        definition = computed[name]
        if isinstance(definition, ComputedByUdf):
            where = f"column {name} of {table.address}, on cluster {cluster.name}"
            if definition.function:
                _require_package(table.root, definition, cluster, trusted, where)
            else:
                _require_named(definition, cluster, outputs, trusted, where)


def require_computable(table: OpenTable, cluster: Cluster, column: str, trusted: TrustedFunctions) -> None:
    """Checks before a job is started whether a backfill of one column, by a function that is `trusted`, can run on the
    cluster. The function is not imported.

    Raises Refused as `require_runnable`, InvalidInput for a column that is not computed, and ResourcesUnavailable where
    the cluster lacks resources that a packaged function needs.
    """
    definition = computable_column(table, column).computed
    if not isinstance(definition, ComputedByUdf):
        return
    where = f"column {column} of {table.address}, on cluster {cluster.name}"
    if definition.function:
        info, author = function_info(table.root, definition.function)
        trusted.require_package(definition.function, author, definition.udf, where)
        _require_packages(info, definition, cluster, where)
        admit_function(table, info, cluster=cluster.name)
    else:
        trusted.require_name(definition.udf, what="the function", where=where)
        _require_module(definition, cluster, published_outputs(table.root) or {}, where)


def _require_named(
    definition: ComputedByUdf, cluster: Cluster, outputs: Mapping[str, Any], trusted: TrustedFunctions, where: str
) -> None:
    udf = definition.udf
    if udf not in trusted.names:
        raise Refused(
            f"function `{udf}` is named by the lake and not trusted on clusters, so it does not run",
            where=where,
            remedy=f"if you know its code, write `deployer:trusted_functions: {_listed(trusted, udf)}` into the "
            "stack's configuration and run `deployer up`",
        )
    _require_module(definition, cluster, outputs, where)


def _require_module(definition: ComputedByUdf, cluster: Cluster, outputs: Mapping[str, Any], where: str) -> None:
    try:
        code = JobCode.from_outputs(outputs, architecture_of(cluster))
    except NotFound:  # the command that starts the job reports it
        return
    if definition.udf not in code.functions:
        raise Refused(
            f"the code of jobs does not have the module of function `{definition.udf}`",
            where=where,
            remedy="run `deployer up`, which uploads the modules of functions that specs name",
        )


def _require_package(
    root: str, definition: ComputedByUdf, cluster: Cluster, trusted: TrustedFunctions, where: str
) -> None:
    info, author = function_info(root, definition.function)
    try:
        trusted.require_package(definition.function, author, definition.udf, where)
    except Refused as refused:
        raise Refused(
            refused.what.replace("trusted here", "trusted on clusters"),
            where=where,
            remedy=f"if you know its code, write `deployer:trusted_functions: "
            f"{_listed(trusted, definition.function)}` into the stack's configuration and run `deployer up`; "
            "`deployer:trusted_authors` and `deployer:trust_udfs` trust all who can write to the lake",
        ) from None
    _require_packages(info, definition, cluster, where)


def _require_packages(info: PackageInfo, definition: ComputedByUdf, cluster: Cluster, where: str) -> None:
    if missing := not_of_jobs(info.modules, declared_requirements(cluster)):
        raise Refused(
            f"function `{definition.udf}` imports {', '.join(missing)}, which the packages of jobs on clusters do not "
            "have",
            where=where,
            remedy="name the packages in `requirements` of the cluster and run `deployer up`, or compute the column on "
            "this machine",
        )


def _listed(trusted: TrustedFunctions, name: str) -> str:
    return ",".join(sorted((*trusted.names, name)))
