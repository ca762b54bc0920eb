"""Isolation of a project's code from credentials that only deployer uses, and this process's memory."""

from __future__ import annotations

import os
import signal
import sys
from functools import cache
from typing import Any

#: Variables of deployer itself and of the pipeline that runs it. A program gets its configuration from the engine, and
#: providers have their credentials from their own variables, which stay.
_WITHHELD = frozenset(
    {
        "DEPLOYER_NEW_PASSPHRASE",
        "DEPLOYER_PLAN_KEY",
        "PULUMI_ACCESS_TOKEN",
        "PULUMI_CONFIG_PASSPHRASE",
        "PULUMI_CONFIG_PASSPHRASE_FILE",
        # with these a step of GitHub Actions gets tokens, and decides what later steps run and report
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
    """Returns whether code of a project does not get this variable of the environment."""
    return variable in _WITHHELD or variable.startswith(_WITHHELD_PREFIX)


def environment_for_project_code() -> dict[str, str]:
    """This process's environment without what is withheld."""
    return {name: value for name, value in os.environ.items() if not is_withheld(name)}


def close_memory() -> None:
    """Keeps other processes of the user, but for root's, from this one's memory, environment and open files.

    It stays so: what code of a project leaves running may not be found. On Linux, where `/proc/PID` shows them;
    elsewhere it does nothing.
    """
    _prctl(_SET_DUMPABLE, 0)


def open_memory() -> None:
    """Takes back `close_memory`, as for a fork that has no secrets."""
    _prctl(_SET_DUMPABLE, 1)


def adopt_orphans() -> None:
    """Makes processes whose parents are gone children of this one, when it or a child of it began them. On Linux."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Has this process killed when the thread that began it ends, also once it runs another program. On Linux."""
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
