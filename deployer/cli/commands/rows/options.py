"""Options that the commands of `deployer rows` share."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.options import EngineName

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show how many rows of which leaves it would touch, and change nothing.")
]
JobId = Annotated[
    str | None,
    typer.Option(
        "--job-id", help="Name of this change: run again with the same one, it changes nothing.", show_default=False
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Engine = Annotated[
    EngineName, typer.Option(help="auto: in this process, and with Spark where much has to be looked through.")
]
NoIndexes = Annotated[bool, typer.Option("--no-indexes", help="Leave the table's indexes to a later change or load.")]
