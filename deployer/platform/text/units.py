"""Durations and sizes as people write them: `7d` and `36h` in specs, `90s` in options, `1h30m` in programs, `256MB`."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import timedelta

from deployer.errors import InvalidInput
from deployer.platform.text.formatting import count

SPEC_DURATION = "^[0-9]{1,5}[dh]$"
OPTION_DURATION = "^[0-9]{1,6}[smh]$"
STALENESS_DURATION = "^[0-9]{1,9}(ms|s|m|h|d)$"
GO_DURATION = r"^([0-9]+(\.[0-9]*)?(h|ms|m|s|us|µs|ns))+$"
_DURATION_REMEDIES = {
    SPEC_DURATION: "write a number and d or h, such as 7d",
    OPTION_DURATION: "write it as 90s, 5m or 1h",
    STALENESS_DURATION: "write it as 90s, 15m, 1h or 7d",
    GO_DURATION: "write it like `5m` or `1h30m`",
}
_PARTS = re.compile(r"([0-9]+(?:\.[0-9]*)?)(d|h|ms|m|s|us|µs|ns)")
_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}

SIZE = "^[0-9]{1,15}(\\.[0-9]{1,3})?([KMGT]i?)?B?$"
LARGEST_SIZE = 2**50
_SIZE = re.compile(r"(?P<number>[0-9]{1,15}(\.[0-9]{1,3})?)((?P<prefix>[KMGT])(?P<binary>i)?)?B?")


def parse_duration(text: str, pattern: str = SPEC_DURATION, *, option: str = "") -> timedelta:
    """Returns the duration that `text` gives in the form of `pattern`, one of those above.

    Raises InvalidInput, which names the option if one is given, for other texts.
    """
    if re.fullmatch(pattern, text):
        with suppress(OverflowError):
            return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(text)))
    where = f"{option}: " if option else ""
    raise InvalidInput(f"{where}{text!r} is not a valid duration", remedy=_DURATION_REMEDIES[pattern])


def canonical_duration(text: str) -> str:
    """Returns the canonical text of a duration in specs: whole days in days, otherwise hours. Raises InvalidInput for
    other texts."""
    hours = parse_duration(text) // timedelta(hours=1)
    return f"{hours}h" if hours % 24 else f"{hours // 24}d"


def describe_duration(duration: timedelta) -> str:
    """Returns `36 hours`, or `7 days` for a whole number of days."""
    hours = round(duration / timedelta(hours=1))
    return count(hours, "hour") if hours % 24 else count(hours // 24, "day")


def parse_size(size: object) -> int:
    """Returns the bytes of a number, or of a text such as `256MB` (decimal) or `1GiB` (binary).

    Raises InvalidInput for a text that is not a size, and for sizes below 1 byte or above 1 PiB.
    """
    if isinstance(size, str) and (parts := _SIZE.fullmatch(size)):
        base = 1024 if parts["binary"] else 1000
        found = round(float(parts["number"]) * float(base ** " KMGT".index(parts["prefix"] or " ")))
    elif (isinstance(size, int) and not isinstance(size, bool)) or (isinstance(size, float) and size.is_integer()):
        found = int(size)
    else:
        raise InvalidInput(
            f"{size!r} is not a valid size", remedy="write a number of bytes, or a size such as 256MB or 1GiB"
        )
    if not 1 <= found <= LARGEST_SIZE:
        raise InvalidInput(f"{size} is out of range", remedy="use 1 byte to 1 PiB")
    return found


def exact_size(size: int) -> str:
    """Returns the shortest text that `parse_size` reads as this size, decimal before binary: `256MB`, `1GiB`,
    `1234567`."""
    for binary in ("", "i"):
        base = 1024 if binary else 1000
        for power, prefix in reversed(tuple(enumerate("KMGT", start=1))):
            if size >= base**power and not size % base**power:
                return f"{size // base**power}{prefix}{binary}B"
    return str(size)
