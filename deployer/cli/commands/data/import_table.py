"""`deployer import`: imports existing tables, and writes their specs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from deployer.cli.inputs.text_options import DateFormats, Delimiter, Encoding, NoHeader, NullValues, read_options
from deployer.cli.options import DEFAULT_STACK, AsJson, ProjectDir, SpecsPath, StackName

if TYPE_CHECKING:
    from deployer.app import ImportResult

_KEYS_LATER = "declare `row_keys` in the spec, and `deployer up` rewrites the table in their order"


def import_table(
    address: Annotated[
        str | None, typer.Argument(help="The table, such as table/nyc.flights.", show_default=False)
    ] = None,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[URI]",
            help="A Lance dataset, or files to copy from; else ROOT/NAME.lance or ROOT/DATABASE/NAME.lance.",
            show_default=False,
        ),
    ] = None,
    all_of: Annotated[
        str | None,
        typer.Option("--all", metavar="ROOT", help="Import every ROOT/*.lance, where they are.", show_default=False),
    ] = None,
    database: Annotated[str, typer.Option(help="With --all: the tables' database.")] = "main",
    copy: Annotated[bool, typer.Option("--copy", help="Copy the rows even from below the root.")] = False,
    row_keys: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Row keys of a copy, such as id,at.", show_default=False)
    ] = None,
    sort_keys: Annotated[
        str | None, typer.Option(metavar="COLUMNS", help="Sort keys of a copy.", show_default=False)
    ] = None,
    null_value: NullValues = None,
    delimiter: Delimiter = None,
    encoding: Encoding = "utf-8",
    no_header: NoHeader = False,
    date_format: DateFormats = None,
    project: ProjectDir = None,
    stack: StackName = DEFAULT_STACK,
    specs: SpecsPath = None,
    as_json: AsJson = False,
) -> int:
    """Take existing tables under management and write their specs; a preview is clean afterwards.

    A Lance dataset below the instance's root stays where it is. Anything else is copied into a new table.
    The same command finishes an import that was interrupted.
    """
    from deployer import app
    from deployer.cli.console.activity import show_progress
    from deployer.cli.console.output import print_json
    from deployer.errors import InvalidInput

    if (address is None) == (all_of is None):
        raise InvalidInput("give an ADDRESS, or --all ROOT", remedy="such as table/nyc.flights data/flights.parquet")
    if all_of is not None and (row_keys or sort_keys):
        raise InvalidInput("--all leaves rows where they are, and so in their order", remedy=_KEYS_LATER)
    keys = (_columns(row_keys, "--row-keys"), _columns(sort_keys, "--sort-keys"))
    options = read_options(null_value, delimiter, encoding, no_header, date_format)
    on_progress = show_progress("importing", as_json=as_json)
    if all_of is not None:
        done = app.import_tables(
            all_of, database=database, project=project, stack=stack, specs=specs, on_progress=on_progress
        )
    else:
        assert address is not None  # noqa: S101
        done = app.import_table(
            address,
            source,
            project=project,
            stack=stack,
            specs=specs,
            copy=copy,
            row_keys=keys[0],
            sort_keys=keys[1],
            options=options,
            on_progress=on_progress,
        )
    print_json(done.to_json()) if as_json else _print(done)
    return 1 if done.failed else 0


def _print(done: ImportResult) -> None:
    from deployer.cli.console.output import note, stdout

    for each in done.imported:
        if each.managed:
            where = f"{each.rows:,} rows, declared in {each.file}"
            stdout().print(f"{each.address} is managed already: {where}; nothing was done", soft_wrap=True)
            continue
        how = f"{each.rows:,} rows copied" if each.copied else f"{each.rows:,} rows where they are"
        stdout().print(f"imported {each.address}: {how}, declared in {each.file}", soft_wrap=True)
    for text in dict.fromkeys(text for each in done.imported for text in each.notes or ()):
        note(text)
    if any(not each.row_keys and not each.managed for each in done.imported):
        note(f"without row keys, rows lie in no order: {_KEYS_LATER}")
    for name, why in done.failed.items():
        note(f"left out {name}: {why}")


def _columns(text: str | None, option: str) -> tuple[str, ...]:
    from deployer.specs.types.column_names import split_names

    return split_names(text, option) if text else ()
