"""`deployer report`: the lake as one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, ProjectDir, SpecsPath, StackName
from deployer.platform.text.masking import masked

if TYPE_CHECKING:
    from deployer.app.report.page import DriftView
    from deployer.app.workspace import Workspace


def report(
    html: Annotated[Path, typer.Option("--html", dir_okay=False, help="File to write the page to.")],
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
) -> int:
    """Write one self-contained HTML page of the lake: tables, sizes, key space, fragments, indexes, services and their
    runs, health, history and drift.

    The page loads nothing and runs nothing, so it can be mailed and opened offline. Reads no rows.
    """
    import datetime as dt

    from deployer.app.report.page import report_page
    from deployer.app.report.services import lake_services
    from deployer.app.workspace import open_workspace
    from deployer.cli.console.output import note
    from deployer.errors import InvalidInput
    from deployer.platform.files.private import write_private
    from deployer.tables.inspect.report import lake_report

    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    now = dt.datetime.now(dt.UTC)
    tables = lake_report(workspace.root(lake))
    services = lake_services(workspace.root(lake), now)
    page = report_page(lake.instance.name, lake.instance.root, tables, services, _drift(workspace), now)
    try:
        write_private(html, masked(page), keeps_mode=True)
    except OSError as error:
        raise InvalidInput(
            f"the page cannot be written: {error.strerror}", where=html, remedy="choose another file"
        ) from error
    note(f"wrote {html}")
    return 0


def _drift(workspace: Workspace) -> DriftView:
    """What `deployer drift` finds; a page is made where it cannot look, too, and says why."""
    from deployer.app.drift_detection.find import find_drift
    from deployer.app.report.page import DriftLine, DriftView
    from deployer.errors import DeployerError
    from deployer.plan.render.changes import describe

    try:
        found = find_drift(workspace)
    except DeployerError as error:
        return DriftView(workspace.stack, unknown=str(error))
    lines = tuple(
        DriftLine(
            item.address,
            describe(item.change),
            item.origin.who if item.origin else "",
            f"{item.origin.at:%Y-%m-%d %H:%M:%S}" if item.origin else "",
            str(item.origin.version) if item.origin and item.origin.version else "",
        )
        for item in found.items
    )
    undeclared = tuple((each.what, each.why) for each in found.undeclared)
    unreadable = tuple((each.address, each.why) for each in found.unreadable)
    return DriftView(workspace.stack, lines, undeclared, unreadable=unreadable)
