"""Creation of a state store from whole logs or from an export.

On a disk, a store is made from logs in one step: a process that dies leaves no store or a complete one. The former
store is moved aside and never removed, because it may show the cause of the damage.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from deployer.errors import Corrupt, NotFound, Refused
from deployer.platform.files.private import refuse_link, sync_folder
from deployer.platform.system.failpoints import reached
from deployer.state import create_store, open_store, remove_store
from deployer.state.log.entries import LogEntry, to_record
from deployer.state.model.entities import INSTANCE_LOG
from deployer.state.store import StateStore
from deployer.state.transfer.export import Export, read_export

_FOLDER = "_state"
_NEW, _ASIDE = "_state-rebuilt-", "_state-damaged-"

Logs = Mapping[str, Sequence[LogEntry]]


def write_store(
    root: str, logs: Logs, options: Mapping[str, object] | None = None, *, instance: str = ""
) -> str | None:
    """Makes the state store of the instance at `root` from these logs. It is only for a root whose store is missing or
    damaged.

    Returns the path to which the former store was moved; None if there was none. `options` and `instance` are as in
    `create_store`. Raises Refused when another process made a store meanwhile.
    """
    if root.startswith("s3://"):
        return _write_on_s3(root, logs, options or {}, instance)
    folder = Path(root) / _FOLDER
    refuse_link(folder)
    for left in Path(root).glob(f"{_NEW}*"):  # left by a process that died
        refuse_link(left)
        shutil.rmtree(left, ignore_errors=True)
    new = folder.with_name(f"{_NEW}{secrets.token_hex(8)}")
    with closing(_local_store(new)) as store:
        _fill(store, logs)
    sync_folder(new)
    reached("state.rebuild.written")
    aside = None
    if folder.is_dir() and any(folder.iterdir()):
        aside = folder.with_name(f"{_ASIDE}{datetime.now(UTC):%Y%m%dT%H%M%S%f}")
        folder.rename(aside)
        reached("state.rebuild.moved-aside")
    try:
        new.rename(folder)
    except OSError as error:
        raise Refused(
            f"another process made a state store meanwhile ({error.strerror}); it stays as it is",
            where=folder,
            remedy="check it with `deployer tables`",
        ) from None
    sync_folder(folder.parent)
    reached("state.rebuild.placed")
    return str(aside) if aside is not None else None


def _local_store(folder: Path) -> StateStore:
    from deployer.platform.storage.objects import LocalObjects
    from deployer.state.backends.sqlite.backend import SqliteBackend

    return StateStore(
        SqliteBackend(folder / "state.db", create=True), LocalObjects(folder / "snapshots", private=folder)
    )


def _fill(store: StateStore, logs: Logs) -> None:
    """Writes all logs. The log of the instance is the last one, so the store has no tables before it is complete."""
    store.fill([to_record(entry) for log in sorted(logs, key=_instance_last) for entry in logs[log]])


def _instance_last(log: str) -> tuple[bool, str]:
    return log == INSTANCE_LOG, log


def _write_on_s3(root: str, logs: Logs, options: Mapping[str, object], instance: str) -> str | None:
    from deployer.state import open_store, remove_store
    from deployer.state.open_s3 import create_on_s3, put_sign_aside

    try:
        with closing(open_store(root)) as found:
            begun = not found.instance().version
        if begun:
            remove_store(root)  # left by a process that died
    except (NotFound, Corrupt):
        pass
    aside = put_sign_aside(root)
    with closing(create_on_s3(root, options, instance)) as store:
        _fill(store, logs)
    return aside


def import_into(path: Path, root: str, options: Mapping[str, object] | None = None, *, instance: str = "") -> Export:
    """Makes the state store of the instance at `root` from an export. `options` and `instance` are as in
    `create_store`.

    Raises Refused when the root has a store already. A store that an interrupted import left, which has no instance
    yet, is removed and made again. Raises for an unusable export as `read_export` does.
    """
    read_export(path)[0].close()  # the file is checked first, so that an unusable one does not leave a store behind
    try:
        with closing(open_store(root)) as found:
            version, logs = found.instance().version, found.logs()
    except NotFound:
        version, logs = 0, []
    if version:
        raise Refused("there is a state store already", where=root, remedy="import into an instance with another root")
    if logs:
        remove_store(root)
    with closing(create_store(root, options, instance=instance)) as store:
        return store.import_from(path)
