"""Converts values written as text, as in CSV and JSON, to columns of any scalar type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.tables.conversion.casts import converted, lossless
from deployer.tables.conversion.numbers import texts_to_decimals, texts_to_floats, texts_to_integers

if TYPE_CHECKING:
    from numpy.typing import NDArray


def parsed(values: Any, target: pa.DataType) -> tuple[Any, NDArray[np.bool_] | None]:
    """Returns strings as `target`, and which of them do not fit (null in the result).

    Dates and times are ISO 8601; a timestamp has an offset such as `Z` exactly when its type has a time zone. Numbers
    are decimal, without separators; 6.0 and 1e3 are integers. Booleans are true, false, 1 and 0. Durations are whole
    numbers of the type's unit. Binary columns take the text's bytes. Spaces around anything but text and binary do not
    count.
    """
    types = pa.types
    if types.is_dictionary(target):
        plain, bad = parsed(values, target.value_type)
        return lossless(plain, target)[0], bad
    if isinstance(target, pa.BaseExtensionType) or _keeps_spaces(target):
        return lossless(values, target)
    trimmed = pc.utf8_trim_whitespace(values)
    if types.is_time(target):
        return converted(trimmed, lambda part: _times(part, target), target)
    if types.is_duration(target):
        return converted(trimmed, lambda part: pc.cast(pc.cast(part, pa.int64()), target), target)
    return converted(trimmed, lambda part: _plain(part, target), target)


def _plain(values: Any, target: pa.DataType) -> Any:
    if pa.types.is_integer(target):
        return texts_to_integers(values, target)
    if pa.types.is_decimal(target):
        return texts_to_decimals(values, target)
    return texts_to_floats(values, target) if pa.types.is_floating(target) else pc.cast(values, target)


def _keeps_spaces(target: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(target)
        or types.is_large_string(target)
        or types.is_binary(target)
        or types.is_large_binary(target)
        or types.is_fixed_size_binary(target)
    )


def _times(values: Any, target: pa.DataType) -> Any:
    """Returns times of day, by way of timestamps, because Arrow reads only these from text."""
    unit = "ns" if target.unit == "ns" else "us"
    stamps = pc.cast(pc.binary_join_element_wise("1970-01-01", values, " "), pa.timestamp(unit))
    return pc.cast(pc.cast(stamps, pa.time64(unit)), target)
