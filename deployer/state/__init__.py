"""The state store: a log of transactions for the instance and for each table, folded into states."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deployer.errors import Refused

if TYPE_CHECKING:
    from deployer.state.store import StateReader, StateStore

__all__ = ["StateReader", "StateStore", "create_store", "open_store"]


def open_store(root: str | Path) -> StateStore:
    """The state store of the instance at `root` (a folder). Raises NotFound when there is none."""
    return _store(root, create=False)


def create_store(root: str | Path) -> StateStore:
    """The state store of the instance at `root`, made when there is none. Safe to repeat and to race."""
    return _store(root, create=True)


def _store(root: str | Path, *, create: bool) -> StateStore:
    from deployer.state.sqlite import SqliteBackend
    from deployer.state.store import StateStore

    folder = _local_folder(root) / "_state"
    return StateStore(SqliteBackend(folder / "state.db", create=create))


def _local_folder(root: str | Path) -> Path:
    text = str(root).removeprefix("file://")
    if "://" in text:
        raise Refused(
            "the state of an instance in an object store is not supported yet", where=text, remedy="use a folder"
        )
    return Path(text)
