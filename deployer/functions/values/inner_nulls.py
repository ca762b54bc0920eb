"""Checks for nulls inside of nested Arrow values where the declared type does not allow them: Arrow's casts of lists
accept them."""

from __future__ import annotations

import pyarrow as pa

from deployer.functions.values.plain import NullValue
from deployer.specs.types.types import Column, ColumnType, FixedSizeList, ListOf, MapOf, Struct, children, format_type


def refuse_inner_nulls(array: pa.Array, kind: ColumnType, named: str = "") -> None:
    """Raises NullValue, whose text begins with `named`, for a null item, field or value that the type does not allow.

    Nulls of the array itself are not checked.
    """
    if not _forbids_any(kind):
        return
    for child, items in _inner(array, kind):
        if not child.nullable and items.null_count:
            raise NullValue(f"{named}`{child.name}` in {format_type(kind)} is null")
        refuse_inner_nulls(items, child.type, named)


def _forbids_any(kind: ColumnType) -> bool:
    return any(not child.nullable or _forbids_any(child.type) for child in children(kind))


def _inner(array: pa.Array, kind: ColumnType) -> list[tuple[Column, pa.Array]]:
    """Returns the values inside of the values that are not null."""
    match kind:
        case ListOf(item) | FixedSizeList(item):
            return [(item, array.flatten())]  # without the items of null lists
        case Struct(fields):
            there = array.filter(array.is_valid()) if array.null_count else array
            return list(zip(fields, there.flatten(), strict=True))
        case MapOf(key, value):
            there = array.filter(array.is_valid()) if array.null_count else array
            first, end = (there.offsets[place].as_py() for place in (0, -1))  # keys and items are those of all rows
            return [(key, there.keys.slice(first, end - first)), (value, there.items.slice(first, end - first))]
        case _:
            return []
