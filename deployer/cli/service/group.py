"""`deployer service`: the services of tables, managed and run by hand."""

from __future__ import annotations

import typer

from deployer.cli.service.change import alter, cancel, create, delete, move, pause, resume
from deployer.cli.service.check import check
from deployer.cli.service.run import run
from deployer.cli.service.show import describe, list_services, runs

app = typer.Typer(name="service", help="Manage the services of tables, and run them.", no_args_is_help=True)
app.command("create")(create)
app.command("alter")(alter)
app.command("move")(move)
app.command("delete")(delete)
app.command("list")(list_services)
app.command("describe")(describe)
app.command("check")(check)
app.command("run")(run)
app.command("pause")(pause)
app.command("resume")(resume)
app.command("cancel")(cancel)
app.command("runs")(runs)
