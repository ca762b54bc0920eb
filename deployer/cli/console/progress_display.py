"""Work under way and how far each piece of it is: drawn on a terminal, reported in a line now and then elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from rich.console import RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from deployer.cli.console.output import print_json_line, stderr
from deployer.platform.system.progress import OnProgress, Progress, describe_progress

SETTLED = 2.0  #: seconds after which the pace of work says something of its end
INTERVAL = 20.0  #: seconds between two lines of one piece of work, where there is no terminal
SHOWN = 10  #: pieces of work that are drawn at a time


@dataclass(slots=True)
class _Piece:
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


class Meter:
    """Pieces of work by name. On a terminal a line with a bar each; elsewhere, and with `as_json` as JSON documents, a
    line for each every `INTERVAL` seconds, so that short work is silent. All of it on stderr. Safe for threads.
    """

    def __init__(self, *, as_json: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = stderr()
        self.as_json = as_json
        self._clock = clock
        self._lock = threading.RLock()
        self._pieces: dict[str, _Piece] = {}
        self._spinner = Spinner("dots")
        self._draws = self.console.is_terminal and not as_json
        self._live = Live(console=self.console, transient=True, get_renderable=self._render, refresh_per_second=10)

    def __enter__(self) -> Meter:
        if self._draws:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, name: str, title: str) -> None:
        """Work that is running from now on; `title` says what and on what: `updating table/nyc.flights`."""
        with self._lock:
            now = self._clock()
            self._pieces[name] = _Piece(title, now, now, now)

    def tell(self, name: str, doing: str, done: int, total: int | None, unit: str) -> None:
        """Prints the progress; nothing for work that has not started or has ended."""
        with self._lock:
            piece = self._pieces.get(name)
            if piece is None:
                return
            now = self._clock()
            if (doing, total, unit) != (piece.doing, piece.total, piece.unit):
                piece.since, piece.first = now, done
            piece.doing, piece.done, piece.total, piece.unit = doing, done, total, unit
            if self._draws or now < piece.reported_at + INTERVAL:
                return
            piece.reported_at = now
            left = piece.time_left(now)
        if self.as_json:
            self.event("progress", address=name, doing=doing, done=done, total=total, unit=unit)
        else:
            said = ", ".join(filter(None, (describe_progress(doing, done, total, unit), left)))
            self.console.print(Text(f"  {piece.title}: {said}"), soft_wrap=True)

    def end(self, name: str) -> None:
        """Work that has ended, however it did."""
        with self._lock:
            self._pieces.pop(name, None)

    def event(self, kind: str, **about: Any) -> None:
        """One JSON document a line, for machines that follow a run."""
        with self._lock:
            print_json_line({"event": kind, **about})

    def _render(self) -> RenderableType:
        with self._lock:
            pieces = list(self._pieces.values())
            grid = Table.grid(padding=(0, 1))
            for piece in pieces[:SHOWN]:
                bar = ProgressBar(piece.total, piece.done, width=30) if piece.total else ""
                how_far = describe_progress(piece.doing, piece.done, piece.total, piece.unit) if piece.doing else ""
                text = ", ".join(filter(None, (how_far, piece.about_time(self._clock()))))
                grid.add_row(self._spinner, Text(piece.title), bar, Text(text, "dim"))
            if len(pieces) > SHOWN:
                grid.add_row("", Text(f"and {len(pieces) - SHOWN} more", "dim"))
            return grid


@contextmanager
def progress_shown(title: str, *, as_json: bool) -> Iterator[OnProgress]:
    """Shows how far one piece of work is, from its first progress on."""
    with Meter(as_json=as_json) as meter:
        begun = False

        def report_progress(now: Progress) -> None:
            nonlocal begun
            if not begun:
                begun = True
                meter.begin(title, title)
            meter.tell(title, now.doing, now.done, now.total, now.unit)

        yield report_progress


@contextmanager
def working(title: str, *, as_json: bool = False) -> Iterator[None]:
    """Shows on a terminal that work of unknown length is under way, and for how long; nothing elsewhere.

    Nothing may be printed on stdout in the block.
    """
    with Meter(as_json=as_json) as meter:
        meter.begin(title, title)
        yield
