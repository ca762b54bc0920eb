"""Cron schedules of services: a check of expressions, and the times at which they fire."""

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
    # a leap day on a Monday may be 40 years away, so only expressions that can never fire are refused
    if next(firing_times(expression, "UTC", dt.datetime(2000, 1, 1, tzinfo=dt.UTC)), None) is None:
        raise InvalidInput(f"`{expression}` never fires", remedy="name a day that its months have")


def firing_times(expression: str, timezone: str, after: dt.datetime) -> Iterator[dt.datetime]:
    """Yields the times after `after` at which a schedule fires, in its time zone. Ends where it never fires again.

    A time that is skipped when clocks go forward fires at the next time that exists. A time that occurs twice when
    clocks go back fires once, as in Debian's cron. Raises InvalidInput for a text that is not a valid expression.
    """
    # Times are compared as instants, because local times occur twice in the hour that clocks repeat.
    times = _cron(expression, after.astimezone(ZoneInfo(timezone)))
    return (time for time in times if time.timestamp() > after.timestamp())


def last_firing(expression: str, timezone: str, now: dt.datetime) -> dt.datetime | None:
    """Returns the last time at or before `now` at which a schedule fired, in its time zone; None where it did not fire
    in the last 50 years.

    Raises InvalidInput for a text that is not a valid expression.
    """
    # the added microsecond includes the second of `now`, in which the schedule may fire
    local = now.astimezone(ZoneInfo(timezone)).replace(microsecond=1)
    last = next(_cron(expression, local, reverse=True), None)
    if last is None:
        return None
    for time in firing_times(expression, timezone, last):  # for the hour that clocks repeat
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
