"""`--watch`: shows a list repeatedly until Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Callable

from deployer.cli.console.output import stdout
from deployer.errors import InvalidInput

EVERY = 2.0  #: seconds between two calls


def watched(show: Callable[[], int], *, as_json: bool) -> int:
    """Clears the terminal and calls `show` every two seconds. Returns 0 when Ctrl-C ends it, or the first result of
    `show` that is not 0.

    Raises InvalidInput where stdout is not a terminal, and with `--json`.
    """
    console = stdout()
    if as_json or not console.is_terminal:
        what = "--watch and --json do not go together" if as_json else "--watch needs a terminal"
        raise InvalidInput(what, remedy="leave --watch out; a script can run the command again")
    try:
        while True:
            console.clear()
            if code := show():
                return code
            time.sleep(EVERY)
    except KeyboardInterrupt:
        return 0
