"""Reads dates, times, timestamps and durations of specs as the integers that Arrow stores. Values are never rounded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from deployer.specs.rules import Rule

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DURATION_UNITS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_CLOCK = r"(?P<hour>\d\d):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?)?"
_TIME = re.compile(_CLOCK)
_TIMESTAMP = re.compile(
    rf"(?P<date>\d{{4}}-\d\d-\d\d)(?:[Tt ]{_CLOCK}\s?(?P<offset>[Zz]|[+-]\d\d(?::?\d\d)?)?)?", re.ASCII
)
_DURATION = re.compile(r"(?P<count>-?\d+)\s?(?P<unit>ns|us|ms|s|m|h|d)")
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class BadValue:
    """The reason why a value is not a valid key value: the rule that it breaks, what is wrong and what to write."""

    rule: Rule
    what: str
    remedy: str


def read_date(kind: str, text: str) -> int | BadValue:
    """Returns the days since 1970-01-01, or the milliseconds where `kind` is date64."""
    try:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            raise ValueError
        days = (date.fromisoformat(text) - _EPOCH).days
    except ValueError:
        return BadValue(Rule.SPLIT_TYPE, f"`{text}` is not a date", "write a date such as 2013-01-31")
    return days if kind == "date32" else days * 86_400_000


def read_time(kind: str, unit: str, text: str) -> int | BadValue:
    """Returns the time since midnight in `unit`."""
    found = _TIME.fullmatch(text)
    seconds = _seconds_of_day(found) if found else None
    if found is None or seconds is None:
        return BadValue(Rule.SPLIT_TYPE, f"`{text}` is not a time of day", 'write a time such as "13:30:00"')
    return _with_fraction(kind, unit, text, seconds, found["fraction"])


def read_timestamp(kind: str, unit: str, zone: str | None, text: str) -> int | BadValue:
    """Returns the time since 1970-01-01T00:00 in `unit`.

    The epoch is in UTC for a column with a zone, and in local time for a column without a zone. A text without an
    offset is a local time in the zone.
    """
    found = _TIMESTAMP.fullmatch(text)
    seconds = 0 if found and found["hour"] is None else (_seconds_of_day(found) if found else None)
    try:
        if found is None or seconds is None:
            raise ValueError
        day = date.fromisoformat(found["date"])
    except ValueError:
        remedy = 'write a date such as 2013-01-31, or a time such as "2013-01-31T13:30:00Z"'
        return BadValue(Rule.SPLIT_TYPE, f"`{text}` is not a timestamp", remedy)
    local = (day - _EPOCH).days * 86_400 + seconds
    offset = found["offset"]
    if zone is None:
        if offset:
            what = f"`{text}` has an offset, and {kind} has no time zone"
            return BadValue(Rule.SPLIT_TYPE, what, "remove the offset, or give the column's type a zone")
        return _with_fraction(kind, unit, text, local, found["fraction"])
    if offset:
        shift = _offset_seconds(offset)
        if shift is None:
            return BadValue(Rule.SPLIT_TYPE, f"`{offset}` is not an offset", "write Z, or an offset such as -05:00")
        return _with_fraction(kind, unit, text, local - shift, found["fraction"])
    shifts = _local_shifts(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=local), zone)
    if len(shifts) != 1:
        return _no_single_instant(text, zone, shifts)
    return _with_fraction(kind, unit, text, local - shifts.pop(), found["fraction"])


def _no_single_instant(text: str, zone: str, shifts: set[int]) -> BadValue:
    if not shifts:
        what = f"`{text}` does not exist in {zone}, where clocks are set forward over it"
        return BadValue(Rule.SPLIT_TYPE, what, "write a time before or after it, or one with an offset")
    written = " or ".join(f'"{text}{_offset_text(shift)}"' for shift in sorted(shifts, reverse=True))
    return BadValue(Rule.SPLIT_TYPE, f"`{text}` comes twice in {zone}, where clocks are set back", f"write {written}")


def _offset_text(shift: int) -> str:
    minutes = abs(shift) // 60
    return f"{'-' if shift < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"


def read_duration(kind: str, unit: str, value: object) -> int | BadValue:
    """Returns the duration in `unit`, which is the unit of the column."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _in_range(kind, str(value), value)
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return BadValue(Rule.SPLIT_TYPE, f"`{value}` is not a duration", f"write 90s, 15m, 12h or 7d, or whole {unit}")
    units, rest = divmod(int(found["count"]) * _DURATION_UNITS[found["unit"]], 10**9 // PER_SECOND[unit])
    if rest:
        return BadValue(Rule.SPLIT_RANGE, f"`{value}` is finer than {kind}", f"use whole {unit}")
    return _in_range(kind, str(value), units)


def _seconds_of_day(found: re.Match[str]) -> int | None:
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    return hour * 3600 + minute * 60 + second if hour < 24 and minute < 60 and second < 60 else None


def _offset_seconds(offset: str) -> int | None:
    if offset in "Zz":
        return 0
    hours, minutes = int(offset[1:3]), int(offset[3:].lstrip(":") or 0)
    if hours > 14 or minutes > 59:
        return None
    return (hours * 3600 + minutes * 60) * (-1 if offset[0] == "-" else 1)


def _local_shifts(wall: datetime, zone: str) -> set[int]:
    """Returns the offsets from UTC, in seconds, at which clocks of the zone show `wall`. The time zone of `wall` itself
    is ignored."""
    if zone[0] in "+-":
        known = _offset_seconds(zone)
        return set() if known is None else {known}
    rules: tzinfo = ZoneInfo(zone)
    shifts = set[int]()
    for fold in (0, 1):
        offset = wall.replace(tzinfo=rules, fold=fold).utcoffset() or timedelta()
        instant = wall.replace(tzinfo=timezone(offset))
        if instant.astimezone(rules).utcoffset() == offset:
            shifts.add(int(offset.total_seconds()))
    return shifts


def _with_fraction(kind: str, unit: str, text: str, seconds: int, fraction: str | None) -> int | BadValue:
    nanoseconds = int((fraction or "0").ljust(9, "0"))
    parts, rest = divmod(nanoseconds, 10**9 // PER_SECOND[unit])
    if rest:
        return BadValue(Rule.SPLIT_RANGE, f"`{text}` is finer than {kind}", f"write whole {unit}")
    return _in_range(kind, text, seconds * PER_SECOND[unit] + parts)


def _in_range(kind: str, text: str, units: int) -> int | BadValue:
    if not -(2**63) <= units < 2**63:
        return BadValue(
            Rule.SPLIT_RANGE, f"`{text}` is out of the range of {kind}", "use a coarser unit or another value"
        )
    return units
