"""The drawing of pieces of work on a terminal. The module loads parts of Rich that short commands do not need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from deployer.cli.console.pieces import Piece
from deployer.platform.system.progress import describe_progress

SHOWN = 10  #: the most pieces of work that are drawn at a time


class Drawing:
    """A display with a line and a bar for each piece of work; it is removed when it stops."""

    def __init__(self, console: Console, pieces: Callable[[], Sequence[Piece]], clock: Callable[[], float]) -> None:
        self._pieces, self._clock = pieces, clock
        self._spinner = Spinner("dots")
        self._live = Live(
            console=console,
            transient=True,
            get_renderable=self.render,
            refresh_per_second=10,
            redirect_stdout=sys.stdout.isatty(),
        )

    def start(self) -> None:
        self._live.start(refresh=True)

    def refresh(self) -> None:
        self._live.refresh()

    def stop(self) -> None:
        self._live.stop()

    def render(self) -> RenderableType:
        """Returns the lines of the display."""
        pieces = self._pieces()
        grid = Table.grid(padding=(0, 1))
        for piece in pieces[:SHOWN]:
            bar = ProgressBar(piece.total, piece.done, width=30) if piece.total else ""
            how_far = describe_progress(piece.doing, piece.done, piece.total, piece.unit) if piece.doing else ""
            text = ", ".join(filter(None, (how_far, piece.about_time(self._clock()))))
            grid.add_row(self._spinner, Text(piece.title), bar, Text(text, "dim"))
        if len(pieces) > SHOWN:
            grid.add_row("", Text(f"and {len(pieces) - SHOWN} more", "dim"))
        return grid
