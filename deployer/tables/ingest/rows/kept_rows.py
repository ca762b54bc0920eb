"""Bad rows in the form of their source, as JSON values that `ingest` can read again after they are repaired."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.platform.files.reading import parse_json
from deployer.tables.ingest.rows.bad_rows import BadRows, KeptRow, Problem
from deployer.tables.ingest.rows.field_map import FieldMap
from deployer.tables.ingest.rows.folder_columns import FolderColumns

if TYPE_CHECKING:
    from deployer.tables.ingest.rows.check import SourceRows

REASONS = "_bad"  #: the field of a kept row that lists why the row is bad; `ingest` ignores it
_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def with_rows(bad: BadRows, source: SourceRows, table: pa.Schema, folders: FolderColumns, fields: FieldMap) -> BadRows:
    """Returns `bad` with each row in the form of `source` and the `folders` of its file. The rows have the names of the
    file's fields, limited to fields that fill columns of the table or that expressions read."""
    kept: dict[int, KeptRow] = dict(bad.kept)
    in_files = fields.as_in_files(table)
    if source.lines is not None:
        kept = {number: _of_line(str(line), in_files, fields.mentioned) for number, line in kept.items()}
    wanted = [problem.row for problem in bad.problems if problem.row not in kept]
    places = [int(place) for place in np.flatnonzero(np.isin(source.numbers, wanted))]
    numbers = [int(number) for number in source.numbers[places]]
    if source.lines is not None:
        lines = (source.lines[place].decode(errors="replace") for place in places)
        found = [_of_line(line, in_files, fields.mentioned) for line in lines]
    else:
        found = [*_of_columns(_in_file(source, fields).take(pa.array(places, pa.int64())), in_files)]
    kept |= dict(zip(numbers, found, strict=True))
    given = {
        fields.name_in_files(name): _json_values(value, table.field(name).type)[0] for name, value in folders.items()
    }
    return replace(bad, kept={number: row if isinstance(row, str) else given | row for number, row in kept.items()})


def without_reasons(source: SourceRows, table: pa.Schema) -> SourceRows:
    """Returns JSON rows without the reasons that an earlier load wrote. A row that has only reasons becomes
    unreadable."""
    if REASONS in table.names or source.lines is None:
        return source
    rows, numbers, lines, bad = source.rows, source.numbers, source.lines, source.unreadable
    if REASONS in rows.schema.names:
        rows = rows.drop_columns([REASONS])
    empty = [place for place, line in enumerate(lines) if _has_only_reasons(line)]
    if empty:
        left_out = set(empty)
        problems = [Problem(int(numbers[place]), "", _ONLY_REASONS, None) for place in empty]
        texts = {int(numbers[place]): _line_in_reasons(lines[place]) for place in empty}
        good = [place for place in range(len(lines)) if place not in left_out]
        rows, numbers, lines = rows.take(pa.array(good, pa.int64())), numbers[good], [lines[place] for place in good]
        bad = bad.joined(BadRows.of(problems, kept=texts))
    return replace(source, rows=rows, numbers=numbers, lines=lines, unreadable=bad)


_ONLY_REASONS = f"has only its reasons ({REASONS}); write the row's fields beside them, or remove the line"


def _has_only_reasons(line: bytes) -> bool:
    if f'"{REASONS}"'.encode() not in line:
        return False
    try:
        row = parse_json(line)
    except ValueError:
        return False
    return isinstance(row, dict) and row.keys() == {REASONS}


def _line_in_reasons(line: bytes) -> str:
    """Returns the line that an earlier load could not read and kept with its reasons. Returns the given line itself
    where there is none."""
    reasons = parse_json(line)[REASONS]
    first = reasons[0] if isinstance(reasons, list) and reasons else None
    kept = first.get("line") if isinstance(first, dict) else None
    return kept if isinstance(kept, str) else line.decode(errors="replace")


