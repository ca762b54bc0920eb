"""The user of this process, and whether another process of this machine still runs.

A process number alone is not enough: in containers, numbers are soon reused.
"""

from __future__ import annotations

import getpass
import os
from pathlib import Path


def local_user() -> str:
    """Returns the name of the user who runs the process. The name is not verified: LOGNAME sets it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        return "unknown"


def start_of(pid: int) -> str:
    """Returns the start of the process in the system's own unit, for comparison with an earlier value.

    Empty where the system does not report it (Linux does in /proc) and for a process that has ended.
    """
    fields = _fields(pid)
    return fields[19] if fields is not None and len(fields) > 19 else ""  # the 22nd of proc_pid_stat(5)


def is_running(pid: int, start: str = "") -> bool:
    """Returns whether the process `pid` that began at `start` (see `start_of`; empty: any of that number) runs.

    A process that has ended and was not waited for does not count as running.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # the process belongs to another user
    fields = _fields(pid)
    if fields is not None and fields[0] in ("Z", "X"):
        return False
    now = start_of(pid)
    return not start or not now or start == now


def _fields(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third on; the second may hold spaces and brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split() or None
