"""Reads JSON: lines of one object each, or one array of objects.

Numbers, booleans and nested values have JSON's types; all other values are text. Arrow reads the lines. Lines that
Arrow would not read correctly are rewritten first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from deployer.platform.files.reading import parse_json
from deployer.tables.conversion.json_values import Misfit, has_decimal, needs_rewriting, rewritten
from deployer.tables.ingest.files.json_rows import row_blocks
from deployer.tables.ingest.files.source_files import file_size
from deployer.tables.ingest.rows.bad_rows import BadRows, Problem
from deployer.tables.ingest.rows.check import SourceRows, type_name

if TYPE_CHECKING:
    from deployer.tables.ingest.files.model import Source, Split

SAMPLE_LINES = 1000
_LONG_NUMBER = re.compile(rb"[0-9]{38}|[0-9.][eE][-+]?[0-9]")  #: numbers that Arrow may read as a different decimal
MOST_BRACKETS = 5_000  #: up to this number of brackets, a line is read without a check of its nesting depth


def schema_of_sample(source: Source, table: pa.Schema, inputs: Collection[str] = ()) -> pa.Schema:
    """Returns the fields of the first lines. Fields that fill a column have the type that JSON is read as for it.

    Other fields have the type of their values if they are `inputs` of expressions, else the type null.
    """
    names: dict[str, None] = {}
    values: dict[str, list[Any]] = {}
    for lines in row_blocks(source, 0, file_size(source.path)):
        for line in lines[:SAMPLE_LINES]:
            try:
                row = parse_json(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                names.update(dict.fromkeys(row))
                for name in inputs:
                    values.setdefault(name, []).append(row.get(name))
        break
    types = {name: _type_of_values(each) for name, each in values.items()}
    types |= {field.name: read_type(field.type) for field in table}
    return pa.schema([pa.field(name, types.get(name, pa.null())) for name in names])


def _type_of_values(values: Sequence[Any]) -> pa.DataType:
    """Returns the type of JSON values; text where it is unknown."""
    try:
        found = pa.infer_type(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.string()
    return pa.string() if pa.types.is_null(found) else found


def read_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type that JSON is read as for a column of the table. Types without a form in JSON are read as
    text."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return pa.string()
    if types.is_dictionary(kind):
        return read_type(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(read_type(kind.value_type))
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, read_type(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.list_(pa.struct([("key", read_type(kind.key_type)), ("value", read_type(kind.item_type))]))
    if types.is_float16(kind):
        return pa.float32()
    if types.is_duration(kind):
        return pa.int64()
    if types.is_decimal(kind):
        return pa.decimal256(76, kind.scale)  # Arrow reads numbers with more than 38 digits incorrectly as decimal128
    plain = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)
    return kind if plain else pa.string()


def read_json(
    split: Split, table: pa.Schema, columns: Sequence[str], *, ignore_extra: bool = False
) -> Iterator[SourceRows]:
    """Yields the rows of a split. Rows that are not an object, or whose values have another JSON type, are unreadable.

    The rows also have fields that the table does not have. If `ignore_extra`, some of these are left out.
    """
    reader = _Reader(table, tuple(name for name in columns if name in table.names), ignore_extra)
    start = 0
    for lines in row_blocks(split.source, split.start, split.stop):
        rows, good, bad = reader.parse(lines)
        numbers = start + 1 + np.array(good, np.int64)
        problems = [Problem(start + 1 + at, column, reason, value) for at, column, reason, value in bad]
        kept = {start + 1 + at: lines[at].decode(errors="replace") for at, *_ in bad}
        start += len(lines)
        unreadable = BadRows.of(problems, kept=kept)
        yield SourceRows(rows, numbers, unreadable, [lines[at] for at in good])


def _read(lines: Sequence[bytes], schema: pa.Schema, *, extra: str = "infer") -> pa.Table:
    if max(map(len, lines)) > MOST_BRACKETS and any(map(_is_too_deep, lines)):
        raise pa.ArrowInvalid("nested too deep")  # Arrow's parser has no limit of depth, and would crash the process
    options = pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=extra)
    data = b"\n".join(lines) + b"\n"
    read = pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    table = pa_json.read_json(BytesIO(data), read_options=read, parse_options=options)
    if b"Inf" not in data and any(map(_has_infinity, table.select(schema.names).columns)):
        raise pa.ArrowInvalid("a number is too large for a float")
    return table


def _has_infinity(values: Any) -> bool:
    if pa.types.is_floating(values.type):
        return bool(pc.any(pc.is_inf(values)).as_py())
    if isinstance(values, pa.ChunkedArray) and pa.types.is_nested(values.type):
        return any(map(_has_infinity, values.chunks))
    if pa.types.is_list(values.type):
        return _has_infinity(values.flatten())
    return pa.types.is_struct(values.type) and any(map(_has_infinity, values.flatten()))


def _is_too_deep(line: bytes) -> bool:
    """Returns whether a line is not safe to read, because it has many brackets and is not JSON or nested too deep."""
    if line.count(b"[") + line.count(b"{") <= MOST_BRACKETS:
        return False
    try:
        parse_json(line)
    except ValueError:
        return True
    return False


_Bad = tuple[int, str, str, str | None]  #: a bad line: its index, the column that does not fit, the reason, the value


class _Reader:
    """The reader of lines for some columns of a table."""

    def __init__(self, table: pa.Schema, columns: Sequence[str], ignore_extra: bool) -> None:
        self._table, self._columns, self._ignore_extra = table, frozenset(columns), ignore_extra
        types = [table.field(name).type for name in columns]
        self._schema = pa.schema([pa.field(name, read_type(kind)) for name, kind in zip(columns, types, strict=True)])
        self._always_rewrites = any(map(needs_rewriting, types))
        self._has_decimals = any(map(has_decimal, types))

    def parse(self, lines: Sequence[bytes]) -> tuple[pa.RecordBatch, list[int], list[_Bad]]:
        """Returns the rows that can be read, the indexes of their lines, and the problems of the other lines."""
        if not lines:
            return _nothing(self._schema), [], []
        if not self._always_rewrites and not (self._has_decimals and any(map(_LONG_NUMBER.search, lines))):
            try:
                return _batch(_read(lines, self._schema)), list(range(len(lines))), []
            except pa.ArrowInvalid:
                pass
        bad: list[_Bad] = []
        written: dict[int, bytes] = {}
        for place, line in enumerate(lines):
            try:
                written[place] = rewritten(line, self._table, self._columns, ignore_extra=self._ignore_extra)
            except Misfit as misfit:
                reason = misfit.reason or f"does not fit {type_name(self._table.field(misfit.column))}"
                bad.append((place, misfit.column, reason, misfit.value))
        rows, failing = self._readable(written)
        bad += [(place, *self._why(written[place], lines[place], failure)) for place, failure in failing.items()]
        return rows, [place for place in written if place not in failing], bad

    def _readable(self, lines: Mapping[int, bytes]) -> tuple[pa.RecordBatch, dict[int, Exception]]:
        """Returns the rows of the lines that Arrow can read, and Arrow's errors for the other lines, by index."""
        places, failing = list(lines), dict[int, Exception]()
        pending = [places]
        try:
            if places:
                return _batch(_read([*lines.values()], self._schema)), failing
        except pa.ArrowInvalid:
            while pending:
                part = pending.pop()
                try:
                    if part:
                        _read([lines[place] for place in part], self._schema)
                except pa.ArrowInvalid as failure:
                    if len(part) == 1:
                        failing[part[0]] = failure
                    else:
                        pending += [part[: len(part) // 2], part[len(part) // 2 :]]
        good = [lines[place] for place in places if place not in failing]
        return _batch(_read(good, self._schema)) if good else _nothing(self._schema), failing

    def _why(self, line: bytes, original: bytes, failure: Exception) -> tuple[str, str, str | None]:
        """Returns the column that does not fit (empty: the whole row), the reason and the value."""
        row = json.loads(original)
        for field in self._schema:
            try:
                _read([line], pa.schema([field]), extra="ignore")
            except pa.ArrowInvalid:
                value = row.get(field.name)
                shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                return field.name, f"does not fit {type_name(self._table.field(field.name))}", shown
        text = original.decode(errors="replace")
        return "", f"cannot be read: {str(failure).splitlines()[0]}", text


def _batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else _nothing(table.schema)


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
