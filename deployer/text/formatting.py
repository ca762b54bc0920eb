"""Numbers and sizes as people read them."""

from __future__ import annotations

from rich.filesize import decimal


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def size(number: int) -> str:
    """Bytes in decimal units, as the other commands print them: `1.5 MB`."""
    return decimal(number)


def about_size(number: int, *, about: bool) -> str:
    """`size`, marked where the bytes are reckoned: `about 1.5 MB`."""
    return f"about {size(number)}" if about else size(number)
