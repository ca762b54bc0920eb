"""`deployer service check`: checks whether all services run as their triggers require."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

NOT_WELL = 2  #: exit code when a service is overdue, a view is late, or the newest run of a service failed


def check(
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help="Tables; all of the lake by default.", show_default=False),
    ] = None,
    grace: Annotated[
        str, typer.Option(metavar="DURATION", help="How late a run may be before it is called overdue.")
    ] = "1h",
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Check that services run as their triggers require, and that views are not later than `max_staleness`: exit code
    2, and a line each, for services that are overdue or whose newest run failed, for views that are late, and for
    tables that cannot be read. For monitoring; runs nothing."""
    from deployer.cli.commands.service.look import look_at_services
    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.platform.text.formatting import count
    from deployer.platform.text.units import OPTION_DURATION, parse_duration
    from deployer.state.model.times import iso_utc

    late = parse_duration(grace, OPTION_DURATION, option="--grace").total_seconds()
    look = look_at_services(root_to_read(project, stack, specs), tables, late)
    seen = sorted(look.tables.values(), key=lambda each: each.entry.full_name)
    lines: list[tuple[str, str | None, str, str]] = []
    for table in seen:
        if table.trouble:
            lines.append((table.entry.full_name, None, "UNREADABLE", table.trouble))
        if table.freshness is not None and (why := table.freshness.why_late(look.at) or table.freshness.unknown):
            status = "UNKNOWN" if table.freshness.unknown else "LATE"
            lines.append((table.entry.full_name, None, status, why))
        for each in table.service_statuses:
            why = each.overdue or each.failed
            if why:
                lines.append((table.entry.full_name, each.service, "OVERDUE" if each.overdue else "FAILED", why))
    views = sum(table.freshness is not None for table in seen)
    services = sum(len(table.service_statuses) for table in seen)
    if as_json:
        print_json(
            {
                "at": iso_utc(look.at),
                "services": services,
                "problems": [
                    {"table": name, "service": service, "status": status, "why": why}
                    for name, service, status, why in lines
                ],
            }
        )
    for name, service, status, why in () if as_json else lines:
        stdout().print(f"{name}{f' {service}' if service else ''}: {status}: {why}", soft_wrap=True)
    if not lines and not as_json:
        stdout().print(
            f"{count(services, 'service')} of {count(len(seen), 'table')}: none is overdue, none failed last"
            + (f"; {count(views, 'view')}: none is late" if views else "")
        )
    return NOT_WELL if lines else 0
