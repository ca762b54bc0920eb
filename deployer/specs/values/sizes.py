"""Sizes as specs write them: a number of bytes, or text such as `256MB` (decimal) or `1GiB` (binary)."""

from __future__ import annotations

import re

from deployer.errors import InvalidInput

PATTERN = "^[0-9]{1,15}(\\.[0-9]{1,3})?([KMGT]i?)?B?$"
LARGEST = 2**50
_PARTS = re.compile(r"(?P<number>[0-9]{1,15}(\.[0-9]{1,3})?)((?P<prefix>[KMGT])(?P<binary>i)?)?B?")


def bytes_of(size: object) -> int:
    """How many bytes `size` says. Raises InvalidInput for what is no size, or none between 1 byte and 1 PiB."""
    if isinstance(size, str) and (parts := _PARTS.fullmatch(size)):
        base = 1024 if parts["binary"] else 1000
        found = round(float(parts["number"]) * float(base ** " KMGT".index(parts["prefix"] or " ")))
    elif (isinstance(size, int) and not isinstance(size, bool)) or (isinstance(size, float) and size.is_integer()):
        found = int(size)
    else:
        raise InvalidInput(f"{size!r} is no size", remedy="write a number of bytes, or a size such as 256MB or 1GiB")
    if not 1 <= found <= LARGEST:
        raise InvalidInput(f"{size} is out of range", remedy="use 1 byte to 1 PiB")
    return found


def format_size(size: int) -> str:
    """The shortest way to write it exactly, decimal before binary: `256MB`, `1GiB`, `1234567`."""
    for binary in ("", "i"):
        base = 1024 if binary else 1000
        for power, prefix in reversed(tuple(enumerate("KMGT", start=1))):
            if size >= base**power and not size % base**power:
                return f"{size // base**power}{prefix}{binary}B"
    return str(size)
