"""`deployer service run`: one service on one table, now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.ingest import EngineName
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName

if TYPE_CHECKING:
    from deployer.specs.model import Lake
    from deployer.tables.progress import Progress


def run(
    table: TableName,
    service: Annotated[
        str,
        typer.Argument(
            help="COMPACT, CLEAN, METASYNC, AUTOSAVEPOINT or RESTORE (to the newest savepoint).", metavar="SERVICE"
        ),
    ],
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="An option of the service, such as target_file_bytes=512MB; repeatable. Without any, those of the "
            "table's own service hold, else the defaults.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="auto: small work in this process, large work with Spark.")
    ] = EngineName.AUTO,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Declared cluster that the run is on, which may be on AWS: that of the declared service unless given. "
            "Else Spark runs on the only local one, or the one called `default`.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Run a service on a table, whether the table has it or not. What is committed until Ctrl-C stands."""
    from dataclasses import asdict
    from functools import partial

    from deployer.cli.meter import Meter
    from deployer.cli.output import print_json
    from deployer.cli.service_done import print_done
    from deployer.cli.service_options import pairs
    from deployer.cli.workspace import open_workspace
    from deployer.compute.clusters import local_cluster, remote_cluster
    from deployer.errors import Interrupted
    from deployer.services.run import run_service, runnable
    from deployer.services.running import Asked
    from deployer.specs.service_texts import options_from_text

    kind = runnable(service)
    options = options_from_text(kind, pairs(option) or {}) if option else None
    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    root, instance = workspace.root(lake), lake.instance
    cluster = cluster or _declared_cluster(lake, table, kind)
    if (remote := remote_cluster(instance.clusters, cluster, instance.address)) is not None:
        from deployer.cli.service_remote import run_service_on

        return run_service_on(remote, workspace, lake, table, kind, options, engine.value, as_json=as_json)
    choose = partial(local_cluster, instance.clusters, cluster, instance.address)
    if cluster is not None:
        choose()  # one that cannot be is said at once
    with Meter(as_json=as_json) as meter:
        meter.begin(table, table)

        def told(now: Progress) -> None:
            meter.tell(table, now.doing, now.done, now.total, now.unit)

        done = run_service(
            root,
            table,
            kind,
            options,
            cluster=choose,
            engine=engine.value,
            on_progress=told,
            asked=Asked(cluster=cluster),
        )
    if as_json:
        print_json(asdict(done))
    else:
        print_done(done)
    return Interrupted.exit_code if done.status == "CANCELLED" else 0


def _declared_cluster(lake: Lake, table: str, kind: str) -> str | None:
    """The cluster that the specs give the table's service."""
    tables = [each for each in lake.tables if table in (each.full_name, each.name)]
    found = [service.cluster for each in tables for service in each.services if service.kind == kind]
    return found[0] if len(tables) == 1 and found else None
