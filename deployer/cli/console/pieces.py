"""Pieces of work: how far each is, and how long it takes yet."""

from __future__ import annotations

from dataclasses import dataclass

SETTLED = 2.0  #: seconds after which the pace of work says something of its end


@dataclass(slots=True)
class Piece:
    """A piece of work. `since` is when it began what it is doing now, with `first` of its parts done."""

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
        """Returns how long what it is doing takes yet at its pace, such as `2m 10s left`; empty where that is not
        known."""
        elapsed, made = now - self.since, self.done - self.first
        if not self.total or self.done >= self.total or made <= 0 or elapsed < SETTLED:
            return ""
        return f"{short_duration(elapsed * (self.total - self.done) / made)} left"

    def about_time(self, now: float) -> str:
        """Returns the time left, else the time that the work took so far."""
        elapsed = now - self.begun
        return self.time_left(now) or (short_duration(elapsed) if elapsed >= SETTLED else "")


def short_duration(seconds: float) -> str:
    """Returns a duration in its two largest units: `45s`, `2m 10s`, `3h 5m`."""
    whole = max(round(seconds), 1)
    if whole < 60:
        return f"{whole}s"
    return f"{whole // 60}m {whole % 60}s" if whole < 3600 else f"{whole // 3600}h {whole % 3600 // 60}m"
