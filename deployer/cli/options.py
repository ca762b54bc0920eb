"""Options that many commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

ProjectDir = Annotated[
    Path | None,
    typer.Option(
        "--project",
        "-C",
        help="Folder of Pulumi.yaml; by default, the nearest one from here upwards.",
        show_default=False,
    ),
]
StackName = Annotated[str, typer.Option("--stack", "-s", help="Pulumi stack.", envvar="DEPLOYER_STACK")]
SpecsPath = Annotated[
    Path | None,
    typer.Option(
        "--specs",
        help="File or folder of specs; else `deployer:specs` of Pulumi.STACK.yaml or Pulumi.yaml.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document for machines.")]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Repeat the output every two seconds, until Ctrl-C.")]
AllowDestroy = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-destroy",
        metavar="ADDRESS",
        help="Allow data of this address to be destroyed, such as table/nyc.flights; repeatable.",
        show_default=False,
    ),
]
DeleteSavepoints = Annotated[
    bool,
    typer.Option("--delete-savepoints", help="Allow the savepoints of tables that are deleted to be deleted too."),
]
Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="ADDRESS",
        help="Only this resource, such as table/nyc.flights, or all of a glob, such as 'table/nyc.*'; "
        "repeatable. Other differences stay as they are.",
        show_default=False,
    ),
]
NewState = Annotated[
    bool,
    typer.Option(
        "--new-state",
        help="Make a new state store if it is missing. Tables are created without rows, beside their old data.",
    ),
]
LockTimeout = Annotated[
    str | None,
    typer.Option(
        "--lock-timeout",
        metavar="DURATION",
        help="Wait this long, such as 90s or 5m, while another run holds the stack. By default, the command "
        "fails at once.",
        show_default=False,
    ),
]
TableName = Annotated[str, typer.Argument(help="The table as `database.name`; the name alone when it is the only one.")]
WriteSpec = Annotated[bool, typer.Option("--write-spec", help="Edit the specs so that they declare it too.")]
Force = Annotated[bool, typer.Option("--force", help="Do not ask for the table's name.")]
TrustUdfs = Annotated[
    bool,
    typer.Option(
        "--trust-udfs",
        help="Run packaged functions of the lake by any author. Use it only if you trust all writers of the lake.",
    ),
]

DEFAULT_STACK = "dev"
Detach = Annotated[bool, typer.Option("--detach", help="On a cluster on AWS: start it and do not wait for its end.")]


def refuse_without_aws(**given: object) -> None:
    """Raises InvalidInput for options that only a run on a cluster on AWS has. Arguments are named like the options,
    with underscores."""
    from deployer.errors import InvalidInput

    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise InvalidInput(f"{option} is for clusters on AWS", remedy="name one with --cluster, or leave it out")


class EngineName(StrEnum):
    """The engines of a load."""

    AUTO = "auto"
    SPARK = "spark"
    DRIVER = "driver"
