"""`deployer preview`: what would change, how risky it is and what caused it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AllowDestroy, AsJson, ProjectDir, SpecsPath, StackName


class Format(StrEnum):
    """How a plan is shown."""

    TREE = "tree"
    JSON = "json"


def preview(
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    format: Annotated[Format, typer.Option("--format", help="How the plan is shown.")] = Format.TREE,
    allow_destroy: AllowDestroy = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 2 when there are changes.")] = False,
    as_json: AsJson = False,
) -> int:
    """Show what `up` would change, against live state refreshed first. Changes nothing."""
    from deployer.cli.output import print_json, stdout
    from deployer.cli.planning import plan_up
    from deployer.cli.workspace import open_workspace

    plan = plan_up(open_workspace(project, stack, specs), allow_destroy or ()).plan
    if as_json or format is Format.JSON:
        from deployer.plan.as_json import plan_as_json

        print_json(plan_as_json(plan))
    else:
        from deployer.plan.terminal import plan_as_tree

        stdout().print(plan_as_tree(plan))
    return 2 if exit_code and not plan.is_empty else 0
