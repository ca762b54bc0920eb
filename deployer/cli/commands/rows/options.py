"""Options that the commands of `deployer rows` share."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.options import EngineName

DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show how many rows of each leaf would change, and change nothing.")
]
JobId = Annotated[
    str | None,
    typer.Option(
        "--job-id", help="Id of this change. A second change with the same id changes nothing.", show_default=False
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Engine = Annotated[EngineName, typer.Option(help="auto: in this process, or with Spark if many rows have to be read.")]
NoIndexes = Annotated[
    bool, typer.Option("--no-indexes", help="Do not update the table's indexes; a later change or load does.")
]
