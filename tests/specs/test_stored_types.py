"""The table of types in docs/spec.md, tried on the installed pylance: it stores what is said to be stored, no more."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from deployer.specs.arrow import arrow_schema, columns_of
from deployer.specs.storable import newer_findings, type_findings
from deployer.specs.type_table import TYPE_ROWS
from deployer.specs.type_text import parse_type
from deployer.specs.types import (
    Blob,
    Column,
    ColumnType,
    Dictionary,
    FixedSizeList,
    ListOf,
    MapOf,
    Scalar,
    Struct,
    format_type,
)

VERSIONS = ("2.1", "2.2")
ROWS = 300
# Beyond the table: what the rules of deployer.specs.storable refuse, and combinations that they let pass.
ALSO_REFUSED = (
    "fixed_size_list<string, 2>",
    "fixed_size_list<large_binary, 2>",
    "fixed_size_list<list<int32>, 2>",
    "fixed_size_list<map<string, int32>, 2>",
    "fixed_size_list<dictionary<int32, string>, 2>",
    "fixed_size_list<uuid, 2>",
    "fixed_size_list<json, 2>",
    "fixed_size_list<blob, 2>",
    "fixed_size_list<float32 not null, 2>",
    "fixed_size_list<fixed_size_list<struct<a: int32>, 1>, 2>",
    "fixed_size_list<struct<a: int32>, 2>",
    "struct<b: fixed_size_list<struct<a: int32>, 2>>",
    "dictionary<int32, date32>",
    "dictionary<int32, json>",
    "map<string, blob>",
)
ALSO_STORED = (
    "list<list<int32>>",
    "struct<a: struct<b: int8 not null> not null, c: list<struct<d: string>>>",
    "struct<v: fixed_size_list<float32, 4> not null>",
    "list<dictionary<int8, string>>",
    "struct<a: uuid, b: json>",
    "fixed_size_list<decimal256(50, 2), 2>",
    "fixed_size_list<timestamp[us, UTC], 2>",
    "list<fixed_size_list<float16, 2>>",
    "struct<a: struct<b: blob>>",
    "list<null>",
)


def value(column_type: ColumnType, i: int) -> Any:
    match column_type:
        case Scalar(name, args):
            return _scalar(name, args, i)
        case Blob():
            return b"blob%d" % i
        case ListOf(item):
            return [nullable(item, i + k) for k in range(i % 3)]
        case FixedSizeList(item, size):
            return [nullable(item, i + k) for k in range(size)]
        case Struct(fields):
            return {field.name: nullable(field, i) for field in fields}
        case MapOf(key, inner):
            return [(value(key.type, i + k), nullable(inner, i + k)) for k in range(i % 3)]
        case Dictionary(_, inner_type):
            return value(inner_type, i % 3)


def _scalar(name: str, args: tuple[Any, ...], i: int) -> Any:
    match name:
        case "null":
            return None
        case "bool":
            return i % 2 == 0
        case "float16":
            return np.float16(i % 10)
        case "string" | "large_string":
            return f"text {i % 7}"
        case "binary" | "large_binary":
            return b"%d" % (i % 7)
        case "fixed_size_binary":
            return bytes([i % 7]) * args[0]
        case "json":
            return f'{{"a":{i % 7}}}'
        case "uuid":
            return bytes([i % 7]) * 16
        case "date32" | "date64":
            return datetime.date(2020, 1, 1 + i % 20)
        case "decimal128" | "decimal256":
            return decimal.Decimal(i % 9)
        case _:
            return i % 100


def nullable(column: Column, i: int) -> Any:
    return None if column.nullable and i % 4 == 1 else value(column.type, i)


def array(arrow: pa.DataType, values: list[Any]) -> pa.Array:
    """What `pa.array` builds, also of nested extension types and dictionaries."""
    nulls = pa.array([v is None for v in values], pa.bool_())
    if isinstance(arrow, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(arrow, array(arrow.storage_type, values))
    if pa.types.is_struct(arrow):
        parts = [array(field.type, [v and v[field.name] for v in values]) for field in arrow]
        return pa.StructArray.from_arrays(parts, fields=list(arrow), mask=nulls)
    if pa.types.is_fixed_size_list(arrow):
        items = [item for v in values for item in (v or [None] * arrow.list_size)]
        return pa.FixedSizeListArray.from_arrays(array(arrow.value_type, items), type=arrow, mask=nulls)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_map(arrow):
        counts = [0, *(len(v or ()) for v in values)]
        offsets = pa.array(np.cumsum(counts), pa.int64() if pa.types.is_large_list(arrow) else pa.int32())
        items = [item for v in values for item in v or ()]
        if pa.types.is_map(arrow):
            keys, inner = ([pair[k] for pair in items] for k in (0, 1))
            return pa.MapArray.from_arrays(
                offsets, array(arrow.key_type, keys), array(arrow.item_type, inner), type=arrow, mask=nulls
            )
        kind = pa.LargeListArray if pa.types.is_large_list(arrow) else pa.ListArray
        return kind.from_arrays(offsets, array(arrow.value_type, items), type=arrow, mask=nulls)
    if pa.types.is_dictionary(arrow):
        distinct = list(dict.fromkeys(v for v in values if v is not None))
        indices = pa.array([None if v is None else distinct.index(v) for v in values], arrow.index_type)
        return pa.DictionaryArray.from_arrays(indices, array(arrow.value_type, distinct))
    return pa.array(values, arrow)


def stored(column: Column, version: str, folder: Path) -> bool:
    """Whether Lance creates, writes twice, describes and reads the column, beside another, just as it is declared."""
    beside = Column("beside", Scalar("int64"))
    schema = arrow_schema([column, beside])
    uri = str(folder / f"{version}.lance")
    try:
        lance.write_dataset(pa.Table.from_batches([], schema=schema), uri, data_storage_version=version)
        table = pa.Table.from_arrays(
            [
                array(field.type, [nullable(each, i) for i in range(ROWS)])
                for field, each in zip(schema, (column, beside), strict=True)
            ],
            schema=schema,
        )
        lance.write_dataset(table, uri, mode="append")
        dataset = lance.write_dataset(table, uri, mode="append")
        found = dataset.to_table()
    except (OSError, ValueError, pa.ArrowInvalid, BaseException) as error:  # Lance's panics are no Exceptions
        if isinstance(error, KeyboardInterrupt):
            raise
        return False
    if columns_of(dataset.schema) != (column, beside) or found.num_rows != 2 * ROWS:
        return False
    if "blob" in format_type(column.type):  # reads give descriptors
        return bool(found["c"].null_count == 2 * table["c"].null_count)
    return bool(found["c"].to_pylist() == 2 * table["c"].to_pylist())


def declared_versions(column: Column) -> tuple[str, ...]:
    """The file versions in which our rules allow the column."""
    if list(type_findings(column)):
        return ()
    return VERSIONS[1:] if list(newer_findings(column.type)) else VERSIONS


CASES = {
    **{row.text: row.versions for row in TYPE_ROWS},
    **dict.fromkeys(ALSO_STORED, VERSIONS),
    **dict.fromkeys(ALSO_REFUSED, ()),
}


@pytest.mark.parametrize("text", CASES)
def test_lance_stores_what_the_rules_allow_and_nothing_else(text: str, tmp_path: Path) -> None:
    column = Column("c", parse_type(text), True, "What it means.")
    expected = CASES[text]
    assert declared_versions(column) == expected
    assert tuple(version for version in VERSIONS if stored(column, version, tmp_path)) == expected


def test_nullability_and_nested_descriptions_are_kept(tmp_path: Path) -> None:
    inner = Struct(
        (
            Column("x", Scalar("float32"), False, "Miles."),
            Column("y", ListOf(Column("item", Scalar("string"), False, "Codes."))),
        )
    )
    columns = (
        Column("id", Scalar("int64"), False, "Schlüssel"),
        Column("trips", ListOf(Column("item", inner, True, "A trip."))),
    )
    for version in VERSIONS:
        uri = str(tmp_path / f"{version}.lance")
        lance.write_dataset(pa.Table.from_batches([], schema=arrow_schema(columns)), uri, data_storage_version=version)
        assert columns_of(lance.dataset(uri).schema) == columns


@pytest.mark.parametrize("version", VERSIONS)
def test_blobs_are_read_as_they_were_written(version: str, tmp_path: Path) -> None:
    schema = arrow_schema([Column("c", Blob())])
    table = pa.Table.from_arrays([pa.array([b"one", None, b""], pa.large_binary())], schema=schema)
    dataset = lance.write_dataset(table, str(tmp_path / "blobs.lance"), data_storage_version=version)
    assert dataset.take_blobs("c", indices=[0])[0].read() == b"one"
