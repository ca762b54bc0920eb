"""`deployer report`: the lake as one page."""

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
    """Write one self-contained HTML page of the lake: tables, sizes, key space, fragments, indexes and history.

    The page loads nothing and runs nothing, so it can be mailed and opened offline. Reads no rows.
    """
    import datetime as dt

    from deployer.cli.lake_data import instance_of
    from deployer.cli.output import note
    from deployer.cli.report_page import report_page
    from deployer.errors import InvalidInput
    from deployer.tables.report import lake_report

    root, instance = instance_of(project, stack, specs)
    page = report_page(instance.name, instance.root, lake_report(root), dt.datetime.now(dt.UTC))
    try:
        html.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidInput(
            f"the page cannot be written: {error.strerror}", where=html, remedy="choose another file"
        ) from error
    note(f"wrote {html}")
    return 0
