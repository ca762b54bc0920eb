"""`deployer schema`: prints the JSON Schema of spec files, for editors; `schema infer` writes a spec from data."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.commands.project.infer import infer
from deployer.cli.options import AsJson

app = typer.Typer(name="schema", invoke_without_command=True, no_args_is_help=False)
app.command("infer")(infer)


@app.callback()
def schema(
    context: typer.Context,
    policies: Annotated[
        bool, typer.Option("--policies", help="Print the schema of the rules and approvals in policies/*.yaml instead.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Print the JSON Schema of spec documents, with or without --json, so that editors complete and check them."""
    from deployer.cli.console.output import print_json

    if context.invoked_subcommand is not None:
        return 0
    if policies:
        from deployer.policy.schema import policies_schema

        print_json(policies_schema())
    else:
        from deployer.specs.schema.editor import editor_schema

        print_json(editor_schema())
    return 0
