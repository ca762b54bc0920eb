"""`deployer graph`: draws the declared resources and their dependencies."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, ProjectDir, SpecsPath, StackName


class GraphFormat(StrEnum):
    """The format of the graph."""

    MERMAID = "mermaid"
    SVG = "svg"


def graph(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    format: Annotated[
        GraphFormat, typer.Option("--format", help="Mermaid for Markdown, SVG for a picture.")
    ] = GraphFormat.MERMAID,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", dir_okay=False, help="File to write; stdout by default.", show_default=False),
    ] = None,
) -> int:
    """Draw the resource graph that the specs declare. Reads no live state."""
    from deployer import app
    from deployer.cli.console.output import note, print_document
    from deployer.errors import InvalidInput
    from deployer.platform.files.private import write_private

    found = app.graph(project, stack, specs)
    text = found.to_svg() if format is GraphFormat.SVG else found.to_mermaid()
    if output is None:
        print_document(text)
        return 0
    try:
        write_private(output, text, keeps_mode=True)
    except OSError as error:
        raise InvalidInput(
            f"the graph cannot be written: {error.strerror}", where=output, remedy="choose another file"
        ) from error
    note(f"wrote {output}")
    return 0
