"""Reads values of key columns in specs and commands as the values that `deployer.state.model.keys` encodes.

| column type               | written as                         | value in the model                      |
|---------------------------|------------------------------------|-----------------------------------------|
| bool                      | true, false                        | bool                                    |
| int8 … uint64             | 42                                 | int                                     |
| float16 … float64         | 1.5                                | float, rounded to the column's width    |
| decimal128, decimal256    | 12.5 or "12.50"                    | text with all digits of the scale       |
| string, large_string      | text                               | str                                     |
| binary, fixed_size_binary | hexadecimal: "00ff"                | bytes                                   |
| date32, date64            | 2013-01-31                         | int: days, milliseconds since the epoch |
| time32, time64            | "13:30", "13:30:05.250"            | int: units since midnight               |
| timestamp                 | 2013-01-31, "2013-01-31T13:30:00Z" | int: units since 1970-01-01T00:00 (UTC) |
| duration                  | 90s, 15m, 12h, 7d, or whole units  | int: units                              |

A timestamp without an offset is local time in the column's zone. In a column without a zone, offsets are refused.
"""

from __future__ import annotations

import math
import struct
from decimal import Context, Decimal, InvalidOperation

from deployer.errors import InvalidInput
from deployer.specs.model import KeyValue
from deployer.specs.rules import Rule
from deployer.specs.types.names import BINARIES, FLOATS, INTEGERS, MAX_PRECISION, TEXTS, UNITS_OF
from deployer.specs.types.types import Column, ColumnType, Dictionary, Scalar, format_type
from deployer.specs.values.key_times import BadValue, read_date, read_duration, read_time, read_timestamp

KEY_TYPES = frozenset(
    ("bool", *INTEGERS, *FLOATS, *TEXTS, *BINARIES, *MAX_PRECISION, *UNITS_OF, "fixed_size_binary", "date32", "date64")
)
_FLOAT_LAYOUT = {"float16": "<e", "float32": "<f", "float64": "<d"}


def is_key_type(column_type: ColumnType) -> bool:
    """Returns whether values of the type have an order that keys can use."""
    return isinstance(column_type, Scalar) and column_type.name in KEY_TYPES


def key_kind(column: Column) -> str:
    """Returns the kind by which `deployer.state.model.keys` encodes the column's values. Raises InvalidInput for a type
    that cannot be a key."""
    if not is_key_type(column.type):
        raise InvalidInput(
            f"column `{column.name}` of type {format_type(column.type)} cannot be a key",
            remedy=instead_of(column.type),
        )
    return format_type(column.type)


def instead_of(column_type: ColumnType) -> str:
    """Returns advice on which type to use for a key, for a type whose values have no order."""
    match column_type:
        case Dictionary(_, value):
            return f"use {format_type(value)}; Lance stores repeated values once anyway"
        case Scalar("uuid"):
            return "use fixed_size_binary[16]"
        case Scalar("json"):
            return "use string"
        case _:
            return "use a column of numbers, text, binary, dates or times"


def key_value(column: Column, value: object) -> KeyValue:
    """Returns the key value of a scalar in a spec. Raises InvalidInput, which says what to write, for a value that is
    not valid for the column."""
    read = read_key_value(column, value)
    if isinstance(read, BadValue):
        raise InvalidInput(read.what, where=f"column `{column.name}`", remedy=read.remedy)
    return read


