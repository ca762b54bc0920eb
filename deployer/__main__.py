"""The process of one command: `deployer`, or `python -m deployer`."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import traceback
from contextlib import suppress
from typing import NoReturn


def main() -> None:
    # A command is short and makes many objects that live to its end: looking for cycles often only costs time.
    gc.set_threshold(500_000, 50, 50)

    from deployer import masking
    from deployer.cli.main import run

    with masking.scope():
        try:
            code = run(sys.argv[1:])
        except Exception:
            sys.stderr.write(masking.masked(traceback.format_exc()))
            code = 1
        _leave(code)


def _leave(code: int) -> NoReturn:
    """Ends the process in order, but does not take the interpreter apart.

    A short command can be over while threads of Arrow and Lance are still starting, which abort the process when their
    library's memory goes (seen: exit code 134 after all was said and done).
    """
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader went away
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
