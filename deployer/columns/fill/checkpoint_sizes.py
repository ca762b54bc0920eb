"""The number of rows of a fragment that are computed at a time, and the time after which they are saved. All functions
are pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deployer.errors import InvalidInput

LARGEST_ROWS = 1_048_576  #: default of the most rows that are computed at a time
SMALLEST_ROWS = 4_096  #: default of the fewest rows that are computed at a time
GROWTH = 2.0  #: largest factor from the size of a batch to that of the next


@dataclass(frozen=True, slots=True)
class CheckpointSizes:
    """Sizes in rows and times in seconds of the batches in which values of a fragment are computed and saved.

    The first batch has `first` rows (None: `smallest`). Each later batch has between `smallest` and `largest` rows, so
    that it takes about `seconds`. Values are saved `flush_seconds` after the last save (None: `seconds`; 0: after each
    batch).
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
    """The number of rows of the next batch, from the durations of earlier batches. Not safe for threads."""

    def __init__(self, sizes: CheckpointSizes) -> None:
        self._sizes = sizes
        self.rows = self._within(sizes.smallest if sizes.first is None else sizes.first)

    def took(self, rows: int, seconds: float) -> None:
        """Adjusts the size after a batch of `rows` rows that took `seconds`. A batch with fewer rows than requested
        changes the size only if it took too long."""
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
    """Returns the sizes that the arguments of a call request. Raises InvalidInput for invalid arguments."""
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
    """Raises InvalidInput for a value that is neither None nor a whole number of at least 1."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise InvalidInput(
            f"{name}={size!r} is not a positive whole number", remedy=f"leave {name} out, or give 1 or more"
        )


def require_seconds(name: str, seconds: object) -> None:
    """Raises InvalidInput for a value that is neither None nor a number of seconds of at least 0."""
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        raise InvalidInput(f"{name}={seconds!r} is not a number of seconds", remedy="leave it out, or give 0 or more")
    if seconds < 0:
        raise InvalidInput(f"{name}={seconds!r} is negative", remedy="leave it out, or give 0 or more")
