"""What columns data has: types and nullability of files that no spec declares yet, and what could be their row keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import InvalidInput
from deployer.files.reading import parse_json
from deployer.specs.arrow import column_of
from deployer.specs.keys import is_key_type
from deployer.specs.storable import type_findings
from deployer.specs.type_names import FLOATS
from deployer.specs.types import Column, Scalar
from deployer.tables.ingest.dialects import with_dialects
from deployer.tables.ingest.headers import looks_like_a_row
from deployer.tables.ingest.read_columnar import read_units, schema_of
from deployer.tables.ingest.read_csv import read_csv
from deployer.tables.ingest.sources import Format, ReadOptions, Source, find_sources, splits_of
from deployer.tables.ingest.text_blocks import line_blocks, open_range
from deployer.tables.ingest.text_values import parsed

SAMPLE_ROWS = 1_000_000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_KEY_COLUMNS = 8  #: how many columns at most are tried in pairs
_TEXT_TYPES = (
    pa.int64(),
    pa.float64(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.time64("us"),
)
_LEADING_ZERO = r"^\s*[-+]?0[0-9]"


@dataclass(frozen=True, slots=True)
class Inferred:
    """Columns as the rows that were read need them; `complete`: those were all.

    `row_keys` are the first columns that are never null and together unique in these rows; empty when none are.
    """

    columns: tuple[Column, ...]
    rows: int
    complete: bool
    row_keys: tuple[str, ...]


def infer(paths: Sequence[str], format_name: Format | None, options: ReadOptions, limit: int = SAMPLE_ROWS) -> Inferred:
    """Looks at the first `limit` rows of files, as they would be loaded.

    Raises NotFound and InvalidInput for files that cannot be read, and for columns that no table can have.
    """
    tables: list[pa.Table] = []
    left, complete = limit, True
    for source in with_dialects(find_sources(paths, format_name), options):
        found = _sample(source, options, left + 1)
        complete = complete and found.num_rows <= left
        found = found.slice(0, left)
        left -= found.num_rows
        tables.append(found)
    try:
        rows = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as failure:
        raise InvalidInput(
            f"the files have columns of different types: {str(failure).splitlines()[0]}",
            remedy="infer the spec from one of them",
        ) from None
    columns = tuple(_column(rows, name, complete) for name in rows.schema.names)
    return Inferred(columns, rows.num_rows, complete, _row_keys(rows, columns) if complete else ())


def _sample(source: Source, options: ReadOptions, limit: int) -> pa.Table:
    match source.format:
        case Format.CSV:
            return _typed(_csv(source, options, limit), numbers=True)
        case Format.JSON:
            return _typed(_json(source, limit), numbers=False)
        case Format.PARQUET | Format.ARROW | Format.LANCE:
            return _columnar(source, limit)
        case _:
            assert_never(source.format)


def _csv(source: Source, options: ReadOptions, limit: int) -> pa.Table:
    names = source.dialect.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidInput(
            f"column {twice!r} is there twice; is there a header line?",
            where=source.name,
            remedy="give --no-header if the first line is a row, otherwise rename the column in the file",
        )
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    batches = (each.rows for split in splits_of([source]) for each in read_csv(split, names, names, options))
    return pa.Table.from_batches(_first(batches, limit), schema)


def _columnar(source: Source, limit: int) -> pa.Table:
    schema = schema_of(source)
    batches = (
        batch for split in splits_of([source]) for batch in read_units(source, split.start, split.stop, schema.names)
    )
    read = _first(batches, limit)
    plain = pa.schema([field.with_type(_plain(field.type)) for field in schema])
    return pa.Table.from_batches(read, read[0].schema if read else schema).cast(plain)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Types that only say how values are held in memory, as the types that they hold."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _first(batches: Iterator[pa.RecordBatch], limit: int) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = []
    for batch in batches:
        found.append(batch.slice(0, limit))
        limit -= found[-1].num_rows
        if limit <= 0:
            break
    return found


def _json(source: Source, limit: int) -> pa.Table:
    rows: list[dict[str, Any]] = []
    splits = splits_of([source])
    for block in line_blocks(open_range(source, splits[0].start, splits[-1].stop), source.name):
        for line in block.splitlines():
            if not line.strip():
                continue
            try:
                row = parse_json(line)
            except ValueError as failure:
                raise _bad_json(source, f"a line is not JSON: {failure}") from None
            if not isinstance(row, dict):
                raise _bad_json(source, "a line is not a JSON object")
            rows.append(row)
            if len(rows) >= limit:
                break
    names = dict.fromkeys(name for row in rows for name in row)
    arrays = {}
    for name in names:
        try:
            arrays[name] = pa.array([row.get(name) for row in rows])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as failure:
            raise _bad_json(source, f"`{name}` has values of several types: {str(failure).splitlines()[0]}") from None
    return pa.table(arrays)


def _bad_json(source: Source, what: str) -> InvalidInput:
    return InvalidInput(what, where=source.name, remedy="give JSON lines, one object a line")


def _typed(rows: pa.Table, *, numbers: bool) -> pa.Table:
    """Columns of text as the first type that all of their values have."""
    return pa.table({name: _typed_column(rows.column(name), numbers) for name in rows.schema.names})


def _typed_column(values: Any, numbers: bool) -> Any:
    if pa.types.is_null(values.type):
        return values.cast(pa.string())
    if not pa.types.is_string(values.type) or values.null_count == len(values):
        return values
    joined = values.combine_chunks()
    texts = pc.unique(pc.utf8_lower(pc.utf8_trim_whitespace(joined.drop_null())))
    if numbers and set(texts.slice(0, 3).to_pylist()) <= {"true", "false"}:
        return parsed(joined, pa.bool_())[0]
    zeros = pc.any(pc.match_substring_regex(texts, _LEADING_ZERO)).as_py()
    for kind in _TEXT_TYPES:
        number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if number and (zeros or not numbers):
            continue
        _, bad = parsed(joined.slice(0, 1000), kind)
        if bad is None:
            typed, bad = parsed(joined, kind)
            if bad is None:
                return typed
    return values


def _column(rows: pa.Table, name: str, complete: bool) -> Column:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"the data has a column `{name}`, which cannot be the name of a column",
            remedy="rename it in the data: letters, digits and _, and start with a letter or _"
            + ("; or, if the first line is a row, give --no-header" if looks_like_a_row([name]) else ""),
        )
    field = rows.schema.field(name)
    if pa.types.is_null(field.type):
        field = field.with_type(pa.string())
    column = column_of(field)
    has_nulls = rows.column(name).null_count > 0
    known = rows.num_rows > 0 and complete
    column = replace(column, nullable=has_nulls or (field.nullable and not known))
    for finding in type_findings(column):
        raise InvalidInput(f"column `{name}`: {finding.what}", remedy=finding.remedy)
    return column


def _row_keys(rows: pa.Table, columns: Sequence[Column]) -> tuple[str, ...]:
    """The first column, else the first two, by which no two rows are equal."""
    names = [
        column.name
        for column in columns
        if not column.nullable
        and is_key_type(column.type)
        and not (isinstance(column.type, Scalar) and column.type.name in (*FLOATS, "bool"))
    ]
    if rows.num_rows < 2:
        return ()
    singles = [(name,) for name in names]
    for key in (*singles, *combinations(names[:_KEY_COLUMNS], 2)):
        if rows.select(list(key)).group_by(list(key)).aggregate([]).num_rows == rows.num_rows:
            return key
    return ()
