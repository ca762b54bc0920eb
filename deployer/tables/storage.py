"""The places of an instance's data under its root: naming, creating and removing them."""

from __future__ import annotations

import shutil
from pathlib import Path

from deployer.live.lance_storage import objects_at


def table_location(database: str, name: str, table_id: str) -> str:
    """Where a new table's dataset goes, relative to the root. Never used twice, since the table's id is part of it."""
    return f"{database}/{name}-{table_id[:8]}.lance"


def dataset_uri(root: str, location: str) -> str:
    """The dataset's URI for Lance."""
    return f"{root.rstrip('/')}/{location}"


def remove_dataset(root: str, location: str) -> None:
    """Remove a dataset's files; nothing to do when it is gone.

    Its database's folder stays, empty or not: somebody may be making another table in it at this moment.
    """
    if "://" in root:
        objects = objects_at(dataset_uri(root, location))
        objects.delete(objects.list(""))
        return
    path = Path(root) / location
    if path.exists():
        shutil.rmtree(path)


def remove_empty_root(root: str) -> None:
    """Remove the databases' folders that are empty, and the root's when nothing is left in it; buckets have none."""
    path = Path(root)
    if "://" in root or not path.exists():
        return
    for folder in [*path.iterdir(), path]:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
