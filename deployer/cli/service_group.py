"""`deployer service`: the services of tables, run by hand."""

from __future__ import annotations

import typer

from deployer.cli.service_run import run

app = typer.Typer(name="service", help="Run the services of tables.", no_args_is_help=True)


@app.callback()
def service() -> None:
    """Run the services of tables."""


app.command("run")(run)
