"""The place of an instance's root. A relative root is relative to the project's folder, not to the current folder."""

from __future__ import annotations

import os
from pathlib import Path

from deployer.errors import InvalidInput


def resolve_root(project_dir: Path, root: str) -> str:
    """Returns the root as a URI, or as an absolute path after links are followed. Raises InvalidInput for a link that
    leads to itself."""
    if "://" in root:
        return root
    found = os.path.realpath(project_dir / root)
    if Path(found).is_symlink():  # `realpath` returns a link only for a loop
        raise InvalidInput("a link in the root's path leads to itself", where=found, remedy="let it lead to a folder")
    return found


def absolute_root(project_dir: Path, root: str) -> str:
    """Returns the root as a URI or an absolute path, without following links. Does not read the disk."""
    return root if not root or "://" in root else os.path.normpath(project_dir / root)
