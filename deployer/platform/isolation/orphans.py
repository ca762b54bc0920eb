"""Children of this process: whether they have ended, and the processes that ended children left.

These are children of this process too, because it adopts orphans (see `surroundings`).
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Iterator

_ROUNDS = 1000  #: rounds in which orphans are killed that start other processes


def end_orphans(running: Collection[int]) -> None:
    """Kills this process's children except those in `running`, where `/proc` lists them.

    Processes that these started, in any session, are found in the next round.
    """
    for _ in range(_ROUNDS):
        orphans = [pid for pid in _children() if pid not in running]
        if not orphans:
            return
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def has_ended(pid: int) -> bool:
    """Returns whether a child has ended, without waiting for it, so that its number stays reserved."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    import subprocess

    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)  # noqa: S607
    return shown.stdout.strip()[:1] in (b"", b"Z")


def _children() -> Iterator[int]:
    own = str(os.getpid())
    with contextlib.suppress(OSError):  # not Linux
        for name in os.listdir("/proc"):  # noqa: PTH208 -- pathlib takes longer to load than a supervisor lives
            if name.isdigit():
                with contextlib.suppress(OSError, IndexError), open(f"/proc/{name}/stat", errors="replace") as stat:  # noqa: PTH123
                    if stat.read().rpartition(")")[2].split()[1] == own:
                        yield int(name)
