"""The display of a running command on a terminal, until the command prints its result, asks a question or ends.

It appears after one second, so short commands show nothing and do not load Rich's displays.
"""

from __future__ import annotations

from deployer.cli.console.on_screen import begin_activity, current_activity, end_activity, is_drawable
from deployer.platform.system.progress import OnProgress, Progress, no_progress


def show_activity(title: str, *, as_json: bool = False) -> OnProgress:
    """Shows that the command does what `title` says. Returns the callback for its progress."""
    report = show_progress(title, as_json=as_json)
    report(Progress("", 0, None, ""))
    return report


def show_progress(title: str, *, as_json: bool = False) -> OnProgress:
    """Does the same, but only from the first progress on. It starts no thread before that, because forks of this
    process rely on it."""
    end_activity()
    if not is_drawable(as_json=as_json):
        return no_progress
    from deployer.cli.console.progress_display import Meter

    meter = Meter(as_json=False)
    begun = False

    def report(now: Progress) -> None:
        nonlocal begun
        if not begun:
            begun = True
            begin_activity(meter.__enter__())
            meter.begin("", title)
        meter.report("", now)

    return report


def report_progress(now: Progress) -> None:
    """Shows the progress of the command if a display is active."""
    if (shown := current_activity()) is not None:
        shown.report("", now)
