"""`deployer cost`: what the lake is expected to cost a month on AWS."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.app.planning.cost_estimate import Basis
    from deployer.app.workspace import Workspace
    from deployer.cost.estimate import Estimate, Holding
    from deployer.specs.model import InstanceSpec, Lake


class CostFormat(StrEnum):
    """How costs are shown."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def cost(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    format: Annotated[CostFormat, typer.Option("--format", help="How the costs are shown.")] = CostFormat.TABLE,
    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices",
            dir_okay=False,
            help="Price file; else `deployer:prices` of Pulumi.STACK.yaml, else that of this release (docs/cost.md).",
            show_default=False,
        ),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option(
            "--assume",
            metavar="NAME=NUMBER",
            help="Assume otherwise, such as runs_per_day=4; repeatable, over `deployer:assume` of the stack.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show what the lake is expected to cost a month on AWS, as declared and by what it holds now.

    What is not known is said to be unknown and is in no sum. Changes nothing. docs/cost.md says what is not counted.
    """
    from deployer.app.planning.cost_estimate import cost_basis
    from deployer.app.workspace import open_workspace
    from deployer.cost.estimate import estimate

    workspace = open_workspace(project, stack, specs)
    lake = workspace.lake()
    basis = cost_basis(workspace, lake.instance, prices, assume or ())
    found = estimate(_holding(workspace, lake, basis), basis.region, basis.prices, basis.assumptions)
    print_estimate(lake.instance.name, found, CostFormat.JSON if as_json else format)
    return 0


def _holding(workspace: Workspace, lake: Lake, basis: Basis) -> Holding:
    """What is declared, with the sizes of what is there; unknown where that cannot be read, which is noted."""
    from deployer.app.live_state import read_live
    from deployer.app.stack.fast_path import read_recorded
    from deployer.console.output import note
    from deployer.cost.difference import declared_holding
    from deployer.cost.estimate import Holding
    from deployer.errors import DeployerError

    root = lake.instance.root
    if not root.startswith("s3://"):
        return Holding(lake.instance)
    try:
        live = read_live(root).with_applied(read_recorded(workspace.stack_ref).ids)
    except DeployerError as error:
        note(f"what the lake holds is not known: {error}")
        return declared_holding(lake, None, None, basis.managed)
    state = 0 if live.instance is None else _state_bytes(lake.instance, basis.region)
    return declared_holding(lake, live, state, basis.managed)


def _state_bytes(instance: InstanceSpec, region: str | None) -> int | None:
    """The size of the state's table as DynamoDB tells it, which it counts every six hours; None where it does not."""
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    from deployer.aws.session import aws_session
    from deployer.state.backends.dynamodb.table import table_name

    name = str(instance.state.options.get("table") or table_name(instance.root, instance.name))
    config = Config(connect_timeout=4, read_timeout=6, retries={"total_max_attempts": 2})
    try:
        client = aws_session().client("dynamodb", region_name=region, config=config)
        size: int | None = client.describe_table(TableName=name)["Table"].get("TableSizeBytes")
    except (BotoCoreError, ClientError):
        return None
    return size


def print_estimate(instance: str, found: Estimate, form: CostFormat) -> None:
    """Print what the lake `instance` costs."""

    from deployer.console.output import note, print_document, print_json, stdout
    from deployer.cost import words

    if form is not CostFormat.JSON and not found.lines:
        note(f"the root of {instance} is on a disk, so nothing is paid for")
        return
    match form:
        case CostFormat.JSON:
            print_json(words.as_json(instance, found))
        case CostFormat.MARKDOWN:
            from deployer.cost.markdown import as_markdown

            print_document(as_markdown(instance, found))
        case CostFormat.TABLE:
            from rich.box import SIMPLE_HEAD
            from rich.table import Table

            table = Table(box=SIMPLE_HEAD, pad_edge=False)
            for index, head in enumerate(words.HEADS):
                table.add_column(head, justify="right" if index > 1 else "left")
            for line in found.lines:
                table.add_row(*words.row(line))
            console = stdout()
            console.print(words.headline(instance, found), soft_wrap=True)
            console.print(table)
            console.print(f"Total: {words.total(found)}", soft_wrap=True)
            console.print("Assumed (change them with --assume NAME=NUMBER):", soft_wrap=True)
            for text in words.assumed(found):
                console.print(f"  {text}", soft_wrap=True)
            console.print(f"Not counted: {words.NOT_COUNTED}", soft_wrap=True)
        case _:
            assert_never(form)
