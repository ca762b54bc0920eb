"""Translates cron expressions for EventBridge Scheduler: six fields, days of the week from 1 (Sunday), and `?` for an
unused day field (https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-cron-expressions.html).

All fields are written as numbers and ranges, because steps and names have other meanings there than in cron.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator

from cronsim import CronSim

from deployer.errors import Refused
from deployer.specs.values.schedules import check_schedule

_INSTEAD = "name other days, or let the service run after commits or rows instead"


def aws_expressions(schedule: str) -> tuple[str, ...]:
    """Returns AWS's expressions that together fire at the same times as a cron expression: `("cron(0 3 * * ? *)",)`.

    There are several where cron fires on a day of the month or on a day of the week. Raises InvalidInput for an invalid
    cron expression, and Refused for an expression that AWS cannot express.
    """
    check_schedule(schedule)
    cron = CronSim(schedule, dt.datetime(2000, 1, 1, tzinfo=dt.UTC))
    minutes, hours, months = _list(cron.minutes, 60), _list(cron.hours, 24), _list(cron.months, 12)
    return tuple(f"cron({minutes} {hours} {day} {months} {weekday} *)" for day, weekday in _days(cron, schedule))


def _days(cron: CronSim, schedule: str) -> Iterator[tuple[str, str]]:
    """Yields the day of the month and day of the week of each expression; one of the two is `?`."""
    weekdays = {(day % 7) + 1 if isinstance(day, int) else day for day in cron.weekdays}
    all_days, all_weekdays = set(range(1, 32)) <= cron.days, set(range(1, 8)) <= weekdays
    if cron.day_and and not all_days and not all_weekdays:
        what = f"`{schedule}` needs a day of the month that is a certain day of the week, which AWS cannot express"
        raise Refused(what, remedy=_INSTEAD)
    if (all_days or all_weekdays) and (not cron.day_and or (all_days and all_weekdays)):
        yield "*", "?"
        return
    if not all_days:
        yield from ((day, "?") for day in _days_of_month(cron.days, schedule))
    if not all_weekdays:
        yield from (("?", day) for day in _days_of_week(weekdays, schedule))


def _days_of_month(days: Iterable[int], schedule: str) -> Iterator[str]:
    numbers = {day for day in days if day > 0}
    if numbers:
        yield _list(numbers, 31)
    if CronSim.LAST in days:
        yield "L"
    if CronSim.LAST_WEEKDAY in days:
        raise Refused(f"`{schedule}` needs the last working day of a month, which AWS cannot express", remedy=_INSTEAD)


def _days_of_week(days: Collection[int | tuple[int, int]], schedule: str) -> Iterator[str]:
    numbers = {day for day in days if isinstance(day, int)}
    if numbers:
        yield _list(numbers, 7)
    for day, place in sorted(each for each in days if not isinstance(each, int)):
        if place == CronSim.LAST:
            raise Refused(
                f"`{schedule}` needs the last of a day of the week, which AWS cannot express", remedy=_INSTEAD
            )
        yield f"{day % 7 + 1}#{place}"


def _list(numbers: Collection[int], of: int) -> str:
    """Returns numbers as ascending numbers and ranges, such as `0,15,30-35`; `*` for all `of` values of a field."""
    if len(numbers) == of:
        return "*"
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
