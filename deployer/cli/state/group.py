"""`deployer state`: what the state store holds, whether it is whole, and how it is repaired and moved."""

from __future__ import annotations

import typer

from deployer.cli.state.log import log
from deployer.cli.state.rebuild import rebuild
from deployer.cli.state.show import show
from deployer.cli.state.transfer import export, import_state
from deployer.cli.state.verify import repair, verify

app = typer.Typer(
    name="state",
    help="Look into the state store, verify and repair it, rebuild it when it is lost, and move it.",
    no_args_is_help=True,
)
app.command("log")(log)
app.command("show")(show)
app.command("verify")(verify)
app.command("repair")(repair)
app.command("rebuild")(rebuild)
app.command("export")(export)
app.command("import")(import_state)
