"""A supervisor: a process between a command and a program that it starts, such as a provider plug-in.

The program ends with the command, however the command ends.

The supervisor's arguments are the program and its arguments. Its input is a pipe from the command, which closes when
the command ends. The supervisor then kills the program, its process group and, on Linux, the processes that it started
in other sessions. It does the same when the program has ended. The program has no input, and has the command's other
streams, environment and folder. SIGTERM is passed on to the program. The supervisor ends like the program: with its
exit code, or by its signal. When the supervisor itself is killed, Linux kills the program. On other systems the program
then keeps running, as do processes that it started in other sessions.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from deployer.platform.isolation.orphans import end_orphans, has_ended
from deployer.platform.isolation.surroundings import adopt_orphans, end_with_parent

_NOT_STARTED = 127  #: the exit code for a program that cannot be started, as in a shell


def main(arguments: Sequence[str]) -> NoReturn:
    """Runs the program until it ends or the command ends."""
    adopt_orphans()
    waking, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)  # they are read from `waking`
    pid = _start(arguments)
    nothing = os.open(os.devnull, os.O_RDWR)
    for output in (1, 2):
        os.dup2(nothing, output)  # their readers see the end of the program, not of this process
    while not has_ended(pid):
        ready, _, _ = select.select([0, waking], [], [])
        if 0 in ready and not os.read(0, 1):
            break
        if waking in ready and signal.SIGTERM in os.read(waking, 100):
            os.kill(pid, signal.SIGTERM)  # its number stays reserved until it is waited for
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    end_orphans(())
    _end_as(os.waitstatus_to_exitcode(status))


def _start(arguments: Sequence[str]) -> int:
    own = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        end_with_parent()
        if os.getppid() != own:
            os._exit(_NOT_STARTED)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # Python ignores them, and programs would too
        os.execv(arguments[0], list(arguments))  # noqa: S606 -- there is no shell to be meant
    except OSError as error:
        sys.stderr.write(f"{arguments[0]} cannot be started: {error.strerror}\n")
        sys.stderr.flush()
    os._exit(_NOT_STARTED)


def _end_as(code: int) -> NoReturn:
    if code < 0:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)
