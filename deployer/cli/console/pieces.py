"""Pieces of work with their progress and the remaining time."""

from __future__ import annotations

from dataclasses import dataclass

SETTLED = 2.0  #: seconds after which the speed of work allows an estimate


@dataclass(slots=True)
class Piece:
    """A piece of work. `since` is the time at which its current step began, `first` the parts that were done then."""

    title: str
    reported_at: float
    begun: float
    since: float
    doing: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    first: int = 0

    def time_left(self, now: float) -> str:
        """Returns the estimated time for the rest of the current step, such as `2m 10s left`; empty where it is
        unknown."""
        elapsed, made = now - self.since, self.done - self.first
        if not self.total or self.done >= self.total or made <= 0 or elapsed < SETTLED:
            return ""
        return f"{short_duration(elapsed * (self.total - self.done) / made)} left"

    def about_time(self, now: float) -> str:
        """Returns the time left, or else the time that the work has taken so far."""
        elapsed = now - self.begun
        return self.time_left(now) or (short_duration(elapsed) if elapsed >= SETTLED else "")


def short_duration(seconds: float) -> str:
    """Returns a duration in its two largest units: `45s`, `2m 10s`, `3h 5m`."""
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m {whole % 60}s" if whole < 3600 else f"{whole // 3600}h {whole % 3600 // 60}m"
