"""`deployer changes`: the rows that commits inserted, updated and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.commands.data.query import (
    SHOWN,
    Columns,
    Limit,
    Output,
    RowFormat,
    RowFormatOption,
    SafeCsv,
    write_rows,
)
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def changes(
    table: TableName,
    since: Annotated[
        str,
        typer.Option(
            metavar="VERSION|TIME",
            help="Show the changes after this version, which `history` lists (0: before the first), or after "
            "this time (ISO 8601, UTC).",
        ),
    ],
    until: Annotated[
        str | None,
        typer.Option(metavar="VERSION|TIME", help="The last version. The newest by default.", show_default=False),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            help="SQL condition: only changes of rows that match it. A row that begins to match counts as "
            "inserted, and one that no longer matches as deleted.",
            show_default=False,
        ),
    ] = None,
    columns: Columns = None,
    limit: Limit = None,
    format: RowFormatOption = RowFormat.TABLE,
    output: Output = None,
    safe_csv: SafeCsv = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Show the rows that commits inserted, updated and deleted, oldest commit first. Reads only what they touched."""
    from deployer.cli.console.activity import show_activity
    from deployer.cli.console.output import note
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.platform.text.formatting import count
    from deployer.specs.types.column_names import split_names
    from deployer.tables.changes.feed import open_feed
    from deployer.tables.read.table import Rows, open_table

    on_progress = show_activity(f"reading the changes of {table}", as_json=as_json)
    root = root_to_read(project, stack, specs)
    names = split_names(columns, "--columns") if columns is not None else None
    feed = open_feed(
        open_table(root, table).opened, since, until, names, where, since_name="--since", until_name="--until"
    )
    for_people = format is RowFormat.TABLE and not as_json
    wanted = limit if limit is not None else SHOWN if for_people else None
    wanted = None if wanted == 0 else wanted
    touched = sum(len(each.parts) for each in feed.commits)
    rows = Rows(feed.schema, _first(feed.batches(), wanted), touched, touched)
    shown = write_rows(rows, format, output, as_json=as_json, safe_csv=safe_csv, on_progress=on_progress)
    note(f"{count(len(feed.commits), 'commit')} that changed rows, from version {feed.since} to {feed.until}")
    if for_people and shown is not None and shown == wanted:
        note("there may be more rows (--limit 0 shows all)")
    return 0


def _first(batches: Iterator[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """Yields at most this many rows, and reads no further."""
    left = limit
    for batch in batches:
        if left is None:
            yield batch
            continue
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return
