"""When a commit on local disk is durable: flushed before its caller is told, and after others may commit again."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deployer.errors import OutcomeUnknown
from deployer.state.backends.sqlite import file as sqlite_file
from deployer.state.log.updates import CommitStarted
from deployer.state.store import StateStore

from .samples import TABLE, added, creation, store_at

LONG = 60.0


class Disk:
    """Flushes of the log: counted, held back and refused as a test says."""

    def __init__(self) -> None:
        self.flushed: list[str] = []
        self.goes_on, self.reached = threading.Event(), threading.Event()
        self.goes_on.set()
        self.broken = False

    def flush(self, descriptor: int) -> None:
        self.reached.set()
        assert self.goes_on.wait(LONG)
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        os.fsync(descriptor)
        self.flushed.append(Path(f"/dev/fd/{descriptor}").resolve().name)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk()
    monkeypatch.setattr(sqlite_file, "_flush", disk.flush)
    yield disk
    disk.goes_on.set()


@pytest.fixture
def store(tmp_path: Path, disk: Disk) -> StateStore:
    store = store_at(str(tmp_path))
    store.commit(TABLE, [creation()])
    disk.flushed.clear()
    disk.reached.clear()
    return store


def test_a_commit_is_flushed_once_and_an_intent_with_what_follows(store: StateStore, disk: Disk) -> None:
    store.commit(TABLE, [CommitStarted("job", "ingest", 1)])
    assert disk.flushed == []
    store.commit(TABLE, [added(1, "job")], durable=False)
    assert disk.flushed == []
    store.commit(TABLE, [added(2)])
    assert disk.flushed == ["state.db-wal"]
    store.flush()
    assert disk.flushed == 2 * ["state.db-wal"]


def test_others_commit_while_one_is_flushed(store: StateStore, disk: Disk, tmp_path: Path) -> None:
    other = store_at(str(tmp_path))
    disk.goes_on.clear()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(store.commit, TABLE, [added(1, "first")])
        assert disk.reached.wait(LONG)
        assert set(other.commit(TABLE, [added(2, "second")], durable=False).jobs) == {"first", "second"}
        assert not first.done()
        disk.goes_on.set()
        first.result(LONG)
    assert disk.flushed == ["state.db-wal"]


def test_a_transaction_that_others_made_is_durable_when_one_hears_of_it(store: StateStore, disk: Disk) -> None:
    store.commit(TABLE, [added(1, "job")], txn_id="once", durable=False)
    store.commit(TABLE, [added(1, "job")], txn_id="once")
    assert disk.flushed == ["state.db-wal"]


def test_a_disk_that_refuses_leaves_a_doubt_and_not_a_success(store: StateStore, disk: Disk, tmp_path: Path) -> None:
    disk.broken = True
    with pytest.raises(OutcomeUnknown, match=r"whether commits reached the disk is unknown: Input/output error"):
        store.commit(TABLE, [added(1, "job")])
    disk.broken = False
    assert "job" in store_at(str(tmp_path)).table(TABLE).jobs


def test_a_log_that_is_in_the_database_already_needs_no_flush(store: StateStore, disk: Disk) -> None:
    store.commit(TABLE, [added(1, "job")], durable=False)
    store.close()
    store.flush()
    assert disk.flushed == []
