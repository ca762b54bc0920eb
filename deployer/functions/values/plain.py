"""Arrow arrays of plain values: numbers, texts, times. Their Python types are checked first, all at once.

Arrow's own conversion is fast but lenient: it shortens 1.5 to 1 and a time to its day, and makes 1e300 infinite.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from deployer.platform.text.visible import shortened
from deployer.specs.types.arrow import arrow_type
from deployer.specs.types.names import BINARIES, FLOATS, INTEGERS, TEXTS
from deployer.specs.types.types import ColumnType, Scalar, format_type

NONE = type(None)


class WrongValue(TypeError):
    """A value does not have the declared type, or does not fit into it."""


class NullValue(WrongValue):
    """A null where the type or the function allows none."""


def build_plain(values: Sequence[Any], kind: Scalar) -> pa.Array:
    """Returns the array of plain values, None for null. Raises WrongValue as `build` does."""
    name, args = kind.name, kind.args
    check_kinds(values, _KIND_OF.get(name, name), kind)
    match name:
        case "null":
            return pa.nulls(len(values))
        case "uuid":
            stored = [each.bytes if isinstance(each, uuid.UUID) else each for each in values]
            return pa.ExtensionArray.from_storage(pa.uuid(), converted(stored, pa.binary(16), kind))
        case "json":
            _check_json(values)
            return pa.ExtensionArray.from_storage(pa.json_(), converted(values, pa.string(), kind))
        case "timestamp":
            _check_zones(values, bool(len(args) > 1), kind)
        case "float32" | "float16":
            return _narrow_floats(values, kind)
    made = converted(values, arrow_type(kind), kind)
    if name in ("timestamp", "duration", "time32", "time64"):
        _check_precision(values, made, kind)
    return made


def _narrow_floats(values: Sequence[Any], kind: Scalar) -> pa.Array:
    wide = converted(values, pa.float64(), kind)
    made = wide.cast(arrow_type(kind), safe=False)
    before, after = (np.isinf(each.to_numpy(zero_copy_only=False).astype(np.float64)) for each in (wide, made))
    if (before != after).any():
        value = wide[int(np.flatnonzero(before != after)[0])].as_py()
        raise WrongValue(f"{value!r} is too large for {format_type(kind)}")
    return made


def converted(values: Sequence[Any], arrow: pa.DataType, kind: ColumnType) -> pa.Array:
    """Returns the array that Arrow makes from the values. Raises WrongValue where Arrow refuses them."""
    try:
        made = pa.array(values, arrow)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise WrongValue(f"a value does not fit {format_type(kind)}: {first}") from None
    if isinstance(made, pa.ChunkedArray):
        raise WrongValue(f"the values of one batch are more than {arrow} holds; use large_{arrow} or smaller batches")
    return made


def _check_precision(values: Sequence[Any], made: pa.Array, kind: ColumnType) -> None:
    """Raises WrongValue for times that are finer than the unit, which Arrow would shorten."""
    for before, after in zip(values, made.to_pylist(), strict=True):
        if before is not None and isinstance(before, dt.datetime | dt.timedelta | dt.time) and before != after:
            raise WrongValue(f"{shortened(before)} is finer than {format_type(kind)}")


def _check_zones(values: Sequence[Any], zoned: bool, kind: ColumnType) -> None:
    for value in values:
        if isinstance(value, dt.datetime) and (value.tzinfo is not None) != zoned:
            has = "has a time zone" if value.tzinfo is not None else "has no time zone"
            raise WrongValue(f"{shortened(value)} {has}, unlike {format_type(kind)}")


def _check_json(values: Sequence[Any]) -> None:
    for value in values:
        if value is not None:
            try:
                json.loads(value)
            except ValueError as error:
                raise WrongValue(f"{shortened(value)} is not JSON: {error}") from None


_KIND_OF: Mapping[str, str] = {
    **dict.fromkeys(INTEGERS, "integer"),
    **dict.fromkeys(FLOATS, "float"),
    **dict.fromkeys(TEXTS, "text"),
    **dict.fromkeys(BINARIES, "binary"),
    "fixed_size_binary": "binary",
    "date32": "date",
    "date64": "date",
    "time32": "time",
    "time64": "time",
    "decimal128": "decimal",
    "decimal256": "decimal",
}


def _is_number(kind: type, *also: type) -> bool:
    return issubclass(kind, also) and not issubclass(kind, bool | np.bool_)


_ACCEPTED: Mapping[str, Callable[[type], bool]] = {
    "null": lambda kind: False,
    "bool": lambda kind: issubclass(kind, bool | np.bool_),
    "integer": lambda kind: _is_number(kind, int, np.integer),
    "float": lambda kind: _is_number(kind, int, float, np.integer, np.floating),
    "text": lambda kind: issubclass(kind, str),
    "json": lambda kind: issubclass(kind, str),
    "binary": lambda kind: issubclass(kind, bytes | bytearray | memoryview),
    "uuid": lambda kind: issubclass(kind, uuid.UUID | bytes),
    "date": lambda kind: issubclass(kind, dt.date) and not issubclass(kind, dt.datetime),
    "timestamp": lambda kind: issubclass(kind, dt.datetime),
    "time": lambda kind: issubclass(kind, dt.time),
    "duration": lambda kind: issubclass(kind, dt.timedelta),
    "decimal": lambda kind: _is_number(kind, int, decimal.Decimal, np.integer),
}


@lru_cache(maxsize=1024)
def _is_accepted(expected: str, kind: type) -> bool:
    return kind is NONE or _ACCEPTED[expected](kind)


def check_kinds(values: Sequence[Any], expected: str, column: ColumnType) -> None:
    """Raises WrongValue for a value whose Python type is not the expected one, such as "integer" or "binary"."""
    refused = {kind for kind in set(map(type, values)) if not _is_accepted(expected, kind)}
    if refused:
        value = next(each for each in values if type(each) in refused)
        raise WrongValue(wrong(value, column))


def wrong(value: Any, column: ColumnType) -> str:
    """Returns the message for a value of another type."""
    return f"{shortened(value)} of type {type(value).__name__} is not a value of {format_type(column)}"


def build_numpy(items: np.ndarray[Any, Any], kind: Scalar) -> pa.Array:
    """Returns the array of numpy's numbers. Raises WrongValue as `build` does."""
    name = kind.name
    accepted = {"b": ("bool",), "i": (*INTEGERS, *FLOATS), "u": (*INTEGERS, *FLOATS), "f": FLOATS}
    if name not in accepted.get(items.dtype.kind, ()):
        raise WrongValue(f"an array of {items.dtype} is not a list of {format_type(kind)}")
    if items.dtype.kind in "iu" and name in ("float16", "float32"):
        return build_plain(items.tolist(), kind)
    if items.dtype.kind != "f":
        try:
            return pa.array(items).cast(arrow_type(kind))
        except pa.ArrowException as error:
            raise WrongValue(f"a value does not fit {format_type(kind)}: {error}") from None
    with np.errstate(over="ignore"):
        made = items.astype(name)
    if (np.isinf(items) != np.isinf(made)).any():
        raise WrongValue(f"a value is too large for {format_type(kind)}")
    return pa.array(made)
