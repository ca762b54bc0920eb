"""`deployer cost`: the expected monthly cost of the lake on AWS."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.cost.estimate import Estimate


class CostFormat(StrEnum):
    """The format of costs."""

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
            help="Change an assumption, such as runs_per_day=4; repeatable. Takes precedence over "
            "`deployer:assume` of the stack.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Show what the lake is expected to cost a month on AWS, as declared and by what it holds now.

    Unknown costs are shown as unknown and are in no sum. Changes nothing. docs/cost.md says what is not counted.
    """
    from deployer import app
    from deployer.cli.console.activity import show_progress
    from deployer.cli.console.reporter import ConsoleReporter

    form = CostFormat.JSON if as_json else format
    found = app.cost(
        project,
        stack,
        specs,
        prices=prices,
        assume=assume or (),
        reporter=ConsoleReporter(),
        on_progress=show_progress("estimating the cost", as_json=form is CostFormat.JSON),
    )
    print_estimate(found.instance, found.estimate, form)
    return 0


def print_estimate(instance: str, found: Estimate, form: CostFormat) -> None:
    """Prints the cost of the lake `instance`."""

    from deployer.cli.console.output import note, print_document, print_json, stdout
    from deployer.cost import rendering

    if form is not CostFormat.JSON and not found.lines:
        note(f"the root of {instance} is on a disk, so it costs nothing")
        return
    match form:
        case CostFormat.JSON:
            print_json(rendering.as_json(instance, found))
        case CostFormat.MARKDOWN:
            print_document(rendering.as_markdown(instance, found))
        case CostFormat.TABLE:
            from rich.box import SIMPLE_HEAD
            from rich.table import Table

            table = Table(box=SIMPLE_HEAD, pad_edge=False)
            for index, head in enumerate(rendering.HEADS):
                table.add_column(head, justify="right" if index > 1 else "left")
            for line in found.lines:
                table.add_row(*rendering.row(line))
            console = stdout()
            console.print(rendering.headline(instance, found), soft_wrap=True)
            console.print(table)
            console.print(f"Total: {rendering.total(found)}", soft_wrap=True)
            console.print("Assumed (change them with --assume NAME=NUMBER):", soft_wrap=True)
            for text in rendering.assumed(found):
                console.print(f"  {text}", soft_wrap=True)
            console.print(f"Not counted: {rendering.NOT_COUNTED}", soft_wrap=True)
        case _:
            assert_never(form)
