"""`deployer schema`: the JSON Schema of spec files, for editors; `schema infer` writes a spec from data."""

from __future__ import annotations

import typer

from deployer.cli.infer import infer
from deployer.cli.options import AsJson

app = typer.Typer(name="schema", invoke_without_command=True, no_args_is_help=False)
app.command("infer")(infer)


@app.callback()
def schema(context: typer.Context, as_json: AsJson = False) -> int:
    """Print the JSON Schema of spec documents, with or without --json, so that editors complete and check them."""
    from deployer.cli.output import print_json
    from deployer.specs.editor_schema import editor_schema

    if context.invoked_subcommand is None:
        print_json(editor_schema())
    return 0
