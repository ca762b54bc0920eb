"""Waiting for a stack that another run holds, for those who asked for it: `--lock-timeout`."""

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

_POLL = (0.2, 0.6)  #: seconds between two looks at the lock, by chance, so that several who wait do not meet


@contextmanager
def held_in_time(workspace: Workspace, lake: Lake, timeout: str | None, reporter: Reporter) -> Iterator[None]:
    """`held`, after waiting up to `timeout` while another run holds the stack; who that is, is noted.

    Raises Conflict, naming who has it, when the time is over, and at once without a `timeout`.
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
            time.sleep(min(random.uniform(*_POLL), max(end - time.monotonic(), 0)))  # noqa: S311 -- only out of step
        yield
