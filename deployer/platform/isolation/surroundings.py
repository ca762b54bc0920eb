"""Isolation of a project's code from the credentials that only deployer uses, and from this process's memory."""

from __future__ import annotations

import os
import signal
import sys
from functools import cache
from typing import Any

# : Variables of deployer itself and of its pipeline. A program gets its configuration from the engine, and : providers
# have their credentials from their own variables, which stay.
_WITHHELD = frozenset(
    {
        "DEPLOYER_NEW_PASSPHRASE",
        "DEPLOYER_PLAN_KEY",
        "PULUMI_ACCESS_TOKEN",
        "PULUMI_CONFIG_PASSPHRASE",
        "PULUMI_CONFIG_PASSPHRASE_FILE",
        # by these a step of GitHub Actions gets tokens and controls later steps
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "ACTIONS_RUNTIME_TOKEN",
        "GITHUB_ENV",
        "GITHUB_OUTPUT",
        "GITHUB_PATH",
        "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY",
    }
)
_WITHHELD_PREFIX = "DEPLOYER_TOKEN_"

_SET_PDEATHSIG, _GET_DUMPABLE, _SET_DUMPABLE, _SET_CHILD_SUBREAPER = 1, 3, 4, 36  # prctl(2)


def is_withheld(variable: str) -> bool:
    """Returns whether a variable of the environment is withheld from code of a project."""
    return variable in _WITHHELD or variable.startswith(_WITHHELD_PREFIX)


def environment_for_project_code() -> dict[str, str]:
    """Returns this process's environment without withheld variables."""
    return {name: value for name, value in os.environ.items() if not is_withheld(name)}


def close_memory() -> None:
    """Protects this process's memory, environment and open files from other processes of the user, except root.

    This is permanent, because a process that code of a project started may remain undetected. It works on Linux, where
    `/proc/PID` shows them; on other systems it does nothing.
    """
    _prctl(_SET_DUMPABLE, 0)


def open_memory() -> None:
    """Reverses `close_memory`, for a fork that has no secrets."""
    _prctl(_SET_DUMPABLE, 1)


def adopt_orphans() -> None:
    """Makes orphaned descendants children of this process. On Linux."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Makes the system kill this process when the thread that started it ends, also after it runs another program. On
    Linux."""
    _prctl(_SET_PDEATHSIG, signal.SIGKILL)


def _prctl(option: int, value: int = 0) -> int:
    library = _library()
    return -1 if library is None else int(library.prctl(option, value, 0, 0, 0))


@cache
def _library() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    return ctypes.CDLL(None)
