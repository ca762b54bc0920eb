"""The process of one command: `deployer`, or `python -m deployer`."""

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path and sys.path[0] != __file__.rsplit(os.sep, 2)[0]:
    # `python -m` puts the current folder first, where a branch may have a `threading.py` for the next line to import.
    # What it cannot prevent is a `deployer.py` there: that is found in place of this file.
    del sys.path[0]

import atexit
import gc
import signal
import threading
import traceback
from contextlib import suppress
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130  #: the exit code of a command that Ctrl-C ended


def main() -> None:
    if "_DEPLOYER_COMPLETE" in os.environ:
        from deployer.cli.completion.answer import answer_if_asked

        answer_if_asked()  # ends the process where a live name is completed
    # A command is short and makes many objects that live to its end: looking for cycles often only costs time.
    gc.set_threshold(500_000, 50, 50)

    from deployer.cli.console.streams import show_streams
    from deployer.cli.main import run
    from deployer.platform.text import masking

    # Lance's log goes to stderr past Python, with names of columns as they are; `LANCE_LOG` asks for it.
    os.environ.setdefault("LANCE_LOG", "lance=off")
    with masking.scope():
        show_streams()  # to the end of the process: a traceback has texts of others in it
        try:
            code = run(sys.argv[1:])
            _end_at_once_when_interrupted(code)
        except KeyboardInterrupt:  # one more while the error of the one before is printed
            code = INTERRUPTED
            _end_at_once_when_interrupted(code)
        except Exception:
            traceback.print_exc()
            code = 1
        _leave(code)


def _end_at_once_when_interrupted(code: int) -> None:
    """Makes Ctrl-C end the process at once with that exit code: all that is left is to wait for threads."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        os._exit(code)

    signal.signal(signal.SIGINT, end)


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
