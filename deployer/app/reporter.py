"""The interface that receives the reports of a run: notes, the steps of the engine, and the progress of long work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from deployer.engine import Event, OnEvent
from deployer.platform.system.progress import OnProgress, no_progress


class Reporter(Protocol):
    """Receives what a run reports. The callbacks of `steps` and `work` may be called from any thread."""

    def note(self, text: str) -> None:
        """Receives a remark for people, which is not part of the result. It may have several lines."""

    def steps(self) -> AbstractContextManager[OnEvent]:
        """Returns a context manager for the time in which the engine applies something; it yields the callback for
        events."""

    def work(self, title: str) -> AbstractContextManager[OnProgress]:
        """Returns a context manager for the time of the work `title`; it yields the callback for its progress."""


class SilentReporter:
    """A reporter that ignores everything. Subclasses override what they need."""

    def note(self, text: str) -> None:
        """Ignores the remark."""

    @contextmanager
    def steps(self) -> Iterator[OnEvent]:
        """Ignores the events."""
        yield _no_event

    @contextmanager
    def work(self, title: str) -> Iterator[OnProgress]:
        """Ignores the progress."""
        yield no_progress


def _no_event(_: Event) -> None:
    pass


SILENT: Reporter = SilentReporter()
