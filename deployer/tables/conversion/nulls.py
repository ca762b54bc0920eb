"""Finds nulls that the schema does not allow, at any depth, and gives arrays exactly the declared type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.tables.conversion.nested_casts import items_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


def relaxed(kind: pa.DataType) -> pa.DataType:
    """Returns the type with every nested field nullable; values are cast to it before they are checked."""
    types = pa.types
    if types.is_struct(kind):
        return pa.struct([_relaxed_field(field) for field in kind])
    if types.is_fixed_size_list(kind):
        return pa.list_(_relaxed_field(kind.value_field), kind.list_size)
    if types.is_list(kind):
        return pa.list_(_relaxed_field(kind.value_field))
    if types.is_large_list(kind):
        return pa.large_list(_relaxed_field(kind.value_field))
    if types.is_map(kind):
        return pa.map_(kind.key_field.with_type(relaxed(kind.key_type)), _relaxed_field(kind.item_field))
    return kind


def _relaxed_field(field: pa.Field) -> pa.Field:
    return field.with_type(relaxed(field.type)).with_nullable(True)


def forbidden_nulls(values: Any, field: pa.Field) -> NDArray[np.bool_] | None:
    """Returns which rows have a null in the column, or anywhere inside it, where none may be; None when no row has."""
    bad = np.asarray(values.is_null()) if not field.nullable and values.null_count else None
    if pa.types.is_nested(field.type) and not isinstance(field.type, pa.BaseExtensionType):
        inner = _nested(values, field.type)
        if inner is not None:
            bad = inner if bad is None else bad | inner
    return bad


def _nested(values: Any, kind: pa.DataType) -> NDArray[np.bool_] | None:
    types, found = pa.types, None
    if types.is_struct(kind):
        valid = np.asarray(values.is_valid())
        for i, field in enumerate(kind):
            bad = forbidden_nulls(pc.struct_field(values, [i]), field)
            if bad is not None and (bad & valid).any():
                found = bad & valid if found is None else found | (bad & valid)
        return found
    if types.is_map(kind):
        return _in_entries(values, kind)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _in_items(values, kind.value_field)
    return None


def _in_items(values: Any, field: pa.Field) -> NDArray[np.bool_] | None:
    items, lengths = items_of(values)
    return _rows_of(values, lengths, forbidden_nulls(items, field))


def _in_entries(values: Any, kind: pa.DataType) -> NDArray[np.bool_] | None:
    """Handles maps without a cast to lists of structs: Arrow has none for maps of extension types in maps."""
    offsets = np.asarray(values.offsets).astype(np.int64)
    start, length = int(offsets[0]), int(offsets[-1] - offsets[0])
    found = None
    for inner, field in ((values.keys, kind.key_field), (values.items, kind.item_field)):
        bad = forbidden_nulls(inner.slice(start, length), field)
        if bad is not None:
            found = bad if found is None else found | bad
    return _rows_of(values, np.diff(offsets), found)


def _rows_of(values: Any, lengths: NDArray[np.int64], bad: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Returns the rows with bad items; `counts` has the number of items of each row. Items of null rows do not
    count."""
    if bad is None:
        return None
    rows = np.zeros(len(values), np.bool_)
    rows[np.repeat(np.arange(len(values)), lengths)[bad]] = True
    rows &= np.asarray(values.is_valid())
    return rows if rows.any() else None


class _Retyped:
    """An array under another field: the layout is the same, only names, nullability and metadata differ."""

    def __init__(self, values: Any, field: pa.Field) -> None:
        self._values, self._field = values, field

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        return self._field.__arrow_c_schema__(), self._values.__arrow_c_array__()[1]


def with_type(values: Any, field: pa.Field) -> Any:
    """Returns the array with exactly the field's type; its relaxed type must be the array's."""
    if values.type.equals(field.type, check_metadata=True):
        return values
    return pa.array(_Retyped(values, field))
