"""The format of times in JSON for people and programs: `2026-01-31T03:00:00.000000+00:00`.

It has the same width for every moment. Stored times are in milliseconds. Fields that hold a time have `TIME` as their
metadata.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

TIME: Mapping[str, bool] = {"time": True}  #: metadata of a field whose value is a time in milliseconds since 1970

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LAST = 253_402_300_799_999  #: ms since 1970: the end of the year 9999, the last year of Python's dates


def iso_utc(moment: int | dt.datetime) -> str:
    """Returns a moment (milliseconds since 1970, or a datetime with a time zone) as ISO 8601 in UTC.

    A number of milliseconds after the year 9999 gives the end of that year, and a negative one gives 1970.
    """
    if isinstance(moment, int):
        moment = _EPOCH + dt.timedelta(milliseconds=max(0, min(moment, _LAST)))
    return moment.astimezone(dt.UTC).isoformat(timespec="microseconds")


def iso_or_none(ms: int | None) -> str | None:
    """Returns the time as `iso_utc` does; None for an unknown time, which the state stores as None or 0."""
    return iso_utc(ms) if ms else None


def as_document(value: DataclassInstance) -> dict[str, Any]:
    """Returns a dataclass as a dict, as `dataclasses.asdict` does, but with times as ISO 8601."""
    return {
        each.name: iso_or_none(inner) if each.metadata.get("time") else _plain(inner)
        for each in fields(value)
        for inner in (getattr(value, each.name),)
    }


def _plain(value: Any) -> Any:
    match value:
        case dt.datetime():
            return iso_utc(value)
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return as_document(value)
        case _:
            return value


def with_times(value: DataclassInstance, encoded: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `encoded`, which `codec.encode` made from `value`, with times as ISO 8601."""
    found = dict(encoded)
    for each in fields(value):
        inner = getattr(value, each.name)
        if each.name not in found:
            continue
        if each.metadata.get("time"):
            found[each.name] = iso_or_none(inner)
        elif isinstance(inner, tuple) and isinstance(found[each.name], Mapping):  # written as columns
            found[each.name] = _columns(inner, found[each.name])
        elif is_dataclass(inner) and not isinstance(inner, type):
            found[each.name] = with_times(inner, found[each.name])
    return found


def _columns(items: tuple[Any, ...], encoded: Mapping[str, Any]) -> dict[str, Any]:
    times = [each.name for each in fields(items[0]) if each.metadata.get("time")] if items else []
    return {**encoded, **{name: [iso_or_none(getattr(item, name)) for item in items] for name in times}}
