"""Values of any type that tables can have, and Arrow arrays of them."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa

from deployer.specs.types.types import (
    Blob,
    Column,
    ColumnType,
    Dictionary,
    FixedSizeList,
    ListOf,
    MapOf,
    Scalar,
    Struct,
)

#: Types that Lance stores beside those of `deployer.specs.types.table`: combinations of them.
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
    """The value number `i` of a type, in Python's or Arrow's terms; values repeat."""
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
    """The same of a column; every fourth is null where it may be."""
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
