"""Converts Arrow arrays of a similar type to the declared type: wider numbers, other units, large and small offsets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from deployer.functions.values.inner_nulls import refuse_inner_nulls
from deployer.functions.values.plain import WrongValue
from deployer.specs.types.arrow import arrow_type
from deployer.specs.types.types import ColumnType, format_type


def fitted(array: pa.Array, kind: ColumnType, named: str = "") -> pa.Array:
    """Returns the array with the type. Raises WrongValue, whose text begins with `named`, for an array of another kind
    of type, and for values that the conversion would change; a float becomes the nearest one of a narrower float
    type."""
    made = _fitted(array, kind, named)
    refuse_inner_nulls(made, kind, named)
    return made


def _fitted(array: pa.Array, kind: ColumnType, named: str) -> pa.Array:
    wanted = arrow_type(kind)
    if array.type == wanted:
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), wanted)
    if isinstance(wanted, pa.BaseExtensionType) and array.type == wanted.storage_type:
        return pa.ExtensionArray.from_storage(wanted, array)
    if not is_near(array.type, wanted):
        raise WrongValue(f"{named}it returned values of {array.type}, not of {format_type(kind)}")
    try:
        narrows = _narrows_floats(array.type, wanted)
        made = array.cast(wanted, safe=not narrows)
    except pa.ArrowException as error:
        raise WrongValue(f"{named}a value of {array.type} does not fit {format_type(kind)}: {error}") from None
    if narrows and _infinite(array) != _infinite(made):
        raise WrongValue(f"{named}a value of {array.type} is too large for {format_type(kind)}")
    return made


def is_near(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Returns whether a cast from one to the other keeps the meaning of values, for those that fit."""
    types = pa.types
    if given == wanted:
        return True
    if types.is_dictionary(given):
        return is_near(given.value_type, wanted)
    if types.is_dictionary(wanted):
        return is_near(given, wanted.value_type)
    if types.is_floating(wanted):
        return bool(types.is_floating(given) or types.is_integer(given))
    if types.is_timestamp(given) and types.is_timestamp(wanted):
        return (given.tz is None) == (wanted.tz is None)
    if any(is_list(given) for is_list in _LISTS) and any(is_list(wanted) for is_list in _LISTS):
        return is_near(given.value_type, wanted.value_type)
    if types.is_struct(given) and types.is_struct(wanted):
        names = [field.name for field in given] == [field.name for field in wanted]
        return names and all(is_near(a.type, b.type) for a, b in zip(given, wanted, strict=True))
    if types.is_map(given) and types.is_map(wanted):
        return is_near(given.key_type, wanted.key_type) and is_near(given.item_type, wanted.item_type)
    return any(alike(given) and alike(wanted) for alike in _ALIKE)


_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_ALIKE = (
    pa.types.is_integer,
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind),
    lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind),
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_duration,
    pa.types.is_decimal,
)


def _narrows_floats(given: pa.DataType, wanted: pa.DataType) -> bool:
    while any(is_list(given) for is_list in _LISTS):
        given, wanted = given.value_type, wanted.value_type
    if not (pa.types.is_floating(given) and pa.types.is_floating(wanted)):
        return False
    return bool(wanted.bit_width < given.bit_width)


def _infinite(array: pa.Array) -> int:
    while any(is_list(array.type) for is_list in _LISTS):
        array = array.flatten()
    return int(np.isinf(array.to_numpy(zero_copy_only=False).astype(np.float64)).sum())
