"""Files that a path or glob of `include` matches.

Paths outside the folders that may be read are never examined, so that no message shows whether a file there exists.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

WILD = frozenset("*?[")


class LeadsOut(Exception):
    """A pattern leads out of the folders that may be read. `link` is the link that leads out, None where the pattern
    itself does."""

    def __init__(self, link: Path | None = None) -> None:
        super().__init__(link)
        self.link = link


def matching_files(folder: Path, pattern: str, may_read: Callable[[Path], bool]) -> list[Path]:
    """Returns the regular files that `pattern`, relative to `folder`, matches, sorted by path.

    `may_read` says whether an absolute path without links may be read. `**` does not follow links. Raises LeadsOut for
    a pattern that leads to a path that may not be read, and ValueError for an invalid path or glob.
    """
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not parts or "\0" in pattern:
        raise ValueError("it is empty" if not parts else "it has a null character")
    if any("**" in part and part != "**" for part in parts):
        raise ValueError("`**` can only be a whole part of a path")
    wild = next((index for index, part in enumerate(parts) if WILD & set(part)), len(parts))
    if ".." in parts[wild:]:
        raise ValueError("`..` cannot follow a wildcard")
    if pattern.startswith("/"):
        raise LeadsOut
    found = {folder}
    for part in parts:
        found = {_checked(path, may_read) for place in found for path in _step(place, part)}
    return sorted(path for path in found if path.is_file())


def _step(place: Path, part: str) -> Iterator[Path]:
    if part == "..":
        yield Path(os.path.realpath(place)).parent
    elif part == "**":
        yield from (Path(folder) for folder, _, _ in os.walk(place))
    elif WILD & set(part):
        try:
            yield from (entry for entry in place.iterdir() if fnmatchcase(entry.name, part))
        except OSError:  # a file, or a folder that may not be read
            return
    else:
        yield place / part


def _checked(path: Path, may_read: Callable[[Path], bool]) -> Path:
    """Returns the path. Raises LeadsOut where it may not be read: a link or `..` led out of its folder, which was
    checked before."""
    link = path.is_symlink()
    if not may_read(Path(os.path.realpath(path)) if link else path):
        raise LeadsOut(path if link else None)
    return path