def read_key_value(column: Column, value: object) -> KeyValue | BadValue:
    """Returns the key value, or the reason why `value` is not valid for the column, whose type must be a key type."""
    assert isinstance(column.type, Scalar)  # noqa: S101
    name, args = column.type.name, column.type.args
    kind = format_type(column.type)
    if name == "bool":
        return value if isinstance(value, bool) else _misfit(value, kind, "write true or false")
    if name in INTEGERS:
        return _integer(name, value)
    if name in FLOATS:
        return _float(name, value)
    if name in MAX_PRECISION:
        return _decimal(kind, value, int(args[0]), int(args[1]))
    if name == "duration":
        return read_duration(kind, str(args[0]), value)
    if not isinstance(value, str):
        shown = str(value).lower() if isinstance(value, bool) else value
        return _misfit(value, kind, f'write "{shown}" in quotes' if name in TEXTS else _EXAMPLES[name])
    match name:
        case "date32" | "date64":
            return read_date(name, value)
        case "time32" | "time64":
            return read_time(kind, str(args[0]), value)
        case "timestamp":
            return read_timestamp(kind, str(args[0]), str(args[1]) if args[1:] else None, value)
        case "binary" | "large_binary" | "fixed_size_binary":
            return _binary(kind, value, int(args[0]) if args else None)
        case _:
            return value


_EXAMPLES = {
    "date32": "write a date such as 2013-01-31",
    "date64": "write a date such as 2013-01-31",
    "time32": 'write a time such as "13:30:00"',
    "time64": 'write a time such as "13:30:00"',
    "timestamp": 'write a time such as "2013-01-31T13:30:00Z"',
    "binary": 'write hexadecimal digits such as "00ff"',
    "large_binary": 'write hexadecimal digits such as "00ff"',
    "fixed_size_binary": 'write hexadecimal digits such as "00ff"',
}


def _misfit(value: object, kind: str, remedy: str) -> BadValue:
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    return BadValue(Rule.SPLIT_TYPE, f"`{shown}` is not a value of {kind}", remedy)


def _integer(kind: str, value: object) -> KeyValue | BadValue:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return _misfit(value, kind, "write a whole number")
    bits = int(kind.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits - 1) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not low <= value <= high:
        return BadValue(Rule.SPLIT_RANGE, f"{value} is out of the range of {kind}", f"use {low} to {high}")
    return value


def _float(kind: str, value: object) -> KeyValue | BadValue:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _misfit(value, kind, "write a number")
    if not math.isfinite(value):
        return BadValue(Rule.SPLIT_RANGE, f"`{value}` cannot divide keys", "write a finite number")
    try:
        rounded: float = struct.unpack(_FLOAT_LAYOUT[kind], struct.pack(_FLOAT_LAYOUT[kind], value))[0]
    except OverflowError:
        return BadValue(Rule.SPLIT_RANGE, f"{value} is out of the range of {kind}", "use a smaller number")
    return rounded


def _decimal(kind: str, value: object, precision: int, scale: int) -> KeyValue | BadValue:
    exact = Context(prec=2 * max(MAX_PRECISION.values()))
    try:
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            raise InvalidOperation
        number = Decimal(str(value))
        if not number.is_finite():
            raise InvalidOperation
        unscaled = number.scaleb(scale, exact)
        whole = int(unscaled)
    except (InvalidOperation, ValueError, OverflowError):
        return _misfit(value, kind, 'write a number such as "12.50"')
    if unscaled != whole:
        what = f"`{value}` has more digits after the point than {kind}"
        return BadValue(Rule.SPLIT_RANGE, what, f"use at most {max(scale, 0)}")
    if abs(whole) >= 10**precision:
        return BadValue(Rule.SPLIT_RANGE, f"`{value}` is out of the range of {kind}", f"use at most {precision} digits")
    return format(Decimal(whole).scaleb(-scale, exact), "f")


def _binary(kind: str, value: str, size: int | None) -> KeyValue | BadValue:
    try:
        data = bytes.fromhex(value)
    except ValueError:
        return _misfit(value, kind, 'write hexadecimal digits such as "00ff"')
    if size is not None and len(data) != size:
        return BadValue(Rule.SPLIT_RANGE, f"`{value}` has {len(data)} bytes", f"write {2 * size} hexadecimal digits")
    return data


def order_of(column: Column, value: KeyValue) -> Decimal | KeyValue:
    """Returns a value that compares in the order of the keys that `deployer.state.model.keys.encode_key` returns."""
    return Decimal(str(value)) if isinstance(column.type, Scalar) and column.type.name in MAX_PRECISION else value
