"""The display of a running command on a terminal, until the command prints its result, asks a question or ends.

It appears after a second, so that short commands show nothing and load nothing of Rich's displays.
"""

from __future__ import annotations

from deployer.cli.console.on_screen import begin_activity, current_activity, end_activity, is_drawable
from deployer.platform.system.progress import OnProgress, Progress, no_progress


def show_activity(title: str, *, as_json: bool = False) -> OnProgress:
    """Shows that the command is doing what `title` says, and how far that is, which the callback receives."""
    report = show_progress(title, as_json=as_json)
    report(Progress("", 0, None, ""))
    return report


def show_progress(title: str, *, as_json: bool = False) -> OnProgress:
    """Shows the same from the first progress on. No thread starts before it, which forks of this process rely on."""
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
    """Shows the progress of the command, where a display is on."""
    if (shown := current_activity()) is not None:
        shown.report("", now)
