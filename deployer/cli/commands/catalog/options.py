"""The root that the commands of `deployer catalog` use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deployer.cli.inputs.lake_root import root_to_read
from deployer.errors import InvalidInput

Root = Annotated[
    str | None,
    typer.Option(help="Root of the instance, such as s3://bucket/lake, where there is no project.", show_default=False),
]


def root_of(root: str | None, project: Path | None, stack: str, specs: Path | None) -> str:
    """Returns the given root, or else that of the project. Raises InvalidInput where a root and a project are given."""
    if root is not None and (project is not None or specs is not None):
        raise InvalidInput("--root is for where there is no project", remedy="leave out --project and --specs")
    return root or root_to_read(project, stack, specs)
