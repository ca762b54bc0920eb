"""Refuses SQL whose timestamps would be read with another meaning than they are written with."""

from __future__ import annotations

import re

from deployer.errors import InvalidInput

_OFFSET = r"'[^']*\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*(?:Z|[+-]\d{2}(?::?\d{2})?)\s*'"
_ZONED = re.compile(
    rf"\btimestamp\s*{_OFFSET}|\bcast\s*\(\s*{_OFFSET}\s+as\s+timestamp|{_OFFSET}\s*::\s*timestamp", re.IGNORECASE
)


def refuse_zoned_literals(sql: str, remedy: str) -> None:
    """Raise InvalidInput for a TIMESTAMP literal with an offset.

    SQL's TIMESTAMP has no zone: DataFusion and Lance drop the offset and take the rest as the column's local time
    (tried on `TIMESTAMP '2013-07-04T18:00:00Z'` and a column in America/New_York): other rows than are asked for.
    """
    if found := _ZONED.search(sql):
        raise InvalidInput(
            f"the offset of {found[0]} would be dropped: a TIMESTAMP in SQL is local time of the column",
            remedy=remedy,
        )
