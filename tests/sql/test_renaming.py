"""New names of columns in expressions, and expressions that differ only in how they are written."""

from __future__ import annotations

import pytest

from deployer.platform.sql.renaming import canonical_expression, rename_in_expression

RENAMES = {"day": "date of flight", "delay": "late", "null": "nothing", "at": "at_time"}
CASES = {
    "delay * 2": "late * 2",
    "Delay+DELAY": "late+late",
    '"delay" / 2': "late / 2",
    "`delay` / 2": "late / 2",
    '"Delay" / 2': '"Delay" / 2',
    "gate.delay": "gate.delay",
    "delay.minutes": "late.minutes",
    "delay(day)": 'delay("date of flight")',
    "'delay' = delay": "'delay' = late",
    "CAST(delay AS day)": "CAST(late AS day)",
    "delay::day": "late::day",
    "DATE '2020-01-01' < day": "DATE '2020-01-01' < \"date of flight\"",
    "at + INTERVAL '1' day": "at_time + INTERVAL '1' day",
    "extract(day FROM at)": "extract(day FROM at_time)",
    'delay IS NOT NULL AND "null" > 1': "late IS NOT NULL AND nothing > 1",
    "delays + 1": "delays + 1",
}


@pytest.mark.parametrize("text", CASES)
def test_a_column_gets_its_new_name_where_it_is_meant(text: str) -> None:
    assert rename_in_expression(text, RENAMES) == CASES[text]


def test_two_names_can_be_exchanged() -> None:
    assert rename_in_expression("a - b", {"a": "b", "b": "a"}) == "b - a"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a*2", "a  *\n2", True),
        ("a * 2", '"a" * 2', True),
        ("a * 2", "A * 2", True),
        ("a * 2", '"A" * 2', False),
        ("CASE WHEN a THEN 'X' END", "case when a then 'X' end", True),
        ("'X'", "'x'", False),
        ("'a  b'", "'a b'", False),
        ("a * 2", "2 * a", False),
        ("a = 1", "a = 10", False),
        ("a = null", 'a = "null"', False),
    ],
)
def test_expressions_are_the_same_whatever_their_blanks_capitals_and_quotes(one: str, other: str, same: bool) -> None:
    assert (canonical_expression(one) == canonical_expression(other)) is same
