"""`deployer service create|alter|move|delete|pause|resume|cancel`: changes a table's services by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName, WriteSpec

if TYPE_CHECKING:
    from pathlib import Path

    from deployer.cli.inputs.table import Target
    from deployer.state.model.services import ServiceKind
    from deployer.tables.open_table import OpenTable

ServiceName = Annotated[
    str,
    typer.Argument(
        metavar="SERVICE",
        help="COMPACT, CLUSTER, CLEAN, METASYNC, INGEST, EXPIRE, BACKFILL, REFRESH or AUTOSAVEPOINT, any case.",
    ),
]
Option = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        "-o",
        metavar="NAME=VALUE",
        help="An option of the service, such as target_file_bytes=512MB, or a condition of its trigger, such as "
        "commits=100; repeatable.",
        show_default=False,
    ),
]
Mode = Annotated[
    str | None, typer.Option("--trigger-mode", help="AUTOMATIC or ON_DEMAND.", metavar="MODE", show_default=False)
]
ClusterName = Annotated[
    str | None,
    typer.Option("--cluster", help="The declared cluster that it runs on.", metavar="NAME", show_default=False),
]
_UNDONE = "the next `deployer up` undoes it unless the spec says so: --write-spec, or `deployer drift --write-spec`"
UnsafeRaw = Annotated[bool, typer.Option("--unsafe-raw", help="Take options as they are, unchecked.")]


def create(
    table: TableName,
    service: ServiceName,
    option: Option = None,
    trigger_mode: Mode = None,
    cluster: ClusterName = None,
    unsafe_raw: UnsafeRaw = False,
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Attach a service to a table, by default with the trigger of its kind."""
    from deployer.cli.commands.service.options import pairs
    from deployer.services.api.management import attach
    from deployer.specs.schema.services import kind_named

    kind = kind_named(service)
    with _changed(project, stack, specs, table) as (target, opened):
        attach(opened, kind, trigger_mode, pairs(option), cluster=cluster, unsafe_raw=unsafe_raw)
        return _report(target, kind, "attached", write_spec, as_json)


