"""The progress display of a command on the terminal. It is removed before anything else is printed there."""

from __future__ import annotations

import sys
from typing import Protocol

from deployer.cli.console.streams import real
from deployer.platform.system.progress import Progress


class Shown(Protocol):
    """The display of a command; leaving its block removes it."""

    def report(self, name: str, progress: Progress) -> None:
        """Shows the progress of the work with that name."""

    def __exit__(self, kind: None, error: None, trace: None) -> None: ...


_activity: Shown | None = None


def is_drawable(*, as_json: bool) -> bool:
    """Returns whether progress is drawn: stderr is a terminal, and the output of the command is not for a program."""
    return not as_json and real(sys.stderr).isatty()


def current_activity() -> Shown | None:
    """Returns the active display of the command; None without one."""
    return _activity


def begin_activity(shown: Shown) -> None:
    """Makes `shown` the active display of the command."""
    global _activity
    _activity = shown


def end_activity() -> None:
    """Removes the active display of the command, if there is one."""
    global _activity
    shown, _activity = _activity, None
    if shown is not None:
        shown.__exit__(None, None, None)
