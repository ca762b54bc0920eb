"""The state store: a log of transactions for the instance and for each table, folded into states.

Every layer above it may import it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.errors import NotFound, Refused
from deployer.platform.files.private import refuse_link

if TYPE_CHECKING:
    from deployer.state.reader import StateReader
    from deployer.state.store import StateStore

__all__ = ["create_store", "open_reader", "open_store", "remove_store"]

_FOLDER = "_state"
_REMOVED = "_state-removed"


def open_store(root: str | Path) -> StateStore:
    """Returns the state store of the instance at `root`, a folder or s3://bucket/prefix. Raises NotFound when it does
    not exist."""
    if _is_on_s3(root):
        from deployer.state.open_s3 import open_on_s3

        return open_on_s3(str(root))
    return _store(_local_folder(root) / _FOLDER, create=False)


def open_reader(root: str | Path) -> StateReader:
    """Returns the state store at `root`, opened for reading only.

    A reader writes nothing, not even through SQLite, and needs no write permission. Raises NotFound when the store does
    not exist.
    """
    if _is_on_s3(root):
        from deployer.state.open_s3 import open_on_s3_to_read

        return open_on_s3_to_read(str(root))
    from deployer.platform.storage.objects import LocalObjects
    from deployer.state.backends.sqlite.reading import open_to_read
    from deployer.state.reader import StateReader

    folder = _local_folder(root) / _FOLDER
    return StateReader(open_to_read(folder / "state.db"), LocalObjects(folder / "snapshots"))


def create_store(root: str | Path, options: Mapping[str, object] | None = None, *, instance: str = "") -> StateStore:
    """Returns the state store of the instance at `root`, and creates it if it does not exist.

    Calls may be repeated, and several processes may call it at once. `options` are those of the spec's `state`: for a
    root on S3 the `table`, `region` and `endpoint` of DynamoDB. A table that `options` do not name is named after
    `instance` and the root. The table is created if it does not exist.
    """
    if _is_on_s3(root):
        from deployer.state.open_s3 import create_on_s3

        return create_on_s3(str(root), options or {}, instance)
    folder = _local_folder(root) / _FOLDER
    store = _store(folder, create=True)
    try:
        store.instance()
    except NotFound:  # the removal of the store began and did not end
        store.close()
        remove_store(root)
        store = _store(folder, create=True)
    return store


def remove_store(root: str | Path) -> None:
    """Removes the state of the instance at `root` permanently; does nothing when it does not exist.

    All logs are closed first, so that a writer that still has the store open cannot commit during the removal.
    """
    from deployer.state.model.entities import INSTANCE_LOG

    if _is_on_s3(root):
        from deployer.state.open_s3 import remove_on_s3

        remove_on_s3(str(root))
        return
    folder = _local_folder(root) / _FOLDER
    removed = folder.with_name(_REMOVED)
    refuse_link(removed)
    try:
        store = _store(folder, create=False)
    except NotFound:
        pass
    else:
        for log in {INSTANCE_LOG, *store.logs()}:
            store.remove_log(log)
        store.close()
    shutil.rmtree(removed, ignore_errors=True)
    with suppress(FileNotFoundError):
        folder.rename(removed)  # before the removal, so that no process finds half a state store under its name
    shutil.rmtree(removed, ignore_errors=True)


def _store(folder: Path, *, create: bool) -> StateStore:
    from deployer.platform.storage.objects import LocalObjects
    from deployer.state.backends.sqlite.backend import SqliteBackend
    from deployer.state.records.files import LocalRecords
    from deployer.state.store import StateStore

    objects = LocalObjects(folder / "snapshots", private=folder)
    backend = SqliteBackend(folder / "state.db", create=create)
    return StateStore(backend, objects, records=LocalRecords(folder.parent))


def _is_on_s3(root: str | Path) -> bool:
    return str(root).startswith("s3://")


def _local_folder(root: str | Path) -> Path:
    text = str(root).removeprefix("file://")
    if "://" in text:
        raise Refused("state is kept in a folder or on S3 only", where=text, remedy="use a path or s3://bucket/prefix")
    return Path(text)
