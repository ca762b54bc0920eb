"""Which change of a scalar type keeps every value: the widening rules of Arrow's own lossless casts."""

from __future__ import annotations

from deployer.specs.types.types import ColumnType, Dictionary, Scalar

# Integers fit a wider integer, and a float whose mantissa holds them (IEEE 754: 11, 24 and 53 bits).
_NUMBERS = {
    "int8": ("int16", "int32", "int64", "float16", "float32", "float64"),
    "int16": ("int32", "int64", "float32", "float64"),
    "int32": ("int64", "float64"),
    "int64": (),
    "uint8": ("uint16", "uint32", "uint64", "int16", "int32", "int64", "float16", "float32", "float64"),
    "uint16": ("uint32", "uint64", "int32", "int64", "float32", "float64"),
    "uint32": ("uint64", "int64", "float64"),
    "uint64": (),
    "float16": ("float32", "float64"),
    "float32": ("float64",),
    "string": ("large_string",),
    "binary": ("large_binary",),
    "date32": ("date64",),
}


def is_widening(before: ColumnType, after: ColumnType) -> bool:
    """Whether every value of `before` is a value of `after`."""
    match before, after:
        case Dictionary(_, value), _ if value == after:
            return True
        case Scalar(name, args), Scalar(other, other_args):
            if name.startswith("decimal") and other.startswith("decimal"):
                return _wider_decimal(before, after)
            return not args and not other_args and other in _NUMBERS.get(name, ())
        case _:
            return False


def _wider_decimal(before: Scalar, after: Scalar) -> bool:
    precision, scale = (int(arg) for arg in before.args)
    new_precision, new_scale = (int(arg) for arg in after.args)
    return new_scale >= scale and new_precision - new_scale >= precision - scale
