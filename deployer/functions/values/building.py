"""Arrow arrays of the values that functions return, one type after the other.

Arrow's own conversion is lenient: a text becomes a list of its characters, and unknown fields of a struct are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from deployer.functions.structs import fields_of
from deployer.functions.values.plain import (
    NullValue,
    WrongValue,
    build_numpy,
    build_plain,
    check_kinds,
    converted,
    wrong,
)
from deployer.platform.text.visible import shortened
from deployer.specs.types.arrow import arrow_field, arrow_type
from deployer.specs.types.names import FLOATS, INTEGERS
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
    format_type,
)


def build(values: Sequence[Any], kind: ColumnType) -> pa.Array:
    """Returns the array of values, where None is null. Raises WrongValue for values of another type, or that the
    conversion would change; a float becomes the nearest one of a narrower float type."""
    match kind:
        case Scalar():
            return build_plain(values, kind)
        case Blob():
            check_kinds(values, "binary", kind)
            return converted(values, pa.large_binary(), kind)
        case Dictionary(index, value):
            encoded = build(values, value).dictionary_encode()
            indices = converted(encoded.indices.to_pylist(), arrow_type(index), kind)
            return pa.DictionaryArray.from_arrays(indices, encoded.dictionary)
        case ListOf(item, large):
            return _lists(values, item, pa.int64() if large else pa.int32(), kind)
        case FixedSizeList(item, size):
            return _fixed_lists(values, item, size, kind)
        case Struct(fields):
            return _structs(values, fields, kind)
        case MapOf(key, value):
            return _maps(values, key, value, kind)
        case _:
            assert_never(kind)


def wrong_rows(values: Sequence[Any], kind: ColumnType) -> dict[int, WrongValue]:
    """Returns the positions of the values that `build` refuses, and the reasons. It builds halves, so that a few bad
    values are found fast."""
    found: dict[int, WrongValue] = {}
    ranges = [(0, len(values))]
    while ranges:
        start, end = ranges.pop()
        try:
            build(values[start:end], kind)
        except WrongValue as error:
            if end - start == 1:
                found[start] = error
            else:
                middle = (start + end) // 2
                ranges += [(start, middle), (middle, end)]
    return found


def _items(values: Sequence[Any], column: ColumnType) -> list[Any]:
    """Returns the rows' items, with numpy's as they are."""
    for value in values:
        if value is not None and not isinstance(value, list | tuple | np.ndarray | pa.Array):
            raise WrongValue(wrong(value, column))
        if isinstance(value, np.ndarray) and value.ndim == 0:
            raise WrongValue(wrong(value, column))
    return [[] if value is None else value for value in values]


def _flat(rows: list[Any], item: Column, column: ColumnType) -> pa.Array:
    """Returns the items of all rows as one array; those of numpy arrays at once."""
    if (
        isinstance(item.type, Scalar)
        and _is_numeric(item.type)
        and rows
        and all(type(row) is np.ndarray and row.ndim == 1 for row in rows)
    ):
        items = np.concatenate(rows)
        made = build(items.tolist(), item.type) if items.dtype.hasobject else build_numpy(items, item.type)
    else:
        parts = (row.to_pylist() if isinstance(row, pa.Array) else row for row in rows)
        made = build(list(itertools.chain.from_iterable(parts)), item.type)
    return _not_null(made, item, column)


def _lists(values: Sequence[Any], item: Column, offset: pa.DataType, kind: ColumnType) -> pa.Array:
    rows = _items(values, kind)
    items = _flat(rows, item, kind)
    ends = np.cumsum([0, *map(len, rows)])
    if offset == pa.int32() and ends[-1] > np.iinfo(np.int32).max:
        raise WrongValue(f"the lists of one batch have {ends[-1]:,} items; use large_list or smaller batches")
    made = pa.LargeListArray if offset == pa.int64() else pa.ListArray
    return made.from_arrays(pa.array(ends, offset), items, type=arrow_type(kind), mask=_nulls(values))


def _fixed_lists(values: Sequence[Any], item: Column, size: int, kind: ColumnType) -> pa.Array:
    for value, row in zip(values, _items(values, kind), strict=True):
        if value is not None and len(row) != size:
            raise WrongValue(f"a list of {len(row)} items is not a value of {format_type(kind)}")
    missing = np.zeros(size, arrow_type(item.type).to_pandas_dtype()) if _is_numeric(item.type) else [None] * size
    rows = [missing if value is None else value for value in values]
    nullable = Column(item.name, item.type)  # the items of null lists
    items = _flat(rows, nullable, kind)
    for value in values if not item.nullable else ():
        if value is not None and any(each is None for each in value):
            raise NullValue(f"an item of {format_type(kind)} is null")
    return pa.FixedSizeListArray.from_arrays(items, type=arrow_type(kind), mask=_nulls(values))


def _is_numeric(kind: ColumnType) -> bool:
    return isinstance(kind, Scalar) and kind.name in (*INTEGERS, *FLOATS, "bool")


def _structs(values: Sequence[Any], fields: tuple[Column, ...], kind: ColumnType) -> pa.Array:
    rows: list[Mapping[str, Any] | None] = []
    names = {field.name for field in fields}
    for value in values:
        found = None if value is None else fields_of(value)
        if found is None and value is not None:
            raise WrongValue(wrong(value, kind))
        if found is not None and (unknown := [name for name in found if name not in names]):
            raise WrongValue(f"{shortened(value)} has a field `{unknown[0]}`, which {format_type(kind)} does not have")
        rows.append(found)
    arrays = []
    for field in fields:
        made = build([None if row is None else row.get(field.name) for row in rows], field.type)
        if not field.nullable and any(row is not None and row.get(field.name) is None for row in rows):
            raise NullValue(f"the field `{field.name}` of {format_type(kind)} is null")
        arrays.append(made)
    return pa.StructArray.from_arrays(arrays, fields=[arrow_field(each) for each in fields], mask=_nulls(values))


def _maps(values: Sequence[Any], key: Column, value: Column, kind: ColumnType) -> pa.Array:
    for each in values:
        if each is not None and not isinstance(each, Mapping):
            raise WrongValue(wrong(each, kind))
    rows = [each or {} for each in values]
    keys = build(list(itertools.chain.from_iterable(rows)), key.type)
    made = build(list(itertools.chain.from_iterable(row.values() for row in rows)), value.type)
    ends = pa.array(np.cumsum([0, *map(len, rows)]), pa.int32())
    keys, made = _not_null(keys, key, kind), _not_null(made, value, kind)
    return pa.MapArray.from_arrays(ends, keys, made, type=arrow_type(kind), mask=_nulls(values))


def _not_null(made: pa.Array, item: Column, column: ColumnType) -> pa.Array:
    if not item.nullable and made.null_count:
        raise NullValue(f"an item of {format_type(column)} is null")
    return made


def _nulls(values: Sequence[Any]) -> pa.Array | None:
    nulls = [value is None for value in values]
    return pa.array(nulls, pa.bool_()) if any(nulls) else None
