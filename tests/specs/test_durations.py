"""Lengths of time: what they mean, and that one is written in one way."""

from __future__ import annotations

import pytest

from deployer.errors import InvalidInput
from deployer.specs.values.durations import canonical, hours_of


@pytest.mark.parametrize(
    ("text", "hours", "written"),
    [("7d", 168, "7d"), ("168h", 168, "7d"), ("36h", 36, "36h"), ("0d", 0, "0d"), ("0h", 0, "0d"), ("007d", 168, "7d")],
)
def test_lengths_of_time(text: str, hours: int, written: str) -> None:
    assert hours_of(text) == hours
    assert canonical(text) == written
    assert canonical(written) == written


@pytest.mark.parametrize("text", ["", "7", "d", "7 d", "1w", "-1d", "1.5d", "7D", "123456d", "7d\n", "٣d"])
def test_what_is_none_is_said(text: str) -> None:
    with pytest.raises(InvalidInput, match="is no length of time; write a number and d or h"):
        hours_of(text)
