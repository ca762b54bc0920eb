"""Lengths of time as options say them: `90s`, `5m` or `1h`."""

from __future__ import annotations

import re

from deployer.errors import InvalidInput

_SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds_of(text: str, option: str) -> int:
    """How many seconds `90s`, `5m` or `1h` are. Raises InvalidInput, naming the option, for any other text."""
    if not re.fullmatch("[0-9]{1,6}[smh]", text):
        raise InvalidInput(f"{option}: {text!r} is no length of time", remedy="write it as 90s, 5m or 1h")
    return int(text[:-1]) * _SECONDS[text[-1]]
