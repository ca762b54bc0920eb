"""Archives of jobs' code, unpacked as a cluster does it."""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath


def unpack(archive: Path, folder: Path) -> None:
    """The files of the archive in `folder`. It has regular files below the folder and nothing else, else it fails.

    `tarfile`'s own filters are not in every Python 3.11.
    """
    with tarfile.open(archive) as tar:
        for member in tar:
            name = PurePosixPath(member.name)
            assert member.isreg() and not name.is_absolute() and ".." not in name.parts, member.name
            contents = tar.extractfile(member)
            assert contents is not None
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents.read())
