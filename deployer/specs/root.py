"""Where an instance's root is, seen from the project folder."""

from __future__ import annotations

from pathlib import Path


def resolve_root(project_dir: Path, root: str) -> str:
    """A URI as it is; a path made absolute, relative ones from the project's folder."""
    return root if "://" in root else str((project_dir / root).resolve())
