"""The reporter of a run on a terminal: notes and displays on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from deployer.cli.console.output import note

if TYPE_CHECKING:
    from deployer.engine import OnEvent
    from deployer.platform.system.progress import OnProgress


class ConsoleReporter:
    """A reporter (`deployer.app.reporter`) on stderr; with `as_json` the steps of the engine are JSON documents."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._as_json = as_json

    def note(self, text: str) -> None:
        """Prints the remark."""
        note(text)

    @contextmanager
    def steps(self) -> Iterator[OnEvent]:
        """Shows the resources that the engine is changing."""
        from deployer.cli.console.step_view import StepView

        with StepView(as_json=self._as_json) as view:
            yield view

    def work(self, title: str) -> AbstractContextManager[OnProgress]:
        """Shows the progress of the work."""
        from deployer.cli.console.progress_display import progress_shown

        return progress_shown(title, as_json=False)
