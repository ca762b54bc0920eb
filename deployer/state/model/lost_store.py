"""Detection of a missing state store whose tables' datasets still exist: it was lost, or its disk is not mounted.

A dataset that deployer made is recognized by its name, `DATABASE/NAME-ID.lance`. Datasets are not opened.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from deployer.errors import Refused
from deployer.state.model.location import is_made

#: the remedy for a lost state store
RECOVERY = "restore the folder _state from a backup; without a backup, run `deployer state rebuild`"
_SHOWN = 3


def datasets_of_tables(root: str | Path) -> list[str]:
    """Returns the sorted locations of the datasets that deployer made below a root on a disk.

    The list is empty for a root in a bucket.
    """
    if "://" in str(root):
        return []
    found: list[str] = []
    for database in _folders(root):
        found += (f"{database}/{name}" for name in _folders(Path(root, database)) if is_made(f"{database}/{name}"))
    return sorted(found)


def shown(datasets: list[str]) -> str:
    """Returns the first few of the datasets, as text for a message."""
    return ", ".join(datasets[:_SHOWN]) + (", …" if len(datasets) > _SHOWN else "")


def refuse_new_store(root: str) -> None:
    """Raises Refused if `root` has datasets of tables that a new state store would not know."""
    if left := missing_beside(root):
        raise Refused(
            f"{left}; nothing was changed",
            where=root,
            remedy=f"{RECOVERY}, which makes it from the datasets. `deployer up --new-state` makes a new state store, "
            "which does not know them",
        )


def missing_beside(root: str | Path) -> str:
    """Returns a text that names the datasets below a root whose state store is missing; empty if there are none."""
    datasets = datasets_of_tables(root)
    return f"the state store is missing, and {_count(datasets)} there: {shown(datasets)}" if datasets else ""


def _count(datasets: list[str]) -> str:
    return "a dataset of its tables is" if len(datasets) == 1 else f"{len(datasets)} datasets of its tables are"


def _folders(path: str | Path) -> list[str]:
    with suppress(OSError), os.scandir(path) as found:
        return [each.name for each in found if each.is_dir(follow_symlinks=False)]
    return []
