"""What signals ask of the agent."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deployer.services.agent.agent import Agent


@contextmanager
def obeyed(agent: Agent) -> Iterator[None]:
    """SIGTERM lets runs end, a second one stops them; Ctrl-C stops them at once, and pressed again kills them."""

    def end(_number: int, _frame: FrameType | None) -> None:
        agent.end()

    def stop(_number: int, _frame: FrameType | None) -> None:
        agent.stop()

    before = {number: signal.signal(number, does) for number, does in ((signal.SIGTERM, end), (signal.SIGINT, stop))}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
