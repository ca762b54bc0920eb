"""How often a month has what a cron schedule says. Pure."""

from __future__ import annotations

import datetime as dt
from functools import cache
from itertools import takewhile

from deployer.specs.values.schedules import firing_times

MONTH = 365.25 / 12  #: days of a month
_YEARS = 4  #: with one leap day
_BEGIN = dt.datetime(2025, 1, 1, tzinfo=dt.UTC) - dt.timedelta(minutes=1)


@cache
def runs_a_month(expression: str) -> float:
    """Of four years, a month's share. A schedule fires as often on each day that it fires on."""
    first = next(firing_times(expression, "UTC", _BEGIN))
    day = first.replace(hour=0, minute=0) - dt.timedelta(minutes=1)
    tomorrow = day + dt.timedelta(days=1, minutes=1)
    a_day = sum(1 for _ in takewhile(lambda time: time < tomorrow, firing_times(expression, "UTC", day)))
    minute, hour = str(first.minute), str(first.hour)
    once = " ".join([minute, hour, *expression.split()[2:]])
    end = _BEGIN.replace(year=_BEGIN.year + _YEARS)
    days = sum(1 for _ in takewhile(lambda time: time <= end, firing_times(once, "UTC", _BEGIN)))
    return a_day * days / (12 * _YEARS)
