"""The pause before a failed operation is tried again.

Loops that read the newest state and decide again need no pause, because the commit that won is complete. Starts of jobs
on AWS (`compute/emr`) have their own pauses without randomness: they wait until AWS knows a new role, not for each
other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from deployer.platform.system.clock import Clock

_SYSTEM = Clock()
_MOST_DOUBLINGS = 16


@dataclass(frozen=True, slots=True)
class Backoff:
    """Random pauses, so that processes that failed together do not collide again.

    In seconds: the first pause is at most `first`, and the limit doubles with each failure, up to `longest`.
    """

    first: float
    longest: float

    def wait(self, failures: int, clock: Clock = _SYSTEM, left: float = math.inf) -> None:
        """Pauses after this many failures (from 1), for `left` seconds at most."""
        clock.sleep(min(left, self.pause(failures, clock)))

    def pause(self, failures: int, clock: Clock = _SYSTEM) -> float:
        """Returns the seconds of a pause after this many failures (from 1), for callers that cannot sleep in the
        thread."""
        limit = min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
        return clock.uniform(0, limit)

    def attempts(self, most: int, clock: Clock = _SYSTEM) -> Iterator[int]:
        """Yields the number of each attempt from 0, with a pause before each attempt except the first."""
        for number in range(most):
            if number:
                self.wait(number, clock)
            yield number


def steady(longest: float) -> Backoff:
    """Returns pauses of at most this many seconds, whatever the number of failures."""
    return Backoff(longest, longest)
