"""Time and randomness as a value, which tests replace."""

from __future__ import annotations

import datetime as dt
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass


def _milliseconds() -> int:
    return time.time_ns() // 1_000_000


def _uuid() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock: `now` in ms since 1970, `monotonic` and `sleep` in seconds, `uniform(a, b)` at random, and unique
    `new_id`."""

    now: Callable[[], int] = _milliseconds
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform
    new_id: Callable[[], str] = _uuid


def utc(ms: int) -> str:
    """Returns a time, given in milliseconds since 1970, as text."""
    return f"{dt.datetime.fromtimestamp(ms / 1000, dt.UTC):%Y-%m-%d %H:%M:%S}"
