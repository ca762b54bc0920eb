"""`deployer service run`: one service on one table, now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from deployer.app.workspace import Workspace
    from deployer.errors import InvalidSpecs
    from deployer.specs.model import InstanceSpec, Lake


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
    from deployer.cli.inputs.lake_root import root_despite
    from deployer.cli.summaries.service_run import print_done
    from deployer.compute.clusters import local_cluster, remote_cluster
    from deployer.errors import Interrupted, InvalidInput, InvalidSpecs, Refused
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
    lake = _lake_or_problems(workspace)
    if isinstance(lake, InvalidSpecs):
        root = root_despite(workspace, lake, "uses")
        instance = _recorded_instance(root, lake)
    else:
        root, instance = workspace.root(lake), lake.instance
    if dry_run and not all_tables:
        options = _dry(root, str(table), str(kind), options)
    if all_tables:
        from deployer.cli.commands.service.run_all import run_all

        if remote_cluster(instance.clusters, cluster, instance.address) is not None:
            raise Refused(f"--all runs on this machine, and {cluster} is on AWS", remedy="name a cluster of kind local")
        refuse_without_aws(job_id=job_id, detach=detach)
        return run_all(
            root, instance, kind, options, cluster=cluster, engine=engine.value, dry_run=dry_run, as_json=as_json
        )
    assert table is not None and kind is not None  # noqa: S101 -- refused above
    if isinstance(lake, InvalidSpecs):
        cluster = cluster or _recorded_cluster(root, table, kind)
    else:
        cluster = cluster or _declared_cluster(lake, table, kind)
    if (remote := remote_cluster(instance.clusters, cluster, instance.address)) is not None:
        if isinstance(lake, InvalidSpecs):  # the cluster's roles, bucket and network are declared
            raise lake
        from deployer.cli.remote.service import RemoteRunRequest, run_service_on

        asked = RemoteRunRequest(table, kind, options, engine.value, job_id)
        return run_service_on(remote, workspace, lake, asked, as_json=as_json, detach=detach)
    refuse_without_aws(job_id=job_id, detach=detach)
    choose = partial(local_cluster, instance.clusters, cluster, instance.address)
    if cluster is not None:
        choose()  # an unknown cluster is reported at once
    with Meter(as_json=as_json) as meter:
        done = run_service(
            root,
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


def _dry(root: str, table: str, kind: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the options, those of the table's own service unless some are given, so that nothing is changed."""
    from contextlib import closing

    from deployer.errors import InvalidInput
    from deployer.services.definition import options_of
    from deployer.services.registry import runnable
    from deployer.specs.schema.services import KINDS, option_names
    from deployer.state import open_store
    from deployer.tables.open_table import find_entry

    able = [each for each in KINDS if "dry_run" in option_names(each)]
    if kind not in able:
        raise InvalidInput(
            f"{kind} has no --dry-run for a single table", remedy=f"{', '.join(able[:-1])} and {able[-1]} have one"
        )
    with closing(open_store(root)) as store:
        state = store.table(find_entry(store.instance().tables.values(), table).table_id)
    return {**options_of(state, runnable(kind), options), "dry_run": True}


def _lake_or_problems(workspace: Workspace) -> Lake | InvalidSpecs:
    from deployer.errors import InvalidSpecs

    try:
        return workspace.lake()
    except InvalidSpecs as problems:
        return problems


def _recorded_instance(root: str, problems: InvalidSpecs) -> InstanceSpec:
    """Returns the instance as it was last applied. Raises the problems of the specs where none was."""
    from contextlib import closing

    from deployer.live.reader import live_instance
    from deployer.state import open_reader

    with closing(open_reader(root)) as store:
        instance = live_instance(store.instance())
    if instance is None:
        raise problems
    return instance


def _recorded_cluster(root: str, table: str, kind: str) -> str | None:
    """Returns the cluster of the service that the table has; None when it has no such service."""
    from contextlib import closing

    from deployer.state import open_reader
    from deployer.tables.open_table import find_entry

    with closing(open_reader(root)) as store:
        services = store.table(find_entry(store.instance().tables.values(), table).table_id).services
    return next((each.cluster for each in services.values() if each.kind == kind), None)


def _declared_cluster(lake: Lake, table: str, kind: str) -> str | None:
    """Returns the cluster that the specs give the table's service."""
    tables = [each for each in lake.tables if table in (each.full_name, each.name)]
    found = [service.cluster for each in tables for service in each.services if service.kind == kind]
    return found[0] if len(tables) == 1 and found else None
