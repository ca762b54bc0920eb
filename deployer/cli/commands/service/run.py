"""`deployer service run`: runs a service on a table now."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.options import (
    DEFAULT_STACK,
    AsJson,
    Detach,
    EngineName,
    ProjectDir,
    SpecsPath,
    StackName,
    refuse_without_aws,
)


def run(
    table: Annotated[
        str | None,
        typer.Argument(
            help="The table as `database.name`; the name alone when it is the only one. Left out with --all.",
            metavar="[TABLE]",
            show_default=False,
        ),
    ] = None,
    service: Annotated[
        str | None,
        typer.Argument(
            help="COMPACT, CLUSTER, CLEAN, METASYNC, INGEST, EXPIRE, BACKFILL, REFRESH, AUTOSAVEPOINT or RESTORE (to "
            "the newest savepoint).",
            metavar="[SERVICE]",
            show_default=False,
        ),
    ] = None,
    all_tables: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Run all that is due by its trigger, on every table; `--all SERVICE` runs that service on every table "
            "that has it, due or not.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="With --all: only show what would run, and why. Without --all, for CLUSTER and CLEAN: show "
            "what the run would do.",
        ),
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            metavar="NAME=VALUE",
            help="An option of the service, such as target_file_bytes=512MB; repeatable. If omitted, the "
            "options of the table's own service apply, or the defaults.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="auto: small work in this process, large work with Spark.")
    ] = EngineName.AUTO,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Declared cluster for the run, which may be on AWS. By default, the cluster of the declared "
            "service, or else the only local one, or the one called `default`.",
            metavar="NAME",
            show_default=False,
        ),
    ] = None,
    job_id: Annotated[
        str | None,
        typer.Option(
            help="On a cluster on AWS: name of this run. A run of the same name is followed, not started twice.",
            show_default=False,
        ),
    ] = None,
    detach: Detach = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Run a service on a table, whether the table has it or not; or all that is due. Ctrl-C keeps what is committed."""
    from functools import partial

    from deployer.app.workspace import open_workspace
    from deployer.cli.commands.service.options import pairs
    from deployer.cli.console.output import print_json
    from deployer.cli.console.progress_display import Meter
    from deployer.cli.inputs.run_place import find_run_place
    from deployer.cli.summaries.service_run import print_done
    from deployer.compute.clusters import local_cluster, remote_cluster
    from deployer.errors import Interrupted, InvalidInput, Refused
    from deployer.runs.runner import RunRequest
    from deployer.services.registry import run_service, runnable
    from deployer.specs.serialized.service_options import options_from_text
    from deployer.state.model.times import as_document

    if all_tables:
        if service is not None:
            raise InvalidInput("--all is for every table", remedy="write `service run --all`, or `--all SERVICE`")
        table, service = None, table
    elif table is None or service is None:
        raise InvalidInput("TABLE and SERVICE are missing", remedy="give both, or --all for what is due on all tables")
    if option and service is None:
        raise InvalidInput("options belong to one service", remedy="give it: `service run --all SERVICE -o …`")
    kind = runnable(service) if service is not None else None
    options = options_from_text(kind, pairs(option) or {}) if option and kind is not None else None
    workspace = open_workspace(project, stack, specs)
    place = find_run_place(workspace)
    clusters, where = place.instance.clusters, place.instance.address
    if table is None or kind is None:
        from deployer.cli.commands.service.run_all import run_all

        if remote_cluster(clusters, cluster, where) is not None:
            raise Refused(f"--all runs on this machine, and {cluster} is on AWS", remedy="name a cluster of kind local")
        refuse_without_aws(job_id=job_id, detach=detach)
        return run_all(
            place.root,
            place.instance,
            kind,
            options,
            cluster=cluster,
            engine=engine.value,
            dry_run=dry_run,
            as_json=as_json,
        )
    if dry_run:
        options = place.dry_run_options(table, kind, options)
    cluster = cluster or place.cluster_of(table, kind)
    if (remote := remote_cluster(clusters, cluster, where)) is not None:
        from deployer.cli.remote.service import RemoteRunRequest, run_service_on

        request = RemoteRunRequest(table, kind, options, engine.value, job_id)
        return run_service_on(remote, workspace, place.lake(), request, as_json=as_json, detach=detach)
    refuse_without_aws(job_id=job_id, detach=detach)
    choose = partial(local_cluster, clusters, cluster, where)
    with Meter(as_json=as_json) as meter:
        done = run_service(
            place.root,
            table,
            kind,
            options,
            cluster=choose,
            engine=engine.value,
            on_progress=meter.begin(table),
            asked=RunRequest(cluster=cluster),
        )
    if as_json:
        print_json(as_document(done))
    else:
        print_done(done)
    return Interrupted.exit_code if done.status == "CANCELLED" else 0
