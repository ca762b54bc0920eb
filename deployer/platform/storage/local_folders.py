"""Removes files and folders below a root on disk without following links, because a link may lead out of the root.

Each folder of the path is opened relative to its parent, and entries are removed relative to an open folder, so that no
process can replace a folder by a link in between.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deployer.errors import Refused
from deployer.platform.text.visible import shortened

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def parts_of(path: str) -> tuple[str, ...]:
    """Returns the parts of a path below a folder. Raises Refused for a path that may lead out of the folder, or that is
    the folder itself."""
    parts = tuple(path.split("/"))
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise Refused(
            f"{shortened(path)} is not a path below the folder, so nothing is removed there",
            remedy="find out what wrote it; deployer does not write such paths",
        )
    return parts


@contextmanager
def opened(root: Path, parts: Iterable[str]) -> Iterator[int]:
    """Yields a descriptor of a folder below `root`. Raises FileNotFoundError when it does not exist, Refused for a
    link."""
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    way = root
    try:
        for part in parts:
            way = way / part
            inner = _opened(part, descriptor, way)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def remove_files(root: Path, paths: Iterable[str], *, keeps_folders: bool) -> None:
    """Removes the existing files and, unless `keeps_folders`, their folders if these are then empty."""
    by_folder: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        *above, name = parts_of(path)
        by_folder.setdefault(tuple(above), []).append(name)
    for parts, names in by_folder.items():
        with suppress(FileNotFoundError):
            with opened(root, parts) as folder:
                for name in names:
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)
            if parts and not keeps_folders:
                with opened(root, parts[:-1]) as outer, suppress(OSError):  # it is not empty, or does not exist
                    os.rmdir(parts[-1], dir_fd=outer)


def remove_folder(root: Path, path: str) -> None:
    """Removes a folder below `root` with its content, if it exists. Raises Refused for a link."""
    *above, name = parts_of(path)
    with suppress(FileNotFoundError), opened(root, above) as folder:
        os.close(_opened(name, folder, root / path))
        shutil.rmtree(name, dir_fd=folder)


def names_in(root: Path, path: str) -> list[str]:
    """Returns the entries of a folder below `root`; none when it does not exist. Raises Refused for a link."""
    with suppress(FileNotFoundError), opened(root, parts_of(path)) as folder:
        return os.listdir(folder)  # noqa: PTH208 (of a descriptor)
    return []


def _opened(name: str, folder: int, way: Path) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except NotADirectoryError:
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        what = "a link, which may lead out of the root" if stat.S_ISLNK(about.st_mode) else "not a folder"
        raise Refused(
            f"it is {what}, so nothing is removed there",
            where=way,
            remedy="check it, remove it by hand, and run the command again",
        ) from None
