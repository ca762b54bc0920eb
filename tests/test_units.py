"""Durations: what they mean, and their one canonical spelling."""

from __future__ import annotations

from datetime import timedelta

import pytest

from deployer.errors import InvalidInput
from deployer.platform.text.units import GO_DURATION, OPTION_DURATION, canonical_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "hours", "written"),
    [("7d", 168, "7d"), ("168h", 168, "7d"), ("36h", 36, "36h"), ("0d", 0, "0d"), ("0h", 0, "0d"), ("007d", 168, "7d")],
)
def test_durations_of_specs(text: str, hours: int, written: str) -> None:
    assert parse_duration(text) == timedelta(hours=hours)
    assert canonical_duration(text) == written
    assert canonical_duration(written) == written


@pytest.mark.parametrize("text", ["", "7", "d", "7 d", "1w", "-1d", "1.5d", "7D", "123456d", "7d\n", "٣d"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not a valid duration; write a number and d or h"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "pattern", "seconds"),
    [
        ("90s", OPTION_DURATION, 90),
        ("5m", OPTION_DURATION, 300),
        ("1h30m", GO_DURATION, 5400),
        ("1.5s", GO_DURATION, 1.5),
        ("250ms", GO_DURATION, 0.25),
    ],
)
def test_each_place_has_its_form_of_durations(text: str, pattern: str, seconds: float) -> None:
    assert parse_duration(text, pattern) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "pattern"), [("1d", OPTION_DURATION), ("1d", GO_DURATION), ("9" * 20 + "h", GO_DURATION)]
)
def test_what_is_not_in_that_form_is_refused(text: str, pattern: str) -> None:
    with pytest.raises(InvalidInput, match=r"^--every: '.*' is not a valid duration; write it "):
        parse_duration(text, pattern, option="--every")
