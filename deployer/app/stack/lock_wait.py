"""Waiting for a stack that another run holds: `--lock-timeout`."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from deployer.app.reporter import Reporter
from deployer.app.stack.engine import held
from deployer.app.workspace import Workspace
from deployer.errors import Conflict
from deployer.platform.text.units import OPTION_DURATION, parse_duration
from deployer.specs.model import Lake

_POLL = (0.2, 0.6)  #: seconds between two attempts, chosen at random so that several waiting runs do not collide


@contextmanager
def held_in_time(workspace: Workspace, lake: Lake, timeout: str | None, reporter: Reporter) -> Iterator[None]:
    """Locks the stack as `held` does, and waits up to `timeout` while another run holds it; a note names the holder.

    Raises Conflict, with the holder, when the time is over; at once without a `timeout`.
    """
    end = None
    if timeout is not None:
        end = time.monotonic() + parse_duration(timeout, OPTION_DURATION, option="--lock-timeout").total_seconds()
    with ExitStack() as stack:
        reported = ""
        while True:
            try:
                stack.enter_context(held(workspace, lake))
                break
            except Conflict as error:
                if end is None:
                    raise
                if time.monotonic() >= end:
                    raise Conflict(
                        f"{error.what}, still after {timeout}", where=error.where, remedy=error.remedy
                    ) from None
                if error.what != reported:
                    reporter.note(f"{error.what}; waiting for it, up to {timeout}")
                    reported = error.what
            time.sleep(min(random.uniform(*_POLL), max(end - time.monotonic(), 0)))  # noqa: S311 -- only a delay
        yield
