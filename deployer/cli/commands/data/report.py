"""`deployer report`: the lake as an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, ProjectDir, SpecsPath, StackName


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
    from deployer import app
    from deployer.cli.console.activity import show_activity
    from deployer.cli.console.output import note

    found = app.report(project, stack, specs, on_progress=show_activity("reading the lake"))
    found.write(html)
    note(f"wrote {html}")
    return 0
