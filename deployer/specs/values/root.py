"""The place of an instance's root: relative roots start from the project's folder, whatever the current one is."""

from __future__ import annotations

import os
from pathlib import Path

from deployer.errors import InvalidInput


def resolve_root(project_dir: Path, root: str) -> str:
    """Returns the root as an absolute path or URI, links followed. Raises InvalidInput for a link that leads to
    itself."""
    if "://" in root:
        return root
    found = os.path.realpath(project_dir / root)
    if Path(found).is_symlink():  # what `realpath` leaves of a loop
        raise InvalidInput("a link in the root's path leads to itself", where=found, remedy="let it lead to a folder")
    return found


def absolute_root(project_dir: Path, root: str) -> str:
    """Returns the root as `resolve_root` does, with links as they are: nothing is read."""
    return root if not root or "://" in root else os.path.normpath(project_dir / root)
