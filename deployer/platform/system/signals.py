"""SIGTERM as an exception of the main thread, so that it is reported like Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

TERMINATED = 128 + signal.SIGTERM  #: the exit code of a process ended by SIGTERM


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived. Handlers of Ctrl-C handle it too."""


@contextmanager
def raising_terminated() -> Iterator[None]:
    """Raises Terminated in the main thread when SIGTERM arrives during the block.

    Has no effect in other threads, or in a process that has its own handler for SIGTERM.
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
