"""States, updates and stores that the tests of the state store share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deployer.state.clock import Clock
from deployer.state.model import File, Partition, TableEntry, TableProperties
from deployer.state.objects import LocalObjects
from deployer.state.retention import SnapshotPolicy
from deployer.state.sqlite import SqliteBackend
from deployer.state.store import StateStore
from deployer.state.updates import CreateTable, FilesAdded

TABLE = "a1b2c3d4e5f60718293a4b5c6d7e8f90"

NEVER = SnapshotPolicy(entries=1_000_000, log_bytes=1 << 40)


def store_at(root: Path, clock: Clock | None = None, policy: SnapshotPolicy | None = None) -> StateStore:
    """A store with its own clock and policy, as another process would open it."""
    folder = root / "_state"
    return StateStore(
        SqliteBackend(folder / "state.db", create=True), LocalObjects(folder / "snapshots"), clock or Clock(), policy
    )


def entry(table_id: str = TABLE, name: str = "flights") -> TableEntry:
    return TableEntry(table_id, "nyc", name, f"nyc/{name}-{table_id[:8]}.lance", "active", 1_700_000_000_000)


def creation(partitions: Sequence[Partition] = ()) -> CreateTable:
    properties = TableProperties(row_keys=("carrier", "flight"), sort_keys=("time_hour",), tags={"team": "ops"})
    return CreateTable(properties, b"arrow schema", 1, tuple(partitions))


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
