"""`deployer service files|retry-files`: the files that a table's INGEST loaded or set aside."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName

if TYPE_CHECKING:
    from deployer.tables.open_table import ReadTable


class Which(StrEnum):
    """The files to list."""

    ALL = "all"
    LOADED = "loaded"
    SET_ASIDE = "set-aside"
    CHANGED = "changed"


def files(
    table: TableName,
    which: Annotated[
        Which, typer.Option("--status", help="Only files that were loaded, set aside, or changed since.")
    ] = Which.ALL,
    limit: Annotated[int, typer.Option(help="Show at most this many; 0 for all.", min=0)] = 50,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """List the files that a table's INGEST knows: those set aside with their reasons, changed ones, and loaded ones."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.table import looked_at
    from deployer.platform.system.clock import utc
    from deployer.platform.text.formatting import count, size
    from deployer.services.kinds.ingest.view import files_of
    from deployer.state.model.times import as_document

    with looked_at(project, stack, specs, table) as opened:
        every = files_of(opened)
        forecast = _forecast(opened) if not as_json else ""
    counts = {name: sum(each.status == name for each in every) for name in ("LOADED", "SET ASIDE", "CHANGED")}
    wanted = which.value.replace("-", " ").upper()
    found = [each for each in every if which is Which.ALL or each.status == wanted]
    shown = found[: limit or None]
    if as_json:
        totals = {name.lower().replace(" ", "_"): number for name, number in counts.items()}
        print_json({"table": opened.entry.full_name, **totals, "files": [as_document(each) for each in shown]})
        return 0
    stdout().print(
        f"{opened.entry.full_name}: {count(counts['LOADED'], 'file')} loaded, {counts['SET ASIDE']:,} set aside, "
        f"{counts['CHANGED']:,} changed since"
    )
    if shown:
        listed = Table(box=SIMPLE_HEAD, pad_edge=False)
        for name in ("status", "at (UTC)", "version"):
            listed.add_column(name)
        listed.add_column("bytes", justify="right")
        listed.add_column("file", overflow="fold")
        listed.add_column("why", overflow="fold")
        for each in shown:
            version = "" if each.lance_version is None else str(each.lance_version)
            listed.add_row(each.status, utc(each.at), version, size(each.bytes), Text(each.path), Text(each.reason))
        stdout().print(listed)
    if len(shown) < len(found):
        note(f"{len(found) - len(shown):,} more: --limit 0 shows all")
    if forecast:
        note(f"the next run {'does ' if forecast.startswith('nothing') else ''}{forecast}")
    return 0


def retry_files(
    table: TableName,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE]...", help="Files that were set aside; all by default.", show_default=False),
    ] = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Make the next run of a table's INGEST try again the files that were set aside."""
    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.table import looked_at
    from deployer.platform.text.formatting import count
    from deployer.services.kinds.ingest.view import retry

    with looked_at(project, stack, specs, table) as opened:
        tried = retry(opened.root, opened.entry.table_id, paths or ())
    if as_json:
        print_json({"table": opened.entry.full_name, "files": list(tried)})
        return 0
    if not tried:
        note(f"{opened.entry.full_name}: no file is set aside")
        return 0
    stdout().print(f"{opened.entry.full_name}: the next run tries {count(len(tried), 'file')} again")
    note(f"`deployer service run {opened.entry.full_name} INGEST` runs it now")
    return 0


def _forecast(opened: ReadTable) -> str:
    """Returns what the next run would do; empty where the table has no INGEST."""
    from deployer.services.registry import forecast

    return forecast(opened, "INGEST") if "INGEST" in opened.state.services else ""
