"""`deployer query`: rows of one table by key, range or condition."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName, TableName
from deployer.platform.system.progress import OnProgress, Progress, no_progress

if TYPE_CHECKING:
    import pyarrow as pa

    from deployer.tables.read.table import Rows

SHOWN = 20  #: rows that are shown to people by default


class RowFormat(StrEnum):
    """The format of written rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


RowFormatOption = Annotated[
    RowFormat, typer.Option("--format", "-f", help="table for people; csv, json (lines) or parquet for programs.")
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to this file instead of stdout.", show_default=False)
]
SafeCsv = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        help="With --format csv: put ' before text and column names that begin with = + - @, a tab or a line break, so "
        "that a spreadsheet shows them and does not run them as formulas; quote all text. Numbers stay as they are.",
    ),
]
MOST_ROWS = 2**63 - 1  #: the most that Arrow can count
Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns to show, separated by commas; a name with a comma in double quotes. All by default.",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", "-n", min=0, max=MOST_ROWS, help=f"Show at most this many rows; a table shows {SHOWN}, 0 means all."
    ),
]


def query(
    table: TableName,
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--keys",
            metavar="VALUE[,VALUE…]",
            help="Rows with this row key, or whose row key starts with these values; repeatable.",
            show_default=False,
        ),
    ] = None,
    ranges: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            metavar="COLUMN=LOW..HIGH",
            help="Column between two values, both included (LOW<..HIGH and LOW..<HIGH leave one out; either may be "
            "missing); repeatable for other columns. Row keys, and columns that the table is clustered by, open fewer "
            "fragments.",
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            help="SQL condition on any column; a name with other than letters, digits and _ in backticks. Comparisons "
            "of row keys, or of columns that the table is clustered by, with literals open fewer fragments.",
            show_default=False,
        ),
    ] = None,
    columns: Columns = None,
    at: Annotated[
        str | None,
        typer.Option(help="A version that `history` lists, or a time (ISO 8601, UTC).", show_default=False),
    ] = None,
    limit: Limit = None,
    format: RowFormatOption = RowFormat.TABLE,
    output: Output = None,
    safe_csv: SafeCsv = False,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Show rows of a table. Keys and ranges open only the fragments that can match."""
    from deployer.cli.console.activity import show_activity
    from deployer.cli.console.output import note
    from deployer.cli.inputs.lake_root import root_to_read
    from deployer.specs.types.column_names import listed, split_names
    from deployer.tables.read.key_values import parse_keys, parse_ranges
    from deployer.tables.read.table import open_table

    on_progress = show_activity(f"reading {table}", as_json=as_json)
    root = root_to_read(project, stack, specs)
    opened = open_table(root, table)
    then = opened.keys_at(at if keys or ranges else None)
    if keys and then.row_keys != opened.row_keys:
        note(f"the row keys of that version are {listed(then.row_keys)}")
    found_keys = [parse_keys(then.schema, then.row_keys, text) for text in keys or ()]
    found_ranges = parse_ranges(then.schema, ranges or ())
    names = split_names(columns, "--columns") if columns is not None else None
    if names is None and at is None and len(visible := opened.opened.visible_columns) < len(opened.schema):
        names = tuple(visible)  # a view has hidden columns
    for_people = format is RowFormat.TABLE and not as_json
    wanted = limit if limit is not None else SHOWN if for_people else None
    wanted = None if wanted == 0 else wanted
    rows = opened.scan(where, names, at, wanted, found_keys, found_ranges)
    shown = write_rows(rows, format, output, as_json=as_json, safe_csv=safe_csv, on_progress=on_progress)
    if found_keys or found_ranges or where is not None:
        note(f"opened {rows.opened} of {rows.total} fragments")
    if for_people and shown is not None and shown == wanted:
        show_activity("counting the other rows")
        more = opened.count_where(where, at, found_keys, found_ranges) - shown
        if more:
            note(f"{more:,} more rows (--limit 0 shows all)")
    return 0


def write_rows(
    rows: Rows,
    format: RowFormat,
    output: Path | None,
    *,
    as_json: bool,
    safe_csv: bool = False,
    on_progress: OnProgress = no_progress,
) -> int | None:
    """Writes the rows in the requested format; returns their number where it is known.

    Rows are data, so nothing in them is masked.
    """
    from deployer.cli.console.streams import unmasked_rows

    rows_appear = output is None and format is not RowFormat.TABLE and sys.stdout.isatty()
    batches = _counted(rows.batches, on_progress, ends_activity=rows_appear)
    with unmasked_rows():
        return _write_rows(replace(rows, batches=batches), format, output, as_json=as_json, safe_csv=safe_csv)


def _counted(
    batches: Iterator[pa.RecordBatch], on_progress: OnProgress, *, ends_activity: bool
) -> Iterator[pa.RecordBatch]:
    """Yields the batches, and reports the number of their rows. `ends_activity`: the batches appear on the terminal
    that shows the activity, so the activity ends first."""
    from deployer.cli.console.on_screen import end_activity

    count = 0
    for batch in batches:
        count += batch.num_rows
        on_progress(Progress("reading", count, None, "rows"))
        if ends_activity:
            end_activity()
        yield batch


def _write_rows(rows: Rows, format: RowFormat, output: Path | None, *, as_json: bool, safe_csv: bool) -> int | None:
    import io

    from deployer.cli.commands.data.rows import print_rows, rows_as_json
    from deployer.cli.console.output import note, print_json
    from deployer.cli.console.streams import bytes_stream, data_stream
    from deployer.errors import InvalidInput
    from deployer.platform.files.private import replacing
    from deployer.tables.read.export import write_csv, write_json_lines, write_parquet, write_parquet_to

    if safe_csv and (as_json or format is not RowFormat.CSV):
        raise InvalidInput("--safe-csv changes CSV only", remedy="add --format csv, or leave --safe-csv out")
    if as_json:
        found = rows_as_json(rows.batches)
        print_json({"rows": found, "opened": rows.opened, "fragments": rows.total})
        return len(found)
    if format is RowFormat.PARQUET:
        if output is None:
            write_parquet_to(rows.schema, rows.batches, bytes_stream())
            return None
        count = write_parquet(rows.schema, rows.batches, output)
        note(f"wrote {count:,} rows to {output}")
        return count
    if format is RowFormat.TABLE:
        if output is not None:
            raise InvalidInput("--format table is for people", remedy="give --format csv, json or parquet for a file")
        return print_rows(rows.schema, rows.batches)

    def write(sink: IO[str]) -> None:
        if format is RowFormat.CSV:
            write_csv(rows.schema, rows.batches, sink, safe=safe_csv)
        else:
            write_json_lines(rows.batches, sink)
        sink.flush()

    try:
        if output is None:
            write(data_stream(as_json=format is RowFormat.JSON))
        else:
            with replacing(output, keeps_mode=True) as file:
                text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
                write(text)
                text.detach()
    except BrokenPipeError:
        raise
    except OSError as failure:
        raise InvalidInput(f"it cannot be written: {failure}", where=output, remedy="give another --output") from None
    return None
