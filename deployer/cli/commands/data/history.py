"""`deployer history`: the versions of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName

#: descriptions of operations of plain Lance whose names do not explain them
_WORDS = {"merge": "add or rewrite columns", "project": "drop or alter columns", "update config": "change settings"}


def history(
    table: TableName,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=0, help="Show at most this many versions; 0 means all.")
    ] = 20,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Show a table's versions, the newest first: when, by whom, what was done. `query --at` reads any of them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from deployer.cli.console.output import note, print_json, stdout
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.state.model.times import as_document
    from deployer.tables.read.table import open_table

    root = root_to_read(project, stack, specs)
    opened = open_table(root, table)
    versions = opened.history()
    chosen = versions[:limit] if limit else versions
    if as_json:
        listed = [as_document(each) for each in chosen]
        print_json({"table": opened.name, "versions": listed, "total": len(versions)})
        return 0
    shown = Table(box=SIMPLE_HEAD, pad_edge=False)
    shown.add_column("version", justify="right")
    shown.add_column("when (UTC)")
    shown.add_column("what")
    shown.add_column("rows", justify="right")
    shown.add_column("who")
    shown.add_column("job")
    for each in chosen:
        what = each.kind or _WORDS.get(each.operation, each.operation) or "unknown"
        what = f"{what}: {'; '.join(each.changes)}" if each.changes else what
        rows = "" if each.rows is None else f"{each.rows:+,}"
        who = "not deployer" if each.foreign else each.author
        number = str(each.version) if each.dataset == versions[0].dataset else f"{each.dataset}:{each.version}"
        shown.add_row(number, f"{each.at:%Y-%m-%d %H:%M:%S}", what, rows, who, each.job_id)
    stdout().print(shown)
    if len(chosen) < len(versions):
        note(f"{len(versions) - len(chosen):,} older versions (--limit 0 shows all)")
    return 0
