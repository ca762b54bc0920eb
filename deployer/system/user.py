"""The name that this machine gives to whoever runs the process. It is self-declared: LOGNAME sets it."""

from __future__ import annotations

import getpass


def local_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        return "unknown"
