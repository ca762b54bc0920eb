"""`deployer sql`: a SELECT over the lake's tables."""

from __future__ import annotations

from typing import Annotated

import typer

from deployer.cli.commands.data.query import SHOWN, Limit, Output, RowFormat, RowFormatOption, SafeCsv, write_rows
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName


def sql(
    statement: Annotated[
        str, typer.Argument(metavar="SELECT", help="One query; tables are `database.name` or `name`.")
    ],
    limit: Limit = None,
    format: RowFormatOption = RowFormat.TABLE,
    output: Output = None,
    safe_csv: SafeCsv = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Query and join tables with SQL (DataFusion). Reads only; names with capitals are quoted: "Name"."""
    from contextlib import closing
    from dataclasses import replace

    from deployer.cli.commands.data.rows import limited
    from deployer.cli.console.activity import show_activity
    from deployer.cli.console.output import note
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.state import open_reader
    from deployer.tables.read.sql import run_sql

    on_progress = show_activity("running the query", as_json=as_json)
    root = root_to_read(project, stack, specs)
    for_people = format is RowFormat.TABLE and not as_json
    wanted = limit if limit is not None else SHOWN if for_people else None
    wanted = None if wanted == 0 else wanted
    with closing(open_reader(root)) as store:
        rows = run_sql(store, root, statement)
        left = limited(rows.batches, wanted + 1 if wanted is not None and for_people else wanted)
        if not for_people or wanted is None:
            write_rows(
                replace(rows, batches=left), format, output, as_json=as_json, safe_csv=safe_csv, on_progress=on_progress
            )
            note(f"opened {rows.opened} of {rows.total} fragments")
            return 0
        batches = list(left)
        found = sum(batch.num_rows for batch in batches)
        shown = replace(rows, batches=limited(iter(batches), wanted))
        write_rows(shown, format, output, as_json=as_json, safe_csv=safe_csv, on_progress=on_progress)
        note(f"opened {rows.opened} of {rows.total} fragments")
        if found > wanted:
            note("there are more rows (--limit 0 shows all)")
    return 0
