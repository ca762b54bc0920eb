"""`deployer init`: a project to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is new or empty.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the project and its lake.", show_default="the folder's")
    ] = None,
) -> int:
    """Write a project that `up` accepts as it is: specs, Pulumi.yaml, program and a workflow for pull requests."""
    from deployer.cli.output import stdout
    from deployer.starter.write import write_project

    for path in write_project(folder, name):
        stdout().print(str(path))
    stdout().print()
    stdout().print(f"now: cd {folder} && deployer up")
    return 0
