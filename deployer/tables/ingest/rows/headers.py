"""Header lines of CSV files. A file without a header line has the table's columns in the table's order."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.specs.types.column_names import listed
from deployer.tables.ingest.files.model import Format, Source
from deployer.tables.ingest.rows.field_map import FieldMap

_VALUE = re.compile(r"\s*[-+]?\.?[0-9][0-9.,:/eE+ -]*")  #: a number, a date or a time, which few headers have
_YEAR = re.compile(r"(19|20)[0-9]{2}")
_QUESTION = "; is there a header line? If the first line is a row, give --no-header"


def names_of_csv(source: Source, table: pa.Schema, fields: FieldMap) -> tuple[str, ...]:
    """Returns the fields of a CSV file. Without a header line, these are the table's columns that no expression
    computes, in order. Raises InvalidInput where the number of values differs from the number of columns."""
    names = source.dialect.names
    if source.dialect.header:
        return names
    columns = [name for name in table.names if name not in fields.selected]
    if len(names) != len(columns):
        raise InvalidInput(
            f"the first row has {len(names)} value{'' if len(names) == 1 else 's'}, and the table has {len(columns)} "
            f"column{'' if len(columns) == 1 else 's'} ({listed(columns)})",
            where=source.name,
            remedy="without a header line a file has all columns of the table in their order; check --delimiter, or "
            "add a header line",
        )
    return tuple(map(fields.name_in_files, columns))


def check_header(columns: pa.Schema) -> str | None:
    """Returns a note for people where the names of a CSV file may be values of its first row; None where they are
    certainly names. `columns` has the names and the types of the values.

    A name that is not a value, of a column of numbers, dates or booleans, shows that the first line has names. An empty
    name, which row names have, shows this too. Otherwise, years are accepted as names, with the note. Raises
    InvalidInput for other numbers, dates and times.
    """
    values = [name for name in columns.names if _VALUE.fullmatch(name)]
    texts = {field.name for field in columns if pa.types.is_string(field.type) or pa.types.is_null(field.type)}
    if not values or "" in columns.names or set(columns.names) - texts - set(values):
        return None
    if others := [name for name in values if not _YEAR.fullmatch(name)]:
        raise InvalidInput(
            f"the first line names a column {others[0]!r}, as a row would",
            remedy="if it is a row, give --no-header; else declare the table in a spec, and load the file by `ingest`",
        )
    return f"the first line is taken for names, with {listed(values[:3])}; if it is a row, give --no-header"


def header_question(names: Sequence[str]) -> str:
    """Returns a question about the header line, to add to a remedy, where a name is a number, a date or a time; empty
    otherwise."""
    return _QUESTION if any(_VALUE.fullmatch(name) for name in names) else ""


def with_header_question(error: InvalidInput, source: Source, table: pa.Schema) -> InvalidInput:
    """Returns the error with a hint at what is unusual in the header line of a CSV file, or the question whether that
    line is a row."""
    if source.format is not Format.CSV or not source.dialect.header:
        return error
    names = source.dialect.names
    if source.dialect.row_names:
        count = len(names) - 1
        return InvalidInput(
            f"the header line has {count} name{'' if count == 1 else 's'}, and the rows have {count + 1} values; "
            + error.what,
            where=error.where,
            remedy="name every column in the header line; the first values, which have no name, are row names if R "
            'wrote the file: give a column `source: ""`, or --rename =COLUMN, or leave them out with --ignore-extra',
        )
    has_no_known_name = len(names) == len(table) and not set(names) & set(table.names)
    question = _QUESTION if has_no_known_name else header_question(names)
    if source.dialect.repeated:
        question += "; a name that the header line has twice gets a number: x, x.1"
    return InvalidInput(error.what, where=error.where, remedy=error.remedy + question)
