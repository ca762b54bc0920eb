"""The progress that is drawn on the terminal. It is removed before anything else is printed there."""

from __future__ import annotations

import sys
from typing import Protocol

from deployer.cli.console.streams import real
from deployer.platform.system.progress import Progress


class Shown(Protocol):
    """The display of a command, as a block that ends."""

    def report(self, name: str, progress: Progress) -> None:
        """Shows how far the work of that name is."""

    def __exit__(self, kind: None, error: None, trace: None) -> None: ...


_activity: Shown | None = None


def is_drawable(*, as_json: bool) -> bool:
    """Returns whether progress is drawn: stderr is a terminal, and no program reads what the command prints."""
    return not as_json and real(sys.stderr).isatty()


def current_activity() -> Shown | None:
    """Returns what is shown of the command; None where nothing is."""
    return _activity


def begin_activity(shown: Shown) -> None:
    """Takes what is shown of the command from now on."""
    global _activity
    _activity = shown


def end_activity() -> None:
    """Removes what is shown of the command, if anything is."""
    global _activity
    shown, _activity = _activity, None
    if shown is not None:
        shown.__exit__(None, None, None)
