"""`deployer table`: single tables, administered at once; what the specs say of them is another command's."""

from __future__ import annotations

import typer

from deployer.cli.table.add import add
from deployer.cli.table.delete import delete
from deployer.cli.table.flags import offline, online, rename
from deployer.cli.table.gc import gc
from deployer.cli.table.partitions import files, partitions
from deployer.cli.table.reinitialise import reinitialise
from deployer.cli.table.split import split, split_points

app = typer.Typer(
    name="table",
    help="Add, rename, empty, split, look into, clean and delete single tables.",
    no_args_is_help=True,
)
app.command("add")(add)
app.command("rename")(rename)
app.command("delete")(delete)
app.command("reinitialise")(reinitialise)
app.command("online")(online)
app.command("offline")(offline)
app.command("partitions")(partitions)
app.command("files")(files)
app.command("split")(split)
app.add_typer(split_points)
app.command("gc")(gc)
