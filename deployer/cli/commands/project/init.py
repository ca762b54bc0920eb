"""`deployer init`: writes a new project."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer


def init(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="A folder that is new or empty; with --requirements, the folder of a project."
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="Name of the project and its lake.", show_default="the folder's")
    ] = None,
    requirements: Annotated[
        bool,
        typer.Option(
            "--requirements",
            help="In the project of DIR, write only requirements*.txt and vendor/ again, for this deployer.",
        ),
    ] = False,
) -> int:
    """Write a project that `up` accepts as it is: specs, Pulumi.yaml, program, example data, pinned requirements and
    workflows."""
    from deployer.app.starter.write import write_project, write_requirements
    from deployer.cli.console.output import stdout
    from deployer.errors import InvalidInput

    if requirements and name is not None:
        raise InvalidInput("--name and --requirements do not go together", remedy="leave one of them out")
    for path in write_requirements(folder) if requirements else write_project(folder, name):
        stdout().print(str(path))
    if not requirements:
        stdout().print()
        stdout().print(f"now: cd {shlex.quote(str(folder))}")
        for command in ("up", "ingest trips data/trips.csv", "query trips"):
            stdout().print(f"     deployer {command}")
    return 0
