"""Numbers, sizes and times as people read them."""

from __future__ import annotations

import datetime as dt

from rich.filesize import decimal


def count(number: int, one: str, many: str | None = None) -> str:
    """Returns `1 row`, `2,000 rows`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: int) -> str:
    """Returns bytes in decimal units, as the other commands print them: `1.5 MB`."""
    return decimal(number)


def about_size(number: int, *, about: bool) -> str:
    """Returns `size`, marked where the bytes are estimated: `about 1.5 MB`."""
    return f"about {size(number)}" if about else size(number)


def percentage(share: float) -> str:
    """Returns a share of 1: `12.5%`."""
    return f"{100 * share:.3g}%"


def describe_seconds(seconds: float) -> str:
    """Returns an approximate time: `3 s`, `12 min`, `5 h`, `2 days`."""
    for unit, length, limit in (("s", 1, 90), ("min", 60, 5400), ("h", 3600, 172_800)):
        if seconds < limit:
            return f"{max(round(seconds / length), 1):,} {unit}"
    return f"{round(seconds / 86_400):,} days"


def timestamp(ms: int) -> str:
    """Returns a moment in milliseconds since 1970, in UTC as ISO 8601: `2026-01-31T03:00:00Z`."""
    return f"{dt.datetime.fromtimestamp(ms / 1000, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