def alter(
    table: TableName,
    service: ServiceName,
    option: Option = None,
    trigger_mode: Mode = None,
    cluster: ClusterName = None,
    unsafe_raw: UnsafeRaw = False,
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Change a service. Omitted settings stay; options and trigger are each replaced as a whole."""
    from deployer.cli.commands.service.options import pairs
    from deployer.services.api.management import alter as altered
    from deployer.specs.schema.services import kind_named

    kind = kind_named(service)
    with _changed(project, stack, specs, table) as (target, opened):
        altered(opened, kind, trigger_mode, pairs(option), cluster=cluster, unsafe_raw=unsafe_raw)
        return _report(target, kind, "changed", write_spec, as_json)


def move(
    table: TableName,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", help="The declared cluster that they run on.", metavar="NAME", show_default=False),
    ] = None,
    reset: Annotated[
        bool,
        typer.Option(
            "--reset", help="Undo a move: run each service on the cluster that the specs name, or on the default one."
        ),
    ] = False,
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Move all services of a table to a cluster, and those that are attached later by hand: all or none."""
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.table import write_spec as edit_spec
    from deployer.errors import InvalidInput
    from deployer.services.api.management import move as moved

    if reset and (cluster is not None or write_spec):
        raise InvalidInput(
            "--reset goes back to the clusters that the specs say, so it takes neither --cluster nor --write-spec",
            remedy="give --reset alone, or --cluster NAME",
        )
    if reset:
        return _reset(project, stack, specs, table, as_json)
    if cluster is None:
        raise InvalidInput("the target cluster is missing", remedy="give --cluster NAME, or --reset to undo a move")
    with _changed(project, stack, specs, table) as (target, opened):
        kinds = sorted(moved(opened, cluster).services)
        written = edit_spec(target) if write_spec else ()
    if as_json:
        print_json({"table": target.name, "cluster": cluster, "services": kinds, "written": [*written]})
        return 0
    what = ", ".join(kinds) if kinds else "no services yet"
    stdout().print(f"{target.name}: on cluster {cluster}: {what}; services that are attached later run there too")
    for file in written:
        stdout().print(f"edited {file}")
    declared = target.lake.table(target.name)
    if not write_spec and declared is not None and declared.services:
        note(_UNDONE)
    return 0


def _reset(project: Path | None, stack: str, specs: Path | None, table: str, as_json: bool) -> int:
    from deployer.cli.console.output import print_json, stdout
    from deployer.services.api.management import reset
    from deployer.specs.schema.services import kind_named

    with _changed(project, stack, specs, table) as (target, opened):
        declared = target.lake.table(target.name)
        clusters = {kind_named(each.kind): each.cluster for each in declared.services} if declared else None
        services = reset(opened, clusters).services
    on = {kind: services[kind].cluster for kind in sorted(services)}
    if as_json:
        print_json({"table": target.name, "cluster": None, "services": on, "written": []})
        return 0
    what = ", ".join(f"{kind} on {name or 'the default cluster'}" for kind, name in on.items()) or "no services yet"
    stdout().print(f"{target.name}: {what}; services that are attached later run on the default cluster")
    return 0


def delete(
    table: TableName,
    service: ServiceName,
    write_spec: WriteSpec = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Detach a service from a table; its runs stay listed."""
    from deployer.services.api.management import detach
    from deployer.specs.schema.services import kind_named

    kind = kind_named(service)
    with _changed(project, stack, specs, table) as (target, opened):
        detach(opened, kind)
        return _report(target, kind, "detached", write_spec, as_json)


def pause(
    table: TableName,
    service: ServiceName,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Pause a service: no run starts, and one that is running waits. Specs do not declare it."""
    from deployer.cli.inputs.table import changed_by_state
    from deployer.services.api.management import pause as paused
    from deployer.specs.schema.services import kind_named

    kind = kind_named(service)
    with changed_by_state(project, stack, specs, table) as opened:
        paused(opened, kind)
    return _print_change(opened.entry.full_name, kind, "paused", as_json)


def resume(
    table: TableName,
    service: ServiceName,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Resume a service that is paused."""
    from deployer.cli.inputs.table import changed_by_state
    from deployer.services.api.management import resume as resumed
    from deployer.specs.schema.services import kind_named

    kind = kind_named(service)
    with changed_by_state(project, stack, specs, table) as opened:
        resumed(opened, kind)
    return _print_change(opened.entry.full_name, kind, "resumed", as_json)


def cancel(
    table: TableName,
    service: ServiceName,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Cancel the run of a service that is queued or running. Its commits are kept."""
    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.table import changed_by_state
    from deployer.services.api.management import RECORDED
    from deployer.services.api.management import cancel as cancelled
    from deployer.specs.schema.services import kind_named
    from deployer.state.model.times import as_document

    with changed_by_state(project, stack, specs, table) as opened:
        run = cancelled(opened, kind_named(service, RECORDED))
    name = opened.entry.full_name
    if as_json:
        print_json({"table": name, "run": as_document(run)})
    elif run.is_open:
        stdout().print(f"{name}: run {run.run_id} of {run.service} was asked to end")
    else:
        stdout().print(f"{name}: run {run.run_id} of {run.service} is {run.status.lower()}")
    return 0


@contextmanager
def _changed(project: Path | None, stack: str, specs: Path | None, table: str) -> Iterator[tuple[Target, OpenTable]]:
    from deployer.cli.inputs.table import changed

    with changed(project, stack, specs, table, alone=False) as target:
        yield target, target.opened()


def _report(target: Target, kind: ServiceKind, done: str, write: bool, as_json: bool) -> int:
    from deployer.cli.console.output import note
    from deployer.cli.inputs.table import write_spec

    _print_change(target.name, kind, done, as_json, write_spec(target) if write else ())
    if not as_json and not write and target.lake.table(target.name) is not None:
        note(_UNDONE)
    return 0


def _print_change(table: str, kind: ServiceKind, done: str, as_json: bool, written: Sequence[str] = ()) -> int:
    from deployer.cli.console.output import print_json, stdout

    if as_json:
        print_json({"table": table, "service": kind, "done": done, "written": [*written]})
        return 0
    stdout().print(f"{table}: {kind} is {done}")
    for file in written:
        stdout().print(f"edited {file}")
    return 0
