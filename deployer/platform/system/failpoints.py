"""Named points between two side effects, at which a test can kill the process.

Off unless the environment variable DEPLOYER_FAILPOINT is set when the process starts: `NAME` ends the process with
SIGKILL when point NAME is reached, `NAME@N` when it is reached for the N-th time, and `NAME=stop` or `NAME@N=stop`
stops it with SIGSTOP until SIGCONT. Every module that has side effects may name points of its own.
"""

from __future__ import annotations

import os
import signal

_SETTING = os.environ.get("DEPLOYER_FAILPOINT", "")
_passed: dict[str, int] = {}


def reached(name: str) -> None:
    """Marks the point; does nothing unless DEPLOYER_FAILPOINT names it."""
    if _SETTING:
        _act(name)


def _act(name: str) -> None:
    wanted, _, action = _SETTING.partition("=")
    wanted, _, count = wanted.rpartition("@") if "@" in wanted else (wanted, "", "1")
    if name != wanted:
        return
    _passed[name] = _passed.get(name, 0) + 1
    if _passed[name] == int(count):
        os.kill(os.getpid(), signal.SIGSTOP if action == "stop" else signal.SIGKILL)
