"""Lengths of time as specs write them: a number of days or hours, such as `7d` or `36h`."""

from __future__ import annotations

import re

from deployer.errors import InvalidInput

PATTERN = "^[0-9]{1,5}[dh]$"
_HOURS = {"d": 24, "h": 1}


def hours_of(text: str) -> int:
    """How many hours `text` says. Raises InvalidInput for what is no length of time."""
    if not re.fullmatch(PATTERN, text):
        raise InvalidInput(f"{text!r} is no length of time", remedy="write a number and d or h, such as 7d")
    return int(text[:-1]) * _HOURS[text[-1]]


def canonical(text: str) -> str:
    """The one way to write it: in days where it is a whole number of them. Raises InvalidInput as `hours_of` does."""
    hours = hours_of(text)
    return f"{hours}h" if hours % 24 else f"{hours // 24}d"
