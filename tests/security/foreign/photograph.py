"""What a folder looks like: to tell that a command that only reads left no trace in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple


class Seen(NamedTuple):
    """A file, folder or link: its mode, owner, size, when it was changed (ns), and its content or what it leads to."""

    mode: int
    owner: int
    size: int
    changed: int
    content: bytes


def photograph(*folders: Path, without: Collection[Path] = ()) -> dict[str, Seen]:
    """Everything in the folders by path, the folders themselves too; not what is in those of `without`."""
    found: dict[str, Seen] = {}
    for folder in folders:
        for path in _below(folder, without):
            about = path.lstat()
            content = b""
            if stat.S_ISREG(about.st_mode):
                content = path.read_bytes()
            elif stat.S_ISLNK(about.st_mode):
                content = os.fsencode(path.readlink())
            found[str(path)] = Seen(about.st_mode, about.st_uid, about.st_size, about.st_mtime_ns, content)
    return found


def _below(path: Path, without: Collection[Path]) -> Iterator[Path]:
    if path in without:
        return
    yield path
    if path.is_dir() and not path.is_symlink():
        for each in path.iterdir():
            yield from _below(each, without)


def differences(before: dict[str, Seen], after: dict[str, Seen]) -> list[str]:
    """The paths that came, went or look otherwise."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
