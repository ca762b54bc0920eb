"""Temporary files where disks are full."""

from __future__ import annotations

import errno
import os

#: The numbers of errors when nothing more can be written: no space, a quota, a limit of the process.
DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def settle_temporary_folder() -> None:
    """Names a folder for temporary files where none can be written to, as on full disks.

    Pulumi's SDK asks for its name while it is imported. Who writes a file there is refused by the disk.
    """
    import tempfile

    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        tempfile.tempdir = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 (nothing is written there)
