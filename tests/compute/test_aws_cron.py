"""Cron expressions on AWS fire when cron's do: next times of both are compared, AWS's by a reading of its own."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Iterator
from itertools import islice, takewhile

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deployer.compute.schedules.cron import aws_expressions
from deployer.errors import InvalidInput, Refused
from deployer.specs.values.schedules import firing_times

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DAYS = 800


WRITTEN = {
    "0 3 * * *": ("cron(0 3 * * ? *)",),
    "*/15 * * * *": ("cron(0,15,30,45 * * * ? *)",),
    "0 3 * * 0": ("cron(0 3 ? * 1 *)",),
    "0 3 * * 7": ("cron(0 3 ? * 1 *)",),
    "0 3 * * MON-FRI": ("cron(0 3 ? * 2-6 *)",),
    "0 3 * * 5-7": ("cron(0 3 ? * 1,6-7 *)",),
    "0 3 1,15 * *": ("cron(0 3 1,15 * ? *)",),
    "0 3 L * *": ("cron(0 3 L * ? *)",),
    "0 3 1,L * *": ("cron(0 3 1 * ? *)", "cron(0 3 L * ? *)"),
    "0 3 * * 2#1": ("cron(0 3 ? * 3#1 *)",),
    "0 3 13 * 5": ("cron(0 3 13 * ? *)", "cron(0 3 ? * 6 *)"),
    "0 3 1-31 * 5": ("cron(0 3 * * ? *)",),
    "0 3 1 */3 *": ("cron(0 3 1 1,4,7,10 ? *)",),
}


@pytest.mark.parametrize("schedule", WRITTEN)
def test_an_expression_is_written_as_aws_takes_it(schedule: str) -> None:
    assert aws_expressions(schedule) == WRITTEN[schedule]


@pytest.mark.parametrize("schedule", WRITTEN)
def test_written_expressions_fire_when_cron_does(schedule: str) -> None:
    agree(schedule)


@pytest.mark.parametrize(
    ("schedule", "text"),
    [
        ("0 3 */2 * 1", "a day of the month that is a certain day of the week"),
        ("0 3 LW * *", "last working day"),
        ("0 3 * * 5L", "last of a day of the week"),
    ],
)
def test_what_aws_cannot_say_is_refused(schedule: str, text: str) -> None:
    with pytest.raises(Refused, match=text):
        aws_expressions(schedule)


def test_the_longest_expression_has_room() -> None:
    """Two of three of everything has the most ranges; AWS takes 256 characters."""
    fields = (range(60), range(24), range(1, 32), range(1, 13))
    longest = " ".join(",".join(str(each) for each in numbers if each % 3 != 2) for numbers in fields)
    assert all(len(each) <= 256 for each in aws_expressions(f"{longest} *"))


def test_what_is_no_cron_expression_is_said() -> None:
    with pytest.raises(InvalidInput, match="bad hour"):
        aws_expressions("0 24 * * *")


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    ranges = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.tuples(ranges | st.just("*"), st.integers(1, 9)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    one = number.map(str) | ranges | steps
    return st.just("*") | one | st.lists(number.map(str) | ranges, min_size=1, max_size=4).map(",".join)


SCHEDULES = st.tuples(field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 7)).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(SCHEDULES)
def test_any_expression_fires_when_cron_does(schedule: str) -> None:
    try:
        aws_expressions(schedule)
    except (InvalidInput, Refused):
        assume(False)
    agree(schedule)


def agree(schedule: str) -> None:
    """The first firing times of cron, and those of all of AWS's expressions, on the same days."""
    end = START + dt.timedelta(days=DAYS)
    by_cron = list(islice(takewhile(lambda at: at < end, firing_times(schedule, "UTC", START)), 200))
    until = by_cron[-1] if len(by_cron) == 200 else end
    by_aws = sorted({at for each in aws_expressions(schedule) for at in fires(each, until) if START < at <= until})
    assert [at for at in by_cron if at <= until] == by_aws


def fires(expression: str, until: dt.datetime) -> Iterator[dt.datetime]:
    """When EventBridge fires, from its documentation's grammar."""
    minutes, hours, day, months, weekday, year = expression.removeprefix("cron(").removesuffix(")").split()
    assert year == "*"
    assert (day == "?") != (weekday == "?")
    date = START.date()
    while date <= until.date():
        if date.month in numbers(months, 1, 12) and (
            on_day(date, day) if weekday == "?" else on_weekday(date, weekday)
        ):
            for hour in sorted(numbers(hours, 0, 23)):
                for minute in sorted(numbers(minutes, 0, 59)):
                    yield dt.datetime.combine(date, dt.time(hour, minute), dt.UTC)
        date += dt.timedelta(days=1)


def on_day(date: dt.date, field: str) -> bool:
    if field == "L":
        return date.day == calendar.monthrange(date.year, date.month)[1]
    return date.day in numbers(field, 1, 31)


def on_weekday(date: dt.date, field: str) -> bool:
    """1 is Sunday; `3#2` is the second Tuesday."""
    today = date.isoweekday() % 7 + 1
    if "#" in field:
        day, place = map(int, field.split("#"))
        return today == day and (date.day + 6) // 7 == place
    return today in numbers(field, 1, 7)


def numbers(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        first, _, last = part.partition("-")
        found |= set(range(low, high + 1)) if part == "*" else set(range(int(first), int(last or first) + 1))
    assert found <= set(range(low, high + 1))
    return found
