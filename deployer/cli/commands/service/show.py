"""`deployer service list|describe|runs`: the services of tables, and their runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.commands.service.change import ServiceName
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName, Watch

if TYPE_CHECKING:
    from deployer.state.model.services import Run

_STYLES = {
    "BROKEN": "bold red",
    "OVERDUE": "bold red",
    "FAILED": "red",
    "DUE": "yellow",
    "PAUSED": "dim",
    "RUNNING": "cyan",
    "QUEUED": "cyan",
}


def list_services(
    table: Annotated[
        str | None, typer.Argument(help="A table; all of the lake by default.", show_default=False)
    ] = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    watch: Watch = False,
    as_json: AsJson = False,
) -> int:
    """List the services of tables: their triggers, their newest runs and the outcomes."""
    from functools import partial

    from deployer.cli.console.watch import watched

    show = partial(_list, table, project, stack, specs, as_json=as_json)
    return watched(show, as_json=as_json) if watch else show()


def _list(table: str | None, project: Path | None, stack: str, specs: Path | None, *, as_json: bool) -> int:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from deployer.cli.commands.service.look import look_at_services
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.live.services import trigger_of
    from deployer.plan.render.services import describe_trigger
    from deployer.state.model.times import as_document, iso_or_none

    look = look_at_services(root_to_read(project, stack, specs), [table] if table is not None else None)
    seen = sorted(look.tables.values(), key=lambda each: each.entry.full_name)
    found = [
        (each.entry.full_name, each.state.services[status.service], status)
        for each in seen
        for status in each.service_statuses
    ]
    if as_json:
        print_json(
            {
                "services": [
                    {
                        "table": name,
                        "service": service.kind,
                        "trigger_mode": service.trigger_mode,
                        "trigger": dict(service.trigger),
                        "options": dict(service.options),
                        "cluster": service.cluster,
                        "paused": service.paused,
                        "status": status.label,
                        "broken": status.broken or None,
                        "overdue": status.overdue or None,
                        "due": status.due or None,
                        "next": iso_or_none(status.next_at),
                        "last_run": as_document(status.last) if status.last else None,
                    }
                    for name, service, status in found
                ],
                "unreadable": {each.entry.full_name: each.trouble for each in seen if each.trouble},
            }
        )
        return 0
    for each in seen:
        if each.trouble:
            note(f"{each.entry.full_name} cannot be read: {each.trouble}")
    if not found:
        note("there are no services; declare them under `services:`, or `deployer service create TABLE SERVICE`")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("table", "service", "stands", "runs", "cluster", "last run (UTC)"):
        shown.add_column(name, overflow="fold")
    for name, service, status in found:
        last = _describe_run(status.last) if status.last else "never"
        when = describe_trigger(trigger_of(service))
        shown.add_row(
            name, service.kind, Text(status.label, _STYLES.get(status.label, "")), when, service.cluster or "", last
        )
    stdout().print(shown)
    for name, _, status in found:
        if status.broken:
            note(f"{name} {status.service} is not valid in the state and does not run: {status.broken}")
        if status.overdue:
            note(f"{name} {status.service} is overdue: {status.overdue}")
    return 0


def describe(
    table: TableName,
    service: ServiceName,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Show one service of a table: trigger, every option, cluster and the newest run."""
    from rich.table import Table

    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.table import looked_at
    from deployer.live.services import trigger_of
    from deployer.plan.render.services import describe_trigger
    from deployer.services.api.attachments import find_service
    from deployer.services.api.views import described
    from deployer.specs.schema.services import kind_named
    from deployer.state.model.times import as_document

    kind = kind_named(service)
    with looked_at(project, stack, specs, table) as opened:
        found = find_service(opened.state, kind, opened.address)
        [found_service] = described("", opened, [found])
    if as_json:
        document = {name: value for name, value in as_document(found_service).items() if name != "lake"}
        print_json(document)
        return 0
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="dim")
    shown.add_column(overflow="fold")
    shown.add_row("stands", ": ".join(filter(None, (found_service.status, found_service.reason))))
    shown.add_row("runs", describe_trigger(trigger_of(found)) + (" (paused)" if found.paused else ""))
    shown.add_row("cluster", found.cluster or "the default cluster of jobs")
    for name, value in found_service.options.items():
        shown.add_row(name, "not set" if value is None else str(value))
    if found_service.broken:
        shown.add_row("broken", f"it does not run: {found_service.broken}")
    if found.unsafe_raw:
        shown.add_row("options", "not checked (unsafe_raw)")
    shown.add_row("last run", _describe_run(found_service.last_run) if found_service.last_run else "never")
    if found_service.last_run and (depth := describe_depth(found_service.last_run)):
        shown.add_row("", depth)
    stdout().print(f"{opened.entry.full_name}: {kind}")
    stdout().print(shown)
    return 0


def runs(
    table: TableName,
    service: Annotated[
        str | None, typer.Argument(metavar="SERVICE", help="One service; all by default.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option(help="Show at most this many; 0 for all that are kept.", min=0)] = 20,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the runs of a table's services, the newest first."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.table import looked_at
    from deployer.platform.system.clock import utc
    from deployer.platform.text.formatting import size
    from deployer.runs.records import runs_of
    from deployer.services.api.management import RECORDED
    from deployer.specs.schema.services import kind_named
    from deployer.state.model.times import as_document

    kind = kind_named(service, RECORDED) if service else None
    with looked_at(project, stack, specs, table) as opened:
        found = runs_of(opened.state, kind)
    listed = found[: limit or None]
    if as_json:
        print_json({"table": opened.entry.full_name, "runs": [as_document(run) for run in listed]})
        return 0
    if not found:
        note(f"{opened.entry.full_name} has no runs yet")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "service", "status", "began (UTC)"):
        shown.add_column(name)
    for name in ("seconds", "rows", "read", "written"):
        shown.add_column(name, justify="right")
    shown.add_column("why", overflow="fold")
    for run in listed:
        done = run.figures
        shown.add_row(
            run.run_id,
            run.service,
            run.status if run.wish is None else f"{run.status} ({run.wish} requested)",
            utc(run.started_at or run.queued_at),
            "" if run.ended_at is None or run.started_at is None else f"{(run.ended_at - run.started_at) / 1000:.1f}",
            f"{done.rows_in:,}",
            size(done.bytes_in),
            size(done.bytes_out),
            "; ".join(filter(None, (run.reason or run.cause, describe_depth(run), _failed_rows(run)))),
        )
    stdout().print(shown)
    if len(listed) < len(found):
        note(f"{len(found) - len(listed):,} more: give --limit 0 for all")
    return 0


def describe_depth(run: Run) -> str:
    """Returns how a run of CLUSTER changed the overlap of files, `overlap depth 3.62 → 1.68`; empty for other
    services."""
    before, after = (moment.get("depth") for moment in (run.figures.before, run.figures.after))
    if not isinstance(before, int | float) or not isinstance(after, int | float):
        return ""
    return f"overlap depth {before:.2f}" + (f" → {after:.2f}" if run.figures.rows_out else "")


def _failed_rows(run: Run) -> str:
    from deployer.platform.text.formatting import count

    failed = run.figures.after.get("errors")
    return f"{count(failed, 'row')} failed" if isinstance(failed, int) and failed else ""


def _describe_run(run: Run) -> str:
    from deployer.platform.system.clock import utc

    ended = f" ({run.reason})" if run.reason else ""
    return f"{run.status} {utc(run.ended_at or run.started_at or run.queued_at)}{ended}"
