"""Reads JSON lines: one object a line. Numbers, booleans and nested values have JSON's types, all else is text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from deployer.files.reading import parse_json
from deployer.tables.ingest.bad_rows import BadRows, Problem
from deployer.tables.ingest.check import SourceRows
from deployer.tables.ingest.source_files import file_size
from deployer.tables.ingest.text_blocks import line_blocks, open_range

if TYPE_CHECKING:
    from deployer.tables.ingest.sources import Source, Split

SAMPLE_LINES = 1000
MOST_BRACKETS = 5_000  #: of a line that needs no look at how deep it is


def schema_of_sample(source: Source, table: pa.Schema) -> pa.Schema:
    """The names that the first lines have, with the types that the table's columns are read as (else null)."""
    names: dict[str, None] = {}
    for block in line_blocks(open_range(source, 0, file_size(source.path)), source.name):
        for line in block.splitlines()[:SAMPLE_LINES]:
            try:
                row = parse_json(line)
            except ValueError:
                continue
            if isinstance(row, dict):
                names.update(dict.fromkeys(row))
        break
    types = {field.name: read_type(field.type) for field in table}
    return pa.schema([pa.field(name, types.get(name, pa.null())) for name in names])


def read_type(kind: pa.DataType) -> pa.DataType:
    """The type that JSON is read as for a column of the table: what JSON has no form for is text."""
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
    plain = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return kind if plain else pa.string()


def read_json(split: Split, table: pa.Schema, columns: Sequence[str]) -> Iterator[SourceRows]:
    """The rows of a split. Lines that are no object, or whose values have another JSON type, are unreadable."""
    wanted = pa.schema([pa.field(name, read_type(table.field(name).type)) for name in columns if name in table.names])
    start = 0
    for block in line_blocks(open_range(split.source, split.start, split.stop), split.source.name):
        lines = [line for line in block.splitlines() if line.strip()]
        rows, good, bad = _parse(lines, wanted)
        numbers = start + 1 + np.array(good, np.int64)
        problems = [Problem(start + 1 + at, column, reason, value) for at, column, reason, value in bad]
        kept = {start + 1 + at: lines[at].decode(errors="replace") for at, *_ in bad}
        start += len(lines)
        unreadable = BadRows.of(problems, kept=kept)
        yield SourceRows(_as_table_has(rows, table), numbers, unreadable, [lines[at] for at in good])


def _read(lines: Sequence[bytes], schema: pa.Schema, *, extra: str = "infer") -> pa.Table:
    if max(map(len, lines)) > MOST_BRACKETS and any(map(_is_too_deep, lines)):
        raise pa.ArrowInvalid("nested too deep")  # Arrow's parser has no limit, and ends the process
    options = pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=extra)
    data = b"\n".join(lines) + b"\n"
    read = pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    return pa_json.read_json(BytesIO(data), read_options=read, parse_options=options)


def _is_too_deep(line: bytes) -> bool:
    """Whether a line is not safe to read: it has many brackets, and is not JSON, or is nested too deep."""
    if line.count(b"[") + line.count(b"{") <= MOST_BRACKETS:
        return False
    try:
        parse_json(line)
    except ValueError:
        return True
    return False


_Bad = tuple[int, str, str, str | None]


def _parse(lines: Sequence[bytes], schema: pa.Schema) -> tuple[pa.RecordBatch, list[int], list[_Bad]]:
    """The rows that can be read, the places of these among the lines, and what is wrong with the others."""
    bad: list[_Bad] = []
    pending, failing = [(0, len(lines))], set[int]()
    try:
        if lines:
            return _batch(_read(lines, schema)), list(range(len(lines))), bad
    except pa.ArrowInvalid:
        while pending:
            start, end = pending.pop()
            try:
                if start < end:
                    _read(lines[start:end], schema)
            except pa.ArrowInvalid as failure:
                if end - start == 1:
                    failing.add(start)
                    bad.append((start, *_why(lines[start], schema, failure)))
                else:
                    pending += [(start, (start + end) // 2), ((start + end) // 2, end)]
    good = [i for i in range(len(lines)) if i not in failing]
    rows = _batch(_read([lines[i] for i in good], schema)) if good else _nothing(schema)
    return rows, good, bad


def _why(line: bytes, schema: pa.Schema, failure: Exception) -> tuple[str, str, str | None]:
    """The column at fault, the reason and the value."""
    text = line.decode(errors="replace")
    try:
        row = parse_json(line)
    except ValueError as error:
        return "", f"is not JSON: {error}", text
    if not isinstance(row, dict):
        return "", "is not a JSON object", text
    for field in schema:
        try:
            _read([line], pa.schema([field]), extra="ignore")
        except pa.ArrowInvalid:
            value = row.get(field.name)
            shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            return field.name, f"does not fit {field.type}", shown
    return "", f"cannot be read: {str(failure).splitlines()[0]}", text


def _batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else _nothing(table.schema)


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def _as_table_has(rows: pa.RecordBatch, table: pa.Schema) -> pa.RecordBatch:
    """The rows with maps, which JSON lists as keys and values, made maps."""
    arrays = []
    for name, values in zip(rows.schema.names, rows.columns, strict=True):
        is_map = name in table.names and pa.types.is_map(table.field(name).type)
        arrays.append(_map(values) if is_map and pa.types.is_list(values.type) else values)
    return pa.RecordBatch.from_arrays(arrays, names=rows.schema.names)


def _map(values: Any) -> Any:
    lengths = np.asarray(values.value_lengths().fill_null(0))
    entries = values.flatten()
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32(), mask=None)
    if values.null_count:
        hidden = np.append(np.asarray(values.is_null()), False)
        offsets = pa.array(np.asarray(offsets), pa.int32(), mask=hidden)
    return pa.MapArray.from_arrays(offsets, entries.field(0), entries.field(1))
