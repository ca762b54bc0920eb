"""SIGTERM as an exception of the main thread, so that it can be reported as Ctrl-C is."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATED = 128 + signal.SIGTERM  #: the exit code of a process that SIGTERM ended


class Terminated(KeyboardInterrupt):
    """SIGTERM. What handles Ctrl-C handles it too."""


@contextmanager
def raising_terminated() -> Iterator[None]:
    """Raises Terminated in the main thread when SIGTERM arrives during the block.

    Changes nothing in other threads, and in a process that has a handler of its own for SIGTERM.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise Terminated
