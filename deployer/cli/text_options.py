"""Options of the commands that read text files, and how text is read by them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from deployer.tables.ingest.sources import ReadOptions

NullValues = Annotated[
    list[str] | None,
    typer.Option(
        "--null-value",
        help="CSV text that means null; repeatable. Empty values are null unless given.",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Character between CSV values. Unless given: a comma, a tab in .tsv, or the one that is detected.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str, typer.Option(help="Encoding of text files, such as latin-1 or cp1252. A byte order mark takes precedence.")
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first line of CSV files is a row.")]


def read_options(null_values: list[str] | None, delimiter: str | None, encoding: str, no_header: bool) -> ReadOptions:
    """How text is read. Raises InvalidInput for a delimiter that is not one character."""
    from deployer.errors import InvalidInput
    from deployer.tables.ingest.sources import ReadOptions

    if delimiter is not None and len(delimiter) != 1:
        raise InvalidInput(f"--delimiter {delimiter!r} is not one character", remedy="give one, such as ';'")
    return ReadOptions(tuple(null_values) if null_values else ("",), delimiter, encoding, not no_header)
