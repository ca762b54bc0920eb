"""The options of commands that read text files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from deployer.tables.ingest.files.model import ReadOptions

NullValues = Annotated[
    list[str] | None,
    typer.Option(
        "--null-value",
        help="CSV text that means null; repeatable. Empty values are null by default.",
        show_default=False,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Character between CSV values, or `whitespace`: runs of spaces and tabs. Default: a comma, a tab in "
        ".tsv, or the one that is detected.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str, typer.Option(help="Encoding of text files, such as latin-1 or cp1252. A byte order mark takes precedence.")
]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first line of CSV files is a row.")]

DateFormats = Annotated[
    list[str] | None,
    typer.Option(
        "--date-format",
        metavar="[COLUMN=]FORMAT",
        help="How text writes dates and times, such as %d.%m.%Y (as Python's strptime); repeatable for columns. "
        "ISO 8601 is always read.",
        show_default=False,
    ),
]
TimeZone = Annotated[
    str | None,
    typer.Option(help="Time zone of times without an offset, such as Europe/Berlin.", show_default=False),
]


def read_options(
    null_values: list[str] | None,
    delimiter: str | None,
    encoding: str,
    no_header: bool,
    date_formats: list[str] | None = None,
    timezone: str | None = None,
) -> ReadOptions:
    """Returns the options for reading text. Raises InvalidInput for wrong delimiters and date formats."""
    from deployer.errors import InvalidInput
    from deployer.tables.ingest.files.model import ReadOptions
    from deployer.tables.ingest.files.space_separated import WHITESPACE
    from deployer.tables.ingest.rows.time_texts import date_format

    if delimiter not in (None, WHITESPACE) and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
        raise InvalidInput(
            f"--delimiter {delimiter!r} is not one character of ASCII other than quotes and line ends",
            remedy="give one, such as ';', or `whitespace` for runs of spaces and tabs",
        )
    nulls = tuple(null_values) if null_values else ("",)
    formats = tuple(date_format(text) for text in date_formats or ())
    return ReadOptions(nulls, delimiter, encoding, not no_header, formats, timezone)
