"""`deployer savepoint`: names moments of tables, to which `restore` can return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.live.model import Unreadable
    from deployer.platform.files.json_values import JSON
    from deployer.state.model.catalog_savepoints import CatalogSavepoint
    from deployer.state.reader import StateReader

app = typer.Typer(
    name="savepoint",
    help="Name savepoints of tables, which clean-ups keep and `deployer restore` returns to.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="The savepoint: letters, digits, '.', '_' and '-'.", metavar="NAME")]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        "-t",
        metavar="TABLE",
        help="Only this table, as `database.name`; repeatable. All tables of the instance by default.",
        show_default=False,
    ),
]


@app.command("create")
def create(
    name: Name,
    table: Tables = None,
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Remove the savepoint after this long, such as 7d or 36h. By default, it is kept until you delete it.",
        ),
    ] = None,
    note: Annotated[str, typer.Option(help="Purpose of the savepoint.")] = "",
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Make a savepoint of tables, all of one moment: rows, columns, partitions, keys and services.

    Without `--table` it is of the catalog too: its datasets of recordings and its entries of external tables.

    Tables that cannot be read are left out, and the exit code is 1. A table that `--table` names has to be readable.
    """
    from contextlib import closing
    from datetime import timedelta

    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.cli.summaries.unreadable import note_unreadable
    from deployer.platform.system.clock import Clock
    from deployer.platform.text.formatting import count
    from deployer.platform.text.units import parse_duration
    from deployer.services.savepoints.savepoints import make_savepoint
    from deployer.state import open_store
    from deployer.state.model.catalog_savepoints import catalog_records
    from deployer.state.model.times import as_document
    from deployer.tables.open_table import find_entries

    kept_for = None if expires is None else parse_duration(expires)
    root = root_to_read(project, stack, specs)
    with closing(open_store(root)) as store:
        entries = find_entries(store.instance().tables.values(), table)
        broken = [] if table else _unreadable(store, root)
        left_out = {each.table_id for each in broken}
        entries = [each for each in entries if each.table_id not in left_out]
        until = None if kept_for is None else Clock().now() + kept_for // timedelta(milliseconds=1)
        catalog = not table and bool(catalog_records(store.instance()))
        taken = make_savepoint(store, root, entries, name, expires_at=until, note=note, catalog=catalog)
    if as_json:
        tables = [{"table": each.full_name} | as_document(taken[each.table_id]) for each in entries]
        error = {"error": {"kind": "Corrupt", "unreadable": [each.as_row() for each in broken]}} if broken else {}
        print_json({"name": name, "tables": tables, "catalog": catalog, **error})
        return 1 if broken else 0
    what = f"{count(len(taken), 'table')}{' and the catalog' if catalog else ''}"
    stdout().print(f"savepoint {name} of {what}{_until(until)}")
    for each in entries:
        stdout().print(f"  {each.full_name} at version {taken[each.table_id].lance_version}", style="dim")
    note_unreadable(broken)
    return 1 if broken else 0


@app.command("list")
def list_(
    table: Tables = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List savepoints, the newest first, with the version of each table that they are of."""
    from contextlib import closing

    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.platform.system.clock import utc
    from deployer.state import open_reader
    from deployer.state.model.catalog_savepoints import catalog_savepoints
    from deployer.state.model.times import as_document
    from deployer.tables.open_table import find_entries

    with closing(open_reader(root_to_read(project, stack, specs))) as store:
        entries = find_entries(store.instance().tables.values(), table)
        states, failures = store.each_table([each.table_id for each in entries])
        of_catalog = {} if table else catalog_savepoints(store.instance())
    for each in entries:
        if each.table_id in failures:
            note(f"{each.full_name} cannot be read: {failures[each.table_id]}")
    entries = [each for each in entries if each.table_id in states]
    found = [(savepoint, each) for each in entries for savepoint in states[each.table_id].savepoints.values()]
    found.sort(key=lambda pair: (-pair[0].at, pair[0].name, pair[1].full_name))
    if as_json:
        listed = [{"table": entry.full_name} | as_document(savepoint) for savepoint, entry in found]
        print_json({"savepoints": listed, "catalog": [_as_row(each) for each in of_catalog.values()]})
        return 0
    if not found and not of_catalog:
        note("there are no savepoints: `deployer savepoint create NAME` makes one")
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("savepoint", "table", "version", "when (UTC)", "until (UTC)", "who", "note"):
        shown.add_column(column)
    for savepoint, entry in found:
        same = savepoint.dataset == states[entry.table_id].dataset
        version = str(savepoint.lance_version) if same else f"{savepoint.dataset}:{savepoint.lance_version}"
        times = utc(savepoint.at), utc(savepoint.expires_at) if savepoint.expires_at else ""
        shown.add_row(savepoint.name, entry.full_name, version, *times, savepoint.author, savepoint.note)
    for kept in of_catalog.values():
        times = utc(kept.at), utc(kept.expires_at) if kept.expires_at else ""
        shown.add_row(kept.name, "the catalog", "", *times, kept.author, kept.note)
    stdout().print(shown)
    return 0


@app.command("delete")
def delete(
    name: Name,
    table: Tables = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Delete a savepoint of all tables that have it, and of the catalog.

    The next clean-up removes what only the savepoint kept.
    """
    from contextlib import closing

    from deployer.cli.console.output import print_json, stdout
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.services.savepoints.savepoints import delete_savepoint
    from deployer.state import open_store
    from deployer.tables.open_table import find_entries

    root = root_to_read(project, stack, specs)
    with closing(open_store(root)) as store:
        entries = find_entries(store.instance().tables.values(), table)
        done = delete_savepoint(store, root, entries, name, catalog=not table)
    if as_json:
        print_json({"name": name, "tables": list(done)})
        return 0
    stdout().print(f"deleted savepoint {name} of {', '.join(done)}")
    return 0


def _unreadable(store: StateReader, root: str) -> list[Unreadable]:
    from deployer.live.reader import read_lake

    return [table for _, table in sorted(read_lake(store, root).unreadable.items())]


def _as_row(savepoint: CatalogSavepoint) -> dict[str, JSON]:
    """Returns the JSON form of a savepoint of the catalog, with the names of its entries instead of their records."""
    from deployer.state.model.times import as_document

    row = as_document(savepoint)
    records = row.pop("records")
    named = (each for each in records.values() if isinstance(each, dict) and "name" in each)
    return {**row, "entries": sorted(str(each["name"]) for each in named)}


def _until(ms: int | None) -> str:
    from deployer.platform.system.clock import utc

    return "" if ms is None else f", until {utc(ms)} UTC"
