"""Converts structs, lists and maps: their nested values, at any depth, are converted like columns.

Arrow's own casts of nested values do not support extension types, nor fields that are never null in a struct that is
null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

Cast = Callable[[Any, pa.DataType], Any]  #: an Array as another type; raises ValueError when a value does not fit


def is_nested_pair(source: pa.DataType, target: pa.DataType) -> bool:
    """Returns whether both are structs, both lists of any kind, or both maps. A list of entries may become a map
    too."""
    types = pa.types
    return bool(
        (types.is_struct(source) and types.is_struct(target))
        or ((types.is_map(source) or is_entries(source)) and types.is_map(target))
        or (_is_list(source) and _is_list(target))
    )


def is_entries(kind: pa.DataType) -> bool:
    """Returns whether it is a list of structs of a key and a value."""
    item = kind.value_type if pa.types.is_list(kind) else kind
    return bool(pa.types.is_struct(item) and [field.name for field in item] == ["key", "value"] and item is not kind)


def cast_nested(values: Any, target: Any, cast: Cast, *, leave_out: bool = False) -> Any:
    """Returns the values (an Array) as `target`; `cast` converts the nested values.

    Raises ValueError when a value does not fit. `leave_out`: fields that the target lacks are left out.
    """
    if pa.types.is_struct(target):
        return _struct(values, target, cast, leave_out)
    return _map(values, target, cast) if pa.types.is_map(target) else _list(values, target, cast)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _struct(values: Any, target: Any, cast: Cast, leave_out: bool) -> Any:
    theirs = dict(zip([field.name for field in values.type], values.flatten(), strict=True))
    if (lost := theirs.keys() - {field.name for field in target}) and not leave_out:
        raise ValueError(f"there is no field {min(lost)}")
    parts = []
    for field in target:
        found = theirs.get(field.name)
        part = pa.nulls(len(values), field.type) if found is None else cast(found, field.type)
        if not field.nullable and pc.any(pc.and_(values.is_valid(), part.is_null())).as_py():
            raise ValueError(f"field {field.name} is never null")
        parts.append(part)
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=values.is_null())


def items_of(values: Any) -> tuple[Any, NDArray[np.int64]]:
    """Returns the items of lists (of any kind), one after another, and the number in each; null lists may have some
    too.

    Arrow's own `flatten` leaves those out, and cannot when nothing is left that is of an extension type.
    """
    if pa.types.is_fixed_size_list(values.type):
        size = values.type.list_size
        return values.values.slice(values.offset * size, len(values) * size), np.full(len(values), size, np.int64)
    offsets = np.asarray(values.offsets).astype(np.int64)
    return values.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0])), np.diff(offsets)


def _list(values: Any, target: Any, cast: Cast) -> Any:
    items, lengths = items_of(values)
    valid = np.asarray(values.is_valid())
    if lengths[~valid].any():
        items = items.take(pa.array(np.flatnonzero(np.repeat(valid, lengths))))
        lengths = np.where(valid, lengths, 0)
    items = cast(items, target.value_type)
    _refuse_nulls(items, target.value_field)
    if pa.types.is_fixed_size_list(target):
        if (lengths[valid] != target.list_size).any():
            raise ValueError(f"a list does not have {target.list_size} items")
        held = np.repeat(valid, target.list_size)
        items = items.take(pa.array(np.cumsum(held) - 1, mask=~held))
        return pa.FixedSizeListArray.from_arrays(items, type=target, mask=values.is_null())
    kind, width = (pa.LargeListArray, pa.int64()) if pa.types.is_large_list(target) else (pa.ListArray, pa.int32())
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), width)
    return kind.from_arrays(offsets, items, type=target, mask=values.is_null())


def _map(values: Any, target: Any, cast: Cast) -> Any:
    offsets = np.asarray(values.offsets)
    start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
    if pa.types.is_map(values.type):
        keys, items = values.keys.slice(start, length), values.items.slice(start, length)
    else:
        entries = values.values.slice(start, length)
        _refuse_nulls(entries, target.key_field)
        keys, items = entries.flatten()
    keys, items = cast(keys, target.key_type), cast(items, target.item_type)
    _refuse_nulls(keys, target.key_field)
    _refuse_nulls(items, target.item_field)
    return pa.MapArray.from_arrays(
        pa.array(offsets - start, pa.int32()), keys, items, type=target, mask=values.is_null()
    )


def _refuse_nulls(items: Any, field: pa.Field) -> None:
    if not field.nullable and items.null_count:
        raise ValueError("an item is null")
