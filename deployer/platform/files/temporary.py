"""Temporary folders with a visible owner: folders of killed processes are removed later.

Each folder has a lock file that its process holds. The system releases the lock when the process ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "deployer-"
_LOCK, _NEW_LOCK = ".owner.lock", ".owner.lock.new"
_held: dict[Path, int] = {}  #: descriptors of the locks that this process holds, by folder


def make_temporary_folder(purpose: str, place: Path | None = None) -> Path:
    """Makes a folder `deployer-PURPOSE-…` for this process; removes folders that ended processes left.

    The folder is in `place`, or in the folder of temporary files. `remove_temporary_folder` removes it again. Raises
    OSError where nothing can be written.
    """
    place = place or Path(tempfile.gettempdir())
    remove_abandoned_folders(place)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-", dir=place))
    try:
        lock = os.open(folder / _NEW_LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:
        folder.rmdir()
        raise
    _held[folder] = lock
    with suppress(OSError):  # a file system without locks: no other process removes the folder
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / _NEW_LOCK).rename(folder / _LOCK)  # other processes find the file only when it is locked
    return folder


def remove_temporary_folder(folder: Path) -> None:
    """Removes a folder of `make_temporary_folder` with its content.

    If another process still writes there, `remove_abandoned_folders` removes the rest later.
    """
    _remove(folder)
    lock = _held.pop(folder, None)
    if lock is not None:
        with suppress(OSError):
            os.close(lock)


@contextmanager
def temporary_folder(purpose: str, place: Path | None = None) -> Iterator[Path]:
    """Yields a folder of `make_temporary_folder` for the duration of a block."""
    folder = make_temporary_folder(purpose, place)
    try:
        yield folder
    finally:
        remove_temporary_folder(folder)


def remove_abandoned_folders(place: Path | None = None) -> None:
    """Removes this user's folders in `place` whose process has ended. A folder without a lock file is left alone."""
    with suppress(OSError):
        for folder in (place or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
            if folder not in _held:
                _remove_abandoned(folder)


def _remove_abandoned(folder: Path) -> None:
    with suppress(OSError):  # not a folder, another user's, without a lock file, or removed meanwhile
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises BlockingIOError while the process lives
            _remove(folder)
        finally:
            os.close(lock)


def _remove(folder: Path) -> None:
    """Removes the lock file last: without it no process can see that the folder is abandoned."""
    with suppress(OSError):
        for each in folder.iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            elif each.name != _LOCK:
                each.unlink()
        if [each.name for each in folder.iterdir()] in ([_LOCK], []):
            shutil.rmtree(folder, ignore_errors=True)
