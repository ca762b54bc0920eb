"""`deployer schema infer`: writes the spec of a table from data."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.inputs.text_options import DateFormats, Delimiter, Encoding, NoHeader, NullValues, read_options
from deployer.cli.options import AsJson

if TYPE_CHECKING:
    from deployer.specs.model import TableSpec
    from deployer.tables.importing.infer import InferredColumns
    from deployer.tables.ingest.files.model import ReadOptions


def infer(
    files: Annotated[list[str], typer.Argument(help="Files, folders, globs or a Lance dataset; - is stdin.")],
    table: Annotated[
        str | None,
        typer.Option(help="The table as `database.name`; else `main` and the first file's name.", show_default=False),
    ] = None,
    format: Annotated[str | None, typer.Option(help="Format, if the name does not show it.")] = None,
    null_value: NullValues = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    no_header: NoHeader = False,
    date_format: DateFormats = None,
    rows: Annotated[int, typer.Option(min=1, help="Read at most this many rows.")] = 1_000_000,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the spec here, not to stdout.")] = None,
    as_json: AsJson = False,
) -> int:
    """Write the spec of a table from Parquet, CSV, JSON lines, Arrow or Lance: types, nulls, possible row keys."""
    from deployer.app.planning.addresses import split_name, table_name
    from deployer.cli.console.output import note, print_data, print_json
    from deployer.cli.inputs.standard_input import standard_input
    from deployer.errors import InvalidInput
    from deployer.specs.model import TableSpec
    from deployer.specs.serialized.specs import table_to_json
    from deployer.tables.importing.infer import infer as infer_columns
    from deployer.tables.ingest.files.model import Format

    known = None
    if format is not None:
        if format not in list(Format):
            raise InvalidInput(f"unknown --format {format!r}", remedy=f"give one of {', '.join(Format)}")
        known = Format(format)
    options = read_options(null_value, delimiter, encoding, no_header, date_format)
    database, name = split_name(table or f"main.{table_name(files[0])}")
    with standard_input(files, format) as paths:
        found = infer_columns(paths, known, options, rows)
    spec = TableSpec(database, name, found.columns)
    if as_json:
        print_json(
            {
                "table": table_to_json(spec),
                "rows": found.rows,
                "row_keys": list(found.row_keys),
                "notes": list(found.notes),
                "ingest_options": ingest_options(found.options),
            }
        )
        return 0
    text = spec_text(spec, found)
    if out is None:
        print_data(text)
        return 0
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("x", encoding="utf-8") as file:  # mode "x" also refuses a broken link
            file.write(text)
    except FileExistsError:
        raise InvalidInput("the file exists already", where=out, remedy="choose another one") from None
    note(f"wrote {out}")
    return 0


def spec_text(spec: TableSpec, found: InferredColumns) -> str:
    """Returns the Table document, with comments: the assumptions, the options that load the data, and possible row
    keys."""
    from deployer.platform.text.visible import visible
    from deployer.specs.editing.write import table_to_yaml

    text = table_to_yaml(spec)
    text += "".join(f"# {visible(each)}\n" for each in found.notes)
    if options := ingest_options(found.options):
        text += f"# To load it: deployer ingest {spec.full_name} FILE {visible(shlex.join(options))}\n"
    if found.row_keys:
        text += f"# Unique and never null in the {found.rows:,} rows that were read:\n"
        text += f"# row_keys: {_flow(found.row_keys)}\n"
    if not found.complete:
        text += f"# From the first {found.rows:,} rows; later ones may hold nulls.\n"
    return text


def _flow(names: Sequence[str]) -> str:
    """Returns names as a YAML list in one line."""
    from deployer.platform.text.visible import json_text, visible
    from deployer.specs.yaml.nodes import resolve_plain

    plain = {name: name.isidentifier() and resolve_plain(name) == name for name in names}
    return f"[{', '.join(visible(name) if plain[name] else json_text(name) for name in names)}]"


def ingest_options(options: ReadOptions) -> list[str]:
    """Returns the options of `deployer ingest` that differ from its defaults."""
    usual = type(options)()
    given: list[str] = []
    if options.null_values != usual.null_values:
        given += [word for text in options.null_values for word in ("--null-value", text)]
    if options.delimiter is not None:
        given += ["--delimiter", options.delimiter]
    if options.encoding != usual.encoding:
        given += ["--encoding", options.encoding]
    if not options.header:
        given.append("--no-header")
    for column, form in options.date_formats:
        given += ["--date-format", form if column is None else f"{column}={form}"]
    return given
