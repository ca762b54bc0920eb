"""The groups whose commands have their own packages: `deployer table`, `rows`, `column`, `view`, `job`, `service`, …"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import typer

from deployer.cli.commands.catalog import datasets, entries, inspect, maintain, register, runs, search, serve
from deployer.cli.commands.catalog import tables as catalog_tables
from deployer.cli.commands.column import backfill, computed, load
from deployer.cli.commands.job import jobs
from deployer.cli.commands.rows import change as row_change
from deployer.cli.commands.rows import erase as row_erase
from deployer.cli.commands.service import change, check, files, run, show
from deployer.cli.commands.state import log, rebuild, transfer, verify
from deployer.cli.commands.state import show as show_state
from deployer.cli.commands.table import add, delete, flags, gc, partitions, reinitialise, split
from deployer.cli.commands.view import views


def _group(name: str, about: str, commands: Mapping[str, Callable[..., Any]]) -> typer.Typer:
    """Returns a group of commands, in the order in which its help lists them."""
    group = typer.Typer(name=name, help=about, no_args_is_help=True)
    for command, function in commands.items():
        group.command(command)(function)
    return group


table_group = _group(
    "table",
    "Add, rename, empty, split, inspect, clean and delete single tables.",
    {
        "add": add.add,
        "rename": flags.rename,
        "delete": delete.delete,
        "reinitialise": reinitialise.reinitialise,
        "online": flags.online,
        "offline": flags.offline,
        "partitions": partitions.partitions,
        "files": partitions.files,
        "split": split.split,
        "gc": gc.gc,
    },
)
table_group.add_typer(split.split_points)
rows_group = _group(
    "rows",
    "Update, delete, merge and erase rows of a table.",
    {
        "update": row_change.update,
        "delete": row_change.delete,
        "merge": row_change.merge,
        "erase": row_erase.erase,
    },
)
column_group = _group(
    "column",
    "Add computed columns, and write values of columns beside the rows that are there.",
    {
        "list": computed.list_columns,
        "add": computed.add,
        "load": load.load,
        "backfill": backfill.backfill,
        "plan": backfill.plan,
        "errors": backfill.errors,
    },
)
view_group = _group(
    "view",
    "List materialized views, and refresh them.",
    {
        "list": views.list_views,
        "plan": views.plan,
        "refresh": views.refresh,
    },
)
job_group = _group(
    "job",
    "List, show and cancel jobs that write columns or refresh views.",
    {
        "list": jobs.list_jobs,
        "show": jobs.show,
        "cancel": jobs.cancel,
    },
)
service_group = _group(
    "service",
    "Manage the services of tables, and run them.",
    {
        "create": change.create,
        "alter": change.alter,
        "move": change.move,
        "delete": change.delete,
        "list": show.list_services,
        "describe": show.describe,
        "check": check.check,
        "run": run.run,
        "pause": change.pause,
        "resume": change.resume,
        "cancel": change.cancel,
        "runs": show.runs,
        "files": files.files,
        "retry-files": files.retry_files,
    },
)
catalog_group = _group(
    "catalog",
    "Serve tables and recordings to clients of rerun.catalog, list what they see, and register recordings.",
    {
        "serve": serve.serve,
        "entries": entries.entries,
        "tables": catalog_tables.tables,
        "datasets": datasets.datasets,
        "segments": datasets.segments,
        "layers": datasets.layers,
        "manifest": datasets.manifest,
        "register": register.register,
        "search": search.search,
        "maintain": maintain.maintain,
        "runs": runs.runs,
        "inspect": inspect.inspect,
    },
)
state_group = _group(
    "state",
    "Inspect the state store, verify and repair it, rebuild it when it is lost, and move it.",
    {
        "log": log.log,
        "show": show_state.show,
        "verify": verify.verify,
        "repair": verify.repair,
        "rebuild": rebuild.rebuild,
        "export": transfer.export,
        "import": transfer.import_state,
    },
)
