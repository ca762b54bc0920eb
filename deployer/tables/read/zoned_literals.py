"""Instants in SQL: the conversion of timestamps with an offset or a zone to values that every engine reads correctly.

SQL's TIMESTAMP has no zone. DataFusion and Lance convert `TIMESTAMP '2013-07-04T18:00:00Z'` to UTC, drop the zone, and
read the rest as local time of the column that it is compared with. Where the column's zone is not UTC, this returns the
wrong rows. A value of type `timestamp[…, UTC]` is compared as an instant. A column without a zone is compared with such
a value as if the column were in UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import InvalidInput

_TEXT = r"'(?:[^']|'')*'"
_STAMP = r"timestamp(?:tz|\s+with(?:out)?\s+time\s+zone)?"
_ZONE = rf"(?:\s+at\s+time\s+zone\s+(?P<zone{{0}}>{_TEXT}))?"
_FORMS = (
    rf"\b{_STAMP}\s*(?P<text0>{_TEXT})",
    rf"\bcast\s*\(\s*(?P<text1>{_TEXT})\s+as\s+{_STAMP}\s*\)",
    rf"\bto_timestamp\s*\(\s*(?P<text2>{_TEXT})\s*\)",
    rf"(?P<text3>{_TEXT})\s*::\s*{_STAMP}\b",
)
_TOKENS = re.compile(  # texts, names in quotes and comments contain no literals
    "|".join([*(form + _ZONE.format(i) for i, form in enumerate(_FORMS)), _TEXT, r'"[^"]*"', "`[^`]*`", "--[^\n]*"])
    + r"|/\*.*?\*/",
    re.IGNORECASE | re.DOTALL,
)
_INSTANT = re.compile(
    r"\s*(?P<day>\d{4}-\d{2}-\d{2})(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2})?)(?:\.(?P<fraction>\d{1,9}))?)?"
    r"\s*(?P<offset>Z|[+-]\d{2}(?::?\d{2})?)?\s*",
    re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def with_instants(sql: str) -> str:
    """Returns the SQL with a value in place of each TIMESTAMP literal that has an offset, or is `AT TIME ZONE` of a
    named zone.

    Raises InvalidInput for a literal that is not a time, or that a change of the clocks in its zone skips or repeats.
    """
    return _TOKENS.sub(_replaced, sql)


def _replaced(found: re.Match[str]) -> str:
    groups = found.groupdict()
    text = next((groups[f"text{i}"] for i in range(len(_FORMS)) if groups[f"text{i}"] is not None), None)
    zone = next((groups[f"zone{i}"] for i in range(len(_FORMS)) if groups[f"zone{i}"] is not None), None)
    if text is None or (match := _INSTANT.fullmatch(text[1:-1])) is None:
        return found[0]
    if (match["offset"] is None) == (zone is None):  # a local time, or an instant that is converted to a zone
        return found[0]
    try:
        local = datetime.fromisoformat(f"{match['day']}T{match['time'] or '00:00'}").replace(tzinfo=UTC)
        moment = local - _offset(match["offset"]) if zone is None else _in_zone(local, zone[1:-1])
    except (ValueError, OverflowError, pa.ArrowException) as wrong:
        raise InvalidInput(
            f"{found[0]} is not an instant: {str(wrong).splitlines()[0]}",
            remedy="write a time that exists once, with its offset: TIMESTAMP '2024-10-27T02:30:00+01:00'",
        ) from None
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    fraction = match["fraction"] or ""
    if len(fraction) <= 6:
        return _value(micros + int(fraction.ljust(6, "0")), "Microsecond")
    return _value(micros * 1000 + int(fraction.ljust(9, "0")), "Nanosecond")


def _value(number: int, unit: str) -> str:
    if not -(2**63) < number < 2**63:
        raise InvalidInput(
            "a time with nanoseconds lies between the years 1677 and 2262", remedy="leave out the digits below 1 us"
        )
    return f"arrow_cast({number}, 'Timestamp({unit}, Some(\"UTC\"))')"


def _offset(text: str) -> timedelta:
    if text in "Zz":
        return timedelta()
    digits = text[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    if size >= timedelta(days=1):
        raise ValueError(f"{text} is not an offset")
    return -size if text[0] == "-" else size


def _in_zone(local: datetime, zone: str) -> datetime:
    naive = pa.scalar(local.replace(tzinfo=None), pa.timestamp("us"))
    instant = pc.assume_timezone(naive, zone).cast(pa.timestamp("us", "UTC"))
    found: datetime = instant.as_py()
    return found
