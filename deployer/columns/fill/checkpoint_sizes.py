"""The number of rows of a fragment that are made at a time, and the time after which they are saved. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deployer.errors import InvalidInput

LARGEST_ROWS = 1_048_576  #: rows that are made at a time at most, unless the caller says otherwise
SMALLEST_ROWS = 4_096  #: rows that are made at a time at least, unless the caller says otherwise
GROWTH = 2.0  #: how much larger a batch is than the one before at most


@dataclass(frozen=True, slots=True)
class CheckpointSizes:
    """Sizes in rows and times in seconds of the parts in which values of a fragment are made and saved.

    The first batch has `first` rows (None: `smallest`). Those after it are to take `seconds` each, within `smallest`
    and `largest` rows. What was made is saved when that is `flush_seconds` ago (None: `seconds`; 0: each batch).
    """

    first: int | None = None
    smallest: int = SMALLEST_ROWS
    largest: int = LARGEST_ROWS
    seconds: float = 60.0
    flush_seconds: float | None = None

    @property
    def save_seconds(self) -> float:
        return self.seconds if self.flush_seconds is None else self.flush_seconds


class BatchSize:
    """The rows of the next batch, by the time that those before it took. One thread uses it."""

    def __init__(self, sizes: CheckpointSizes) -> None:
        self._sizes = sizes
        self.rows = self._within(sizes.smallest if sizes.first is None else sizes.first)

    def took(self, rows: int, seconds: float) -> None:
        """Notes a batch. One of fewer rows than asked for says nothing of larger ones, unless it took too long."""
        wanted = self._sizes.seconds
        if rows < self.rows and seconds <= wanted:
            return
        factor = min(GROWTH, wanted / seconds) if seconds else GROWTH
        self.rows = self._within(int(rows * factor))

    def _within(self, rows: int) -> int:
        return max(self._sizes.smallest, min(self._sizes.largest, rows), 1)


def checked_checkpoint_sizes(
    checkpoint_size: int | None,
    min_checkpoint_size: int | None,
    max_checkpoint_size: int | None,
    checkpoint_interval_seconds: float | None,
    default_seconds: float,
    batch_checkpoint_flush_interval_seconds: float | None = None,
) -> CheckpointSizes:
    """Returns the sizes that a call asks for. Raises InvalidInput for arguments that cannot be."""
    require_positive("checkpoint_size", checkpoint_size)
    require_positive("min_checkpoint_size", min_checkpoint_size)
    require_positive("max_checkpoint_size", max_checkpoint_size)
    require_seconds("checkpoint_interval_seconds", checkpoint_interval_seconds)
    require_seconds("batch_checkpoint_flush_interval_seconds", batch_checkpoint_flush_interval_seconds)
    low, high = min_checkpoint_size, max_checkpoint_size
    if low is not None and high is not None and low > high:
        raise InvalidInput(
            f"min_checkpoint_size={low} is above max_checkpoint_size={high}",
            remedy="give a maximum that is not below it",
        )
    smallest = min(SMALLEST_ROWS, checkpoint_size or SMALLEST_ROWS) if low is None else low
    largest = max(LARGEST_ROWS, smallest) if high is None else high
    return CheckpointSizes(
        checkpoint_size,
        min(smallest, largest),
        largest,
        default_seconds if checkpoint_interval_seconds is None else float(checkpoint_interval_seconds),
        batch_checkpoint_flush_interval_seconds,
    )


def require_positive(name: str, size: object) -> None:
    """Raises InvalidInput for what is neither None nor a whole number from 1."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise InvalidInput(
            f"{name}={size!r} is not a positive whole number", remedy=f"leave {name} out, or give 1 or more"
        )


def require_seconds(name: str, seconds: object) -> None:
    """Raises InvalidInput for what is neither None nor a number of seconds from 0."""
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise InvalidInput(f"{name}={seconds!r} is not a number of seconds", remedy="leave it out, or give 0 or more")
    if seconds < 0:
        raise InvalidInput(f"{name}={seconds!r} is negative", remedy="leave it out, or give 0 or more")
