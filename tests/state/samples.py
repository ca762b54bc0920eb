"""States, updates and stores that the tests of the state store share. A root is a folder or s3://bucket/prefix."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3

from deployer.platform.storage.objects import LocalObjects, ObjectStore
from deployer.platform.storage.s3_objects import S3Objects
from deployer.platform.system.clock import Clock
from deployer.state.backends.dynamodb.items import ITEM, LOG, NEWEST, entry_name, snapshot_name
from deployer.state.backends.protocol import Backend
from deployer.state.backends.sqlite.backend import SqliteBackend
from deployer.state.log.updates import CreateTable, FilesAdded
from deployer.state.model.entities import File, Partition, TableEntry, TableProperties
from deployer.state.model.location import Location, new_location, rewrite_location
from deployer.state.model.partitions import root_of
from deployer.state.open_s3 import create_on_s3, open_on_s3
from deployer.state.snapshots.files import version_of
from deployer.state.snapshots.retention import SnapshotPolicy
from deployer.state.store import StateStore

TABLE = "a1b2c3d4e5f60718293a4b5c6d7e8f90"

NEVER = SnapshotPolicy(entries=1_000_000, log_bytes=1 << 40)


def store_at(root: str | Path, clock: Clock | None = None, policy: SnapshotPolicy | None = None) -> StateStore:
    """A store with its own clock and policy, as another process would open it; made when there is none."""
    if is_on_s3(root):
        create_on_s3(str(root), {}, "test").close()
        return open_on_s3(str(root), clock, policy)
    backend = SqliteBackend(Path(root) / "_state" / "state.db", create=True)
    return StateStore(backend, objects_at(root), clock or Clock(), policy)


def is_on_s3(root: str | Path) -> bool:
    return str(root).startswith("s3://")


def backend_of(store: StateStore) -> Backend:
    return store._backend


def objects_at(root: str | Path) -> ObjectStore:
    """Where the store at `root` keeps snapshots and large bodies."""
    if is_on_s3(root):
        return S3Objects(f"{root}/_state/snapshots")
    return LocalObjects(Path(root) / "_state" / "snapshots")


def snapshot_versions(root: str | Path, log: str = TABLE) -> list[int]:
    """The versions of which there are files of a snapshot."""
    return sorted({version_of(path) for path in objects_at(root).list(log) if not path.endswith(".entry")})


def change_entry(root: str | Path, version: int, change: Callable[[bytes], bytes | None]) -> None:
    """Changes the stored body of an entry of TABLE behind the store's back; None removes the entry."""
    if is_on_s3(root):
        _change_item(store_at(root), entry_name(version), change)
        return
    with sqlite3.connect(Path(root) / "_state" / "state.db", isolation_level=None) as database:
        (body,) = database.execute("SELECT body FROM entries WHERE version = ?", (version,)).fetchone()
        if (changed := change(body)) is None:
            database.execute("DELETE FROM entries WHERE version = ?", (version,))
        else:
            database.execute("UPDATE entries SET body = ? WHERE version = ?", (changed, version))


def change_pointer(root: str | Path, version: int, body: bytes) -> None:
    """Replaces the pointer to the newest snapshot of TABLE, which is at `version`."""
    if is_on_s3(root):
        for name in (snapshot_name(version), NEWEST):
            _change_item(store_at(root), name, lambda _: body)
        return
    with sqlite3.connect(Path(root) / "_state" / "state.db", isolation_level=None) as database:
        database.execute("UPDATE snapshots SET body = ? WHERE version = ?", (body, version))


def _change_item(store: StateStore, name: str, change: Callable[[bytes], bytes | None]) -> None:
    backend: Any = store._backend
    table = boto3.resource("dynamodb").Table(backend._table)
    key = {LOG: backend._reads.key_of(TABLE), ITEM: name}
    item = table.get_item(Key=key)["Item"]
    if (changed := change(bytes(item["body"]))) is None:
        table.delete_item(Key=key)
    else:
        table.put_item(Item=item | {"body": changed})


def place(number: int = 1, name: str = "flights", table_id: str = TABLE) -> Location:
    """Where the table's dataset of that number is."""
    first = new_location("nyc", name, table_id)
    return first if number == 1 else rewrite_location(first, table_id, number)


def entry(table_id: str = TABLE, name: str = "flights") -> TableEntry:
    return TableEntry(table_id, "nyc", name, place(1, name, table_id), "active", 1_700_000_000_000)


def creation(partitions: Sequence[Partition] = ()) -> CreateTable:
    properties = TableProperties(row_keys=("carrier", "flight"), sort_keys=("time_hour",), tags={"team": "ops"})
    return CreateTable(properties, b"arrow schema", 1, tuple(partitions))


def leaf_for(partitions: Mapping[str, Partition], key: bytes) -> Partition:
    """The leaf that holds an encoded key."""
    node = root_of(partitions)
    while node.split_point is not None:
        node = partitions[node.children[0 if key < node.split_point else 1]]
    return node


def file(fragment_id: int, low: bytes | None = b"a", high: bytes | None = b"b", *, partition: str = "root") -> File:
    return File(
        fragment_id=fragment_id,
        partition=partition,
        rows=10,
        bytes=1000,
        min_key=low,
        max_key=high,
        column_min=() if low is None else (low,),
        column_max=() if high is None else (high,),
        sorted=low is not None,
    )


def added(fragment_id: int, job_id: str | None = None) -> FilesAdded:
    return FilesAdded((file(fragment_id),), fragment_id + 2, job_id, 10)
