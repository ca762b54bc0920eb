"""The settings of a function as typed values: sizes, times and resources."""

from __future__ import annotations

import datetime as dt
import math
import re
from typing import Any

from deployer.errors import InvalidFunction, InvalidInput
from deployer.platform.text.units import OPTION_DURATION, parse_duration, parse_size

VERSION = r"[A-Za-z0-9._+-]{1,64}"
MOST_ROWS = 10_000_000  #: of one call
MOST_UNITS = 1024  #: CPUs or GPUs
MOST_CALLS = 10_000  #: concurrent calls of an async function
LONGEST_TIMEOUT = 7 * 86400.0


def whole(name: str, value: Any, most: int) -> int:
    """Returns a whole number from 1. Raises InvalidFunction for any other value."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InvalidFunction(f"{name}={value!r} is not a valid number", where=name, remedy=f"use 1 to {most:,}")
    return value


def units(name: str, value: Any) -> float:
    """Returns a number of CPUs or GPUs, which may be a part of one. Raises InvalidFunction for any other value."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST_UNITS
    if not usable or math.isnan(value):
        raise InvalidFunction(f"{name}={value!r} is not a valid number", where=name, remedy=f"use 0 to {MOST_UNITS}")
    return float(value)


def size(name: str, value: Any) -> int:
    """Returns bytes of a number or a text such as 2GiB. Raises InvalidFunction for any other value."""
    try:
        return parse_size(value)
    except InvalidInput as error:
        raise InvalidFunction(error.what, where=name, remedy=error.remedy) from None


def seconds(name: str, value: Any) -> float:
    """Returns seconds of a number, a timedelta or a text such as 30s. Raises InvalidFunction for any other value."""
    if isinstance(value, str):
        try:
            value = parse_duration(value, OPTION_DURATION)
        except InvalidInput as error:
            raise InvalidFunction(error.what, where=name, remedy=error.remedy) from None
    found = value.total_seconds() if isinstance(value, dt.timedelta) else value
    usable = isinstance(found, int | float) and not isinstance(found, bool) and 0 < found <= LONGEST_TIMEOUT
    if not usable:
        raise InvalidFunction(
            f"{name}={value!r} is not a valid time",
            where=name,
            remedy="use seconds above 0, a timedelta or a text: 30s",
        )
    return float(found)


def version(value: Any) -> str:
    """Returns a version. Raises InvalidFunction for anything but a text that specs can have."""
    if not isinstance(value, str) or not re.fullmatch(VERSION, value):
        raise InvalidFunction(
            f"version={value!r} is not a version",
            where="version",
            remedy='use a text such as "2": letters, digits, and . _ + -, at most 64',
        )
    return value


def names(name: str, value: Any) -> tuple[str, ...]:
    """Returns names of columns. Raises InvalidFunction for anything but a list of texts."""
    if (
        isinstance(value, str)
        or not isinstance(value, list | tuple)
        or not all(isinstance(each, str) for each in value)
    ):
        raise InvalidFunction(f"{name}={value!r} is not a list of columns", where=name, remedy='use a list: ["a", "b"]')
    return tuple(value)