def _in_file(source: SourceRows, fields: FieldMap) -> pa.RecordBatch:
    """Returns the rows with the names of the file's fields, and the fields that only expressions read."""
    if fields.is_trivial:
        return source.rows
    names = [name for name in source.rows.schema.names if name not in fields.selected]
    found = {source.fields.get(name, fields.name_in_files(name)): source.rows.column(name) for name in names}
    if source.inputs is not None:
        found |= dict(zip(source.inputs.schema.names, source.inputs.columns, strict=True))
    return pa.RecordBatch.from_pydict(found)


def _of_line(line: str, table: pa.Schema, inputs: Collection[str]) -> KeptRow:
    """Returns the fields of a JSON object that the table has or that are `inputs` of expressions. Returns the line
    itself where it is not a JSON object."""
    try:
        row = parse_json(line)
    except ValueError:
        return line
    if not isinstance(row, dict):
        return line
    exact = json.loads(line, parse_float=Decimal) if any(_has_decimals(field.type) for field in table) else row
    known = {
        field.name: _decimals_as_text(exact[field.name]) if _has_decimals(field.type) else row[field.name]
        for field in table
        if field.name in row
    }
    return {name: value for name, value in row.items() if name in inputs} | known if inputs else known


def _has_decimals(kind: pa.DataType) -> bool:
    return "decimal" in str(kind)


def _decimals_as_text(value: Any) -> Any:
    """Returns a JSON value in which decimals are text, so that no number loses digits."""
    match value:
        case Decimal():
            return str(value)
        case dict():
            return {name: _decimals_as_text(item) for name, item in value.items()}
        case list():
            return [_decimals_as_text(item) for item in value]
        case _:
            return value


def fields_of(rows: pa.RecordBatch, table: pa.Schema) -> Sequence[dict[str, Any]]:
    """Returns rows of the table as JSON values that `ingest` reads again."""
    return _of_columns(rows, table)


def _of_columns(rows: pa.RecordBatch, table: pa.Schema) -> Sequence[dict[str, Any]]:
    columns: Mapping[str, list[Any]] = {
        name: _json_values(values, table.field(name).type if name in table.names else values.type)
        for name, values in zip(rows.schema.names, rows.columns, strict=True)
    }
    return [{name: values[row] for name, values in columns.items()} for row in range(rows.num_rows)]


def _json_values(values: Any, target: pa.DataType) -> list[Any]:
    types = pa.types
    if types.is_duration(values.type):
        return list(pc.cast(values, pa.int64()).to_pylist())
    listed = values.to_pylist()
    if types.is_string(values.type) and not types.is_string(target):
        return [_of_text(value, target) for value in listed]
    return [_json_value(value, values.type) for value in listed]


def _of_text(value: str | None, target: pa.DataType) -> Any:
    """Returns a CSV value as the JSON value from which a column of the type is read. Text that does not fit the type
    stays text."""
    types = pa.types
    text = "" if value is None else value.strip()
    if (types.is_integer(target) or types.is_duration(target)) and _WHOLE.fullmatch(text):
        return int(text)
    if types.is_floating(target) and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    if types.is_boolean(target) and text.lower() in ("true", "false", "1", "0"):
        return text.lower() in ("true", "1")
    return value


def _json_value(value: Any, kind: pa.DataType) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Decimal():
            return str(value)
        case bytes():
            return _json_bytes(value)
        case dict():
            return {str(name): _json_value(item, kind.field(name).type) for name, item in value.items()}
        case list() if pa.types.is_map(kind):
            return [
                {"key": _json_value(key, kind.key_type), "value": _json_value(item, kind.item_type)}
                for key, item in value
            ]
        case list():
            return [_json_value(item, kind.value_type) for item in value]
        case _ if hasattr(value, "isoformat"):
            return value.isoformat()
        case _ if pa.types.is_floating(kind):
            return float(value)
        case _:
            return str(value)


def _json_bytes(value: bytes) -> Any:
    """Returns bytes as text, from which a binary column is read. Bytes that are not UTF-8 become an object, which a
    binary column does not accept."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(value).decode()}
