"""The pause before something that failed is tried again.

Loops that read the newest state and decide again need no pause: the commit that won is complete. Starts of jobs on AWS
(`compute/emr`) have pauses of their own without randomness: they wait for AWS to know a new role, not for each other.
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
    """Random pauses, so that those who failed together do not meet again.

    In seconds: the first pause is at most `first`, and the limit doubles with each failure, up to `longest`.
    """

    first: float
    longest: float

    def wait(self, failures: int, clock: Clock = _SYSTEM, left: float = math.inf) -> None:
        """Pauses after this many failures (from 1), for `left` seconds at most."""
        clock.sleep(min(left, self.pause(failures, clock)))

    def pause(self, failures: int, clock: Clock = _SYSTEM) -> float:
        """Returns the seconds of a pause after this many failures (from 1), for those who cannot sleep in the
        thread."""
        limit = min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
        return clock.uniform(0, limit)

    def attempts(self, most: int, clock: Clock = _SYSTEM) -> Iterator[int]:
        """Counts attempts from 0, with a pause before each but the first."""
        for number in range(most):
            if number:
                self.wait(number, clock)
            yield number


def steady(longest: float) -> Backoff:
    """Pauses of at most this many seconds, however often it failed."""
    return Backoff(longest, longest)
