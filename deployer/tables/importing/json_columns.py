"""Columns of JSON rows: the types that Arrow finds in their values, and `json` for values without one common type."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.platform.files.reading import parse_json
from deployer.specs.types.arrow import column_of
from deployer.specs.types.column_names import listed
from deployer.specs.types.lance_support import type_findings
from deployer.tables.ingest.files.find import splits_of
from deployer.tables.ingest.files.json_rows import row_blocks
from deployer.tables.ingest.files.model import Source

_MOST_DIGITS = pa.decimal128(38, 0)
_REMEDY = "give JSON lines, one object a line, or an array of objects"


def json_rows(source: Source, limit: int) -> pa.Table:
    """Returns the first rows of a JSON file, a column for each field that one of them has.

    A column is `json` if its values have several types, or a type that tables do not store. Raises InvalidInput for
    what is not an object.
    """
    rows: list[dict[str, Any]] = []
    splits = splits_of([source])
    for lines in row_blocks(source, splits[0].start, splits[-1].stop):
        rows += [_row(line, source) for line in lines[: limit - len(rows)]]
        if len(rows) >= limit:
            break
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _column(name, [row.get(name) for row in rows]) for name in names})


def joined_json(tables: Sequence[pa.Table]) -> pa.Table:
    """Returns the rows of several files. A column is `json` if its types in the files have no common type."""
    for name in dict.fromkeys(name for table in tables for name in table.schema.names):
        schemas = [pa.schema([table.schema.field(name)]) for table in tables if name in table.schema.names]
        try:
            pa.unify_schemas(schemas, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            tables = [_with_documents(table, name) for table in tables]
    return pa.concat_tables(tables, promote_options="permissive")


def document_note(rows: pa.Table) -> list[str]:
    """Returns notes for users about the columns that are `json`."""
    names = [field.name for field in rows.schema if field.type == pa.json_()]
    if not names:
        return []
    what = listed(names[:3]) + (", …" if len(names) > 3 else "")
    return [f"json is the type of columns whose values have no common type: {what}"]


def _row(line: bytes, source: Source) -> dict[str, Any]:
    try:
        row = parse_json(line)
    except ValueError as failure:
        if line.strip() == b"{":
            what = "the file is one JSON object over several lines, and not rows"
            remedy = f"{_REMEDY}; if a field of the object has the rows, write its value to a file"
            raise InvalidInput(what, where=source.name, remedy=remedy) from None
        raise InvalidInput(f"a row is not JSON: {failure}", where=source.name, remedy=_REMEDY) from None
    if not isinstance(row, dict):
        raise InvalidInput("a row is not a JSON object", where=source.name, remedy=_REMEDY)
    return row


def _column(name: str, values: Sequence[Any]) -> pa.Array:
    try:
        found = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return _documents(values)
    except OverflowError:  # integers of more than 64 bits
        try:
            return pa.array(values, _MOST_DIGITS)
        except (pa.ArrowException, OverflowError):
            return _documents(values)
    if pa.types.is_null(found.type):
        return found
    if _has_unknown_part(found.type) or any(type_findings(column_of(pa.field(name, found.type)))):
        return _documents(values)
    return found


def _has_unknown_part(kind: pa.DataType) -> bool:
    """Returns whether a part of the type has no values in any row: an empty object, or lists that are all empty."""
    if pa.types.is_struct(kind):
        return not kind.num_fields or any(_has_unknown_part(kind.field(at).type) for at in range(kind.num_fields))
    return _has_unknown_part(kind.value_type) if pa.types.is_list(kind) else pa.types.is_null(kind)


def _with_documents(table: pa.Table, name: str) -> pa.Table:
    if name not in table.schema.names or table.schema.field(name).type == pa.json_():
        return table
    at = table.schema.get_field_index(name)
    return table.set_column(at, name, _documents(table.column(name).to_pylist()))


def _documents(values: Sequence[Any]) -> pa.Array:
    texts = [None if value is None else json.dumps(value, default=str) for value in values]
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts, pa.string()))
