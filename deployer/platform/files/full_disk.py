"""Temporary files where disks are full."""

from __future__ import annotations

import errno
import os

#: error numbers of failed writes: no space, a quota, a limit of the process
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def settle_temporary_folder() -> None:
    """Sets a folder for temporary files where no folder is writable, as on full disks.

    Pulumi's SDK needs the folder's name at import. Writes to the folder still fail.
    """
    import tempfile

    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        tempfile.tempdir = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 (nothing is written there)
