"""Exact conversion of numbers: to decimals from other numbers, and to all numbers from text.

Arrow's own casts are not exact: they compare a float with a decimal's digits times 0.01, which may not be the nearest
float; they multiply a decimal's digits by a power of ten, which may overflow silently; they read `1e400` as infinity,
and do not read an integer from `6.0`. Every function takes an Array and raises ValueError (Arrow's errors are
ValueErrors) when a value does not fit.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UNIQUE = 1e15  #: decimals with fewer digits at one scale have different nearest doubles
_EXACT_SCALE = 22  #: the largest power of ten that is a double
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")


def floats_to_decimals(values: Any, target: Any) -> Any:
    """Returns the decimals whose nearest floats these are, for floats of any width. 10.95 is 10.95, also as float32.
    10.955 does not fit a scale of 2.
    """
    valid = np.asarray(values.is_valid())
    doubles = np.where(valid, _doubles(values), 0.0)
    if not np.isfinite(doubles).all():
        raise ValueError("a value is not finite")
    power = 10.0**target.scale
    scaled = np.rint(doubles * power)
    unique = np.abs(scaled) < _UNIQUE
    if not 0 <= target.scale <= _EXACT_SCALE:
        unique[:] = False
    # both are exact doubles, so their quotient is the double nearest to the decimal
    if (scaled / power != doubles)[unique].any():
        raise ValueError("values would be rounded")
    found = _with_scale(pa.array(np.where(unique, scaled, 0).astype(np.int64), mask=~valid), target)
    others = ~unique & valid
    if not others.any():
        return found
    decimals = [_decimal(each, target) for each in doubles[others].tolist()]
    return pc.replace_with_mask(found, pa.array(others), pa.array(decimals, target))


def _doubles(values: Any) -> NDArray[np.float64]:
    """Returns the values as doubles; a narrower float that is not whole becomes the double with the same text."""
    if pa.types.is_float64(values.type):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    exact = np.asarray(values.to_numpy(zero_copy_only=False), np.float64)
    if pa.types.is_float32(values.type):
        written = pc.cast(pc.cast(values, pa.string()), pa.float64()).to_numpy(zero_copy_only=False)
    else:
        written = np.array([float(str(np.float16(each))) for each in exact])
    return np.where(np.floor(exact) == exact, exact, written)


def _decimal(value: float, target: Any) -> Decimal:
    """Returns the exact value of a whole double; for other doubles, the shortest decimal with this nearest double."""
    return _fitting(Decimal(int(value)) if value.is_integer() else Decimal(repr(value)), target)


def _with_scale(digits: Any, target: Any) -> Any:
    """Returns decimals from their digits as whole numbers."""
    kind, precision = pa.decimal256 if pa.types.is_decimal256(target) else pa.decimal128, _digits_of(target)
    return pc.cast(pc.cast(digits, kind(precision, 0)).view(kind(precision, target.scale)), target)


def integers_to_decimals(values: Any, target: Any) -> Any:
    """Returns integers of any width as decimals of the same value."""
    return decimals_to_decimals(pc.cast(values, pa.decimal128(20, 0)), target)


def decimals_to_decimals(values: Any, target: Any) -> Any:
    """Returns decimals of the same value with another precision and scale."""
    source, whole_digits = values.type, target.precision - target.scale
    if source.precision - source.scale > whole_digits and target.scale > source.scale:
        # Arrow multiplies by a power of ten before it checks for an overflow
        limit = pa.scalar(Decimal(10) ** whole_digits, source)
        if pc.any(pc.greater_equal(pc.abs(values), limit)).as_py():
            raise ValueError(f"a value does not fit {target}")
    return pc.cast(values, target)


def texts_to_decimals(values: Any, target: Any) -> Any:
    """Returns text as decimals of the same value, with any number of digits."""
    wrapping = pc.or_(
        pc.greater(pc.binary_length(values), _digits_of(target) - target.scale),
        pc.match_substring(values, "e", ignore_case=True),
    )
    wrapping = pc.fill_null(wrapping, False)
    if not pc.any(wrapping).as_py():
        return pc.cast(values, target)
    decimals = [exact_decimal(text, target) for text in values.filter(wrapping).to_pylist()]
    others = pc.cast(pc.if_else(wrapping, pa.scalar(None, values.type), values), target)
    return pc.replace_with_mask(others, wrapping, pa.array(decimals, target))


def _digits_of(target: Any) -> int:
    return 76 if pa.types.is_decimal256(target) else 38


def texts_to_integers(values: Any, target: pa.DataType) -> Any:
    """Returns text as integers, also text such as 6.0 and 1e3."""
    try:
        return pc.cast(values, target)
    except pa.ArrowInvalid:
        pass
    try:
        return pc.cast(pc.replace_substring_regex(values, r"^([-+]?[0-9]+)\.0*$", r"\1"), target)
    except pa.ArrowInvalid:
        return pa.array([None if text is None else _integer(text, target) for text in values.to_pylist()], target)


def _integer(text: str, target: pa.DataType) -> int:
    return exact_integer(text) if _NUMBER.fullmatch(text) else int(pc.cast(pa.scalar(text), target).as_py())  # 0xFF


def texts_to_floats(values: Any, target: pa.DataType) -> Any:
    """Returns text as the nearest floats; only text such as `inf` is infinite."""
    floats = pc.cast(values, target)
    infinite = pc.is_inf(floats if not pa.types.is_float16(target) else pc.cast(floats, pa.float32()))
    if pc.any(infinite).as_py():
        texts = values.filter(infinite)
        if not pc.all(pc.match_substring_regex(texts, "inf", ignore_case=True)).as_py():
            raise ValueError("a number is too large")
    return floats


def exact_integer(text: str) -> int:
    """Returns the integer that a number such as 6, 6.0 or 1e3 is."""
    return int(exact_decimal(text, pa.decimal128(38, 0)))


def exact_decimal(text: str, target: Any) -> Decimal:
    """Returns the value of a number, if a decimal of this type has it."""
    if not _NUMBER.fullmatch(text):
        raise ValueError("it is not a number")
    return _fitting(Decimal(text), target)


def _fitting(value: Decimal, target: Any) -> Decimal:
    """Returns the number without zeros at its end; raises ValueError unless a decimal of this type has it."""
    sign, digits, exponent = value.as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    if not value:
        return Decimal(0)
    found = Decimal((sign, digits[: len(digits) - zeros], int(exponent) + zeros))
    if int(exponent) + zeros < -target.scale or found.adjusted() >= target.precision - target.scale:
        raise ValueError(f"it does not fit {target}")
    return found
