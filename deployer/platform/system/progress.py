"""The progress of long work on a table, reported to its caller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Progress:
    """The current work, and the number of completed parts: rows, unless `unit` names another unit.

    `total` is None where it is unknown. `rows` is the number of processed rows where `unit` is another unit.
    """

    doing: str
    done: int
    total: int | None
    unit: str = "rows"
    rows: int = 0


# : Called regularly, from any thread. It raises Interrupted when the work is to end: work that can be resumed, or :
# leaves nothing behind, lets that pass; anything else runs to its end.
OnProgress = Callable[[Progress], None]


def with_rows_read(now: Progress) -> Progress:
    """Returns the progress whose text names the rows read so far, where `unit` is something else."""
    return replace(now, doing=f"{now.doing}, {now.rows:,} rows read") if now.rows else now


def no_progress(_: Progress) -> None:
    """No-op progress callback."""


def counted(items: Iterable[T], total: int, doing: str, unit: str, on_progress: OnProgress) -> Iterable[T]:
    """Yields the items, and reports before each item how many of the `total` are done."""
    return items if on_progress is no_progress else _counted(items, total, doing, unit, on_progress)


def _counted(items: Iterable[T], total: int, doing: str, unit: str, on_progress: OnProgress) -> Iterator[T]:
    for number, each in enumerate(items):
        on_progress(Progress(doing, number, total, unit))
        yield each
    on_progress(Progress(doing, total, total, unit))


def describe_progress(doing: str, done: int, total: int | None, unit: str) -> str:
    """Returns `writing: 1,200,000 of 3,400,000 rows (35%)`."""
    if total:
        return f"{doing}: {done:,} of {total:,} {unit} ({100 * done // total}%)".replace(" (100%)", "")
    return f"{doing}: {done:,} {unit}".rstrip() if done else doing
