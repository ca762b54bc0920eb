"""Cron schedules of services: whether an expression is one, and when it fires."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from zoneinfo import ZoneInfo

from deployer.errors import InvalidInput

_REMEDY = "write minute, hour, day of the month, month and day of the week, such as 0 3 * * *"


def check_schedule(expression: str) -> None:
    """Raises InvalidInput for a text that is not a cron expression of five fields, and for one that never fires."""
    if len(expression.split()) != 5:
        number = len(expression.split())
        raise InvalidInput(
            f"`{expression}` has {number} field{'' if number == 1 else 's'} and not five", remedy=_REMEDY
        )
    # a leap day that is a Monday is up to 40 years away, so this says only what can never be
    if next(firing_times(expression, "UTC", dt.datetime(2000, 1, 1, tzinfo=dt.UTC)), None) is None:
        raise InvalidInput(f"`{expression}` never fires", remedy="name a day that its months have")


def firing_times(expression: str, timezone: str, after: dt.datetime) -> Iterator[dt.datetime]:
    """Yields the times when a schedule fires after a moment, in its time zone; ends where it never fires again.

    A time that a day does not have, when clocks go forward, is the next one that it has; one that it has twice fires
    once, as Debian's cron does it. Raises InvalidInput for a text that is not a valid expression.
    """
    # Times are compared as moments: in an hour that a day has twice the clock shows those of the first pass again.
    times = _cron(expression, after.astimezone(ZoneInfo(timezone)))
    return (time for time in times if time.timestamp() > after.timestamp())


def last_firing(expression: str, timezone: str, now: dt.datetime) -> dt.datetime | None:
    """Returns when a schedule fired last, at `now` or before, in its time zone; None: not in the last 50 years.

    Raises InvalidInput for a text that is not a valid expression.
    """
    # a microsecond makes the whole second count, in which it may fire
    local = now.astimezone(ZoneInfo(timezone)).replace(microsecond=1)
    last = next(_cron(expression, local, reverse=True), None)
    if last is None:
        return None
    for time in firing_times(expression, timezone, last):  # the first pass of an hour that a day has twice
        if time.timestamp() > now.timestamp():
            break
        last = time
    return last


def _cron(expression: str, local: dt.datetime, *, reverse: bool = False) -> Iterator[dt.datetime]:
    from cronsim import CronSim, CronSimError

    try:
        return CronSim(expression, local, reverse=reverse)
    except CronSimError as error:
        what = str(error).removeprefix("Bad ")
        raise InvalidInput(f"`{expression}` has a bad {what} field", remedy=_REMEDY) from error
