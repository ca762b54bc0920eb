"""The display of running work and its progress: drawn on a terminal, otherwise printed as a line now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.text import Text

from deployer.cli.console.on_screen import is_drawable
from deployer.cli.console.output import print_json_line, stderr
from deployer.cli.console.pieces import Piece
from deployer.platform.system.progress import OnProgress, Progress, describe_progress, no_progress

if TYPE_CHECKING:
    from rich.console import Console

    from deployer.cli.console.drawing import Drawing

DELAY = 1.0  #: seconds after which work is drawn on a terminal
INTERVAL = 20.0  #: seconds between two lines of the same piece of work without a terminal


class Meter:
    """Pieces of work by name, shown on stderr. On a terminal, each has a line with a bar once the work has taken
    `DELAY` seconds. Elsewhere, and as JSON documents with `as_json`, each has a line every `INTERVAL` seconds, so that
    short work is silent. Safe for threads.

    One meter is drawn at a time: a meter that begins inside the block of another hides it until the inner block ends.
    """

    def __init__(self, *, as_json: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.as_json = as_json
        self._clock = clock
        self._lock = threading.RLock()
        self._pieces: dict[str, Piece] = {}
        self._draws = is_drawable(as_json=as_json)
        self._drawing: Drawing | None = None
        self._changing = threading.RLock()  # held while it is shown or hidden, and never taken while `_lock` is held
        self._timer: threading.Timer | None = None
        self._console: Console | None = None
        self._entered = 0.0
        self._ended = False
        self._outer: Meter | None = None

    @property
    def console(self) -> Console:
        """The console of stderr, whose lines appear above the drawing."""
        with self._lock:
            self._console = self._console or stderr()
            return self._console

    def __enter__(self) -> Meter:
        global _drawn
        if self._draws:
            self._entered = self._clock()
            self._outer, _drawn = _drawn, self
            if self._outer is not None:
                self._outer._hide()
            self._show_in_time()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _drawn
        self._ended = True
        self._hide()
        if _drawn is self:
            outer = self._outer
            while outer is not None and outer._ended:
                outer = outer._outer
            _drawn = outer
            if outer is not None:
                outer._show_in_time()

    def _show_in_time(self) -> None:
        left = self._entered + DELAY - self._clock()
        if left <= 0:
            self._show()
            return
        self._timer = threading.Timer(left, self._show)
        self._timer.daemon = True
        self._timer.start()

    def _show(self) -> None:
        with self._changing:
            if self._ended or _drawn is not self or self._drawing is not None:
                return
            from deployer.cli.console.drawing import Drawing

            self._drawing = Drawing(self.console, self._copied, self._clock)
            self._drawing.start()

    def _hide(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._changing:
            drawing, self._drawing = self._drawing, None
            if drawing is not None:
                drawing.stop()

    def begin(self, name: str, title: str | None = None) -> OnProgress:
        """Shows work that begins now, and returns the callback for its progress.

        `title` says what is done and to what, such as `updating table/nyc.flights`; by default, it is the name.
        """
        with self._lock:
            now = self._clock()
            self._pieces[name] = Piece(title or name, now, now, now)
        self._refresh()
        return partial(self.report, name)

    def report(self, name: str, progress: Progress) -> None:
        """Shows the progress of the work; does nothing for work that has not begun or has ended."""
        doing, done, total, unit = progress.doing, progress.done, progress.total, progress.unit
        with self._lock:
            piece = self._pieces.get(name)
            if piece is None:
                return
            now = self._clock()
            is_other = (doing, total, unit) != (piece.doing, piece.total, piece.unit)
            if is_other:
                piece.since, piece.first = now, done
            piece.doing, piece.done, piece.total, piece.unit = doing, done, total, unit
            reports = not self._draws and now >= piece.reported_at + INTERVAL
            if reports:
                piece.reported_at = now
            left = piece.time_left(now)
        if is_other:
            self._refresh()
        if reports and self.as_json:
            self.event("progress", address=name, doing=doing, done=done, total=total, unit=unit)
        elif reports:
            said = ", ".join(filter(None, (describe_progress(doing, done, total, unit), left)))
            self.console.print(Text(f"  {piece.title}: {said}"), soft_wrap=True)

    def end(self, name: str) -> None:
        """Removes work that has ended, with or without success."""
        with self._lock:
            self._pieces.pop(name, None)

    def event(self, kind: str, **about: Any) -> None:
        """Prints one JSON document as a line, for programs that follow a run."""
        with self._lock:
            print_json_line({"event": kind, **about})

    def _refresh(self) -> None:
        """Draws a change at once; growing figures are drawn ten times a second."""
        drawing = self._drawing
        if drawing is not None:
            drawing.refresh()

    def _copied(self) -> list[Piece]:
        with self._lock:
            return [replace(piece) for piece in self._pieces.values()]


#: the meter that is drawn, or that will be once its work has taken long enough
_drawn: Meter | None = None


@contextmanager
def progress_shown(title: str, *, as_json: bool) -> Iterator[OnProgress]:
    """Shows the progress of one piece of work, from its first progress on."""
    with Meter(as_json=as_json) as meter:
        begun = False

        def report_progress(now: Progress) -> None:
            nonlocal begun
            if not begun:
                begun = True
                meter.begin(title)
            meter.report(title, now)

        yield report_progress


@contextmanager
def working(title: str, *, as_json: bool = False) -> Iterator[OnProgress]:
    """Shows on a terminal that work is running, for how long, and its progress, which the yielded callback receives.
    Without a terminal it shows nothing.

    Nothing may be printed on stdout in the block.
    """
    with Meter(as_json=as_json) as meter:
        on_progress = meter.begin(title)
        yield on_progress if is_drawable(as_json=as_json) else no_progress
