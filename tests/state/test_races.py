"""Real processes racing, being killed and being stopped: no commit lost, none doubled, versions dense."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deployer.platform.storage.objects import LocalObjects
from deployer.state import open_store
from deployer.state.backends.dynamodb.items import entry_name, version_in
from deployer.state.backends.dynamodb.reads import DynamoReads
from deployer.state.backends.sqlite.backend import SqliteBackend
from deployer.state.model.entities import TableState
from deployer.state.snapshots.files import version_of
from deployer.state.snapshots.retention import SnapshotPolicy
from tests import forks
from tests.projects import REPOSITORY

from .samples import TABLE, added, backend_of, creation, objects_at, snapshot_versions, store_at

pytestmark = pytest.mark.gate

WORKER = str(Path(__file__).with_name("worker.py"))


@pytest.fixture
def table_at(root: str) -> str:
    """A root with an empty table."""
    store = store_at(root)
    store.commit(TABLE, [creation()])
    store.close()
    return root


def _start(root: str, *args: int, failpoint: str = "") -> subprocess.Popen[str]:
    return forks.Popen(
        [sys.executable, WORKER, root, *map(str, args)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DEPLOYER_FAILPOINT": failpoint},
    )


def _state(root: str) -> TableState:
    store = open_store(root)
    try:
        return store.table(TABLE)
    finally:
        store.close()


RACES = [
    pytest.param(10, 1_000_000, id="log only"),
    pytest.param(10, 30, id="with snapshots and retention"),
    pytest.param(50, 60, id="long", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("count", "entries"), RACES)
def test_eight_processes_commit_and_none_is_lost_or_doubled(table_at: str, count: int, entries: int) -> None:
    workers = [_start(table_at, writer, count, entries) for writer in range(8)]
    won = [line.split() for worker in workers for line in worker.communicate()[0].splitlines()]
    assert [worker.returncode for worker in workers] == [0] * 8
    state = _state(table_at)
    assert sorted(job for job, _ in won) == sorted(f"{w}-{n}" for w in range(8) for n in range(count))
    assert len({version for _, version in won}) == 8 * count
    assert state.version == 1 + 2 * 8 * count  # dense: each commit took one version
    assert sorted(state.jobs) == sorted(job for job, _ in won)
    assert [each.fragment_id for each in state.files] == [w * 1000 + n for w in range(8) for n in range(count)]
    assert not state.intents


# Each worker makes 20 commits of 2 entries; a snapshot is due after 10 entries. Points as in the code.
POINTS = [
    "commit:before-put@7",
    "commit:after-put@8",
    "snapshot:before-part@1",
    "snapshot:before-part@3",
    "snapshot:before-pointer@1",
    "snapshot:after-pointer@1",
    "retention:before-truncate@1",
    "retention:before-delete@1",
]


ON_S3_ONLY = ["dynamodb:after-body@7", "dynamodb:before-delete@1"]


@pytest.mark.thinned(4, only="dynamodb")
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_process_loses_nothing_that_was_acknowledged(table_at: str, point: str) -> None:
    _kill_at(table_at, point)


@pytest.mark.parametrize("point", ON_S3_ONLY)
def test_a_killed_process_on_s3_loses_nothing_either(on_s3: str, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGE_BODIES", "1")
    store_at(on_s3).commit(TABLE, [creation()])
    _kill_at(on_s3, point)
    store, bodies = store_at(on_s3), [path for path in objects_at(on_s3).list(TABLE) if path.endswith(".entry")]
    kept = [entry.version for entry in store.log(TABLE)]
    assert {version_of(path) for path in bodies} <= set(kept)  # none is left of removed entries or killed writers
    reads = DynamoReads(backend_of(store)._requests, objects_at(on_s3), backend_of(store)._store)  # type: ignore[attr-defined]
    stored = [item for page in reads.pages(TABLE, entry_name(1), entry_name(10**6)) for item in page]
    assert [version_in(item) for item in stored] == kept


def _kill_at(root: str, point: str) -> None:
    killed = _start(root, 1, 20, 10, failpoint=point)
    acknowledged = [line.split()[0] for line in killed.communicate()[0].splitlines()]
    assert killed.returncode == -signal.SIGKILL
    assert len(acknowledged) < 20
    jobs = list(_state(root).jobs)
    assert jobs[: len(acknowledged)] == acknowledged
    assert len(jobs) - len(acknowledged) <= 1  # at most the one that was in flight, whole
    assert _state(root).files.count == len(jobs)
    after = _start(root, 2, 20, 10)
    after.communicate()
    assert after.returncode == 0
    state = _state(root)
    assert list(state.jobs) == [*jobs, *(f"2-{number}" for number in range(20))]
    # The next retention removes what the killed process left.
    store = store_at(root, policy=SnapshotPolicy(entries=1, keep=1, keep_for=0))
    store.commit(TABLE, [added(5000)])
    assert len(snapshot_versions(root)) == 1
    assert store_at(root).table(TABLE) == store.table(TABLE)


def test_a_writer_that_stalled_cannot_win_a_version_that_was_removed(table_at: str) -> None:
    stalled = _start(table_at, 1, 1, failpoint="commit:before-put=stop")
    _wait_until_stopped(stalled.pid)
    others = store_at(table_at, policy=SnapshotPolicy(entries=10, keep=1, keep_for=0))
    for number in range(40):
        others.commit(TABLE, [added(number)])
    assert others.log(TABLE)[0].version > 2  # version 2, which the stalled writer is about to put, was removed
    os.kill(stalled.pid, signal.SIGCONT)
    output, _ = stalled.communicate()
    assert (stalled.returncode, output.split()) == (0, ["1-0", "43"])
    assert [entry.version for entry in others.log(TABLE)][-3:] == [41, 42, 43]
    state = _state(table_at)
    assert state.files.count == 41
    assert state == others.table(TABLE)


def _wait_until_stopped(pid: int) -> None:
    while True:
        found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
        if found and os.WIFSTOPPED(status):
            return
        assert not found, "the worker ended before it stopped"
        time.sleep(0.01)


#: Forks in a process of its own: threads of this one may hold locks, which a fork would wait for forever.
FORKING = """
import os, sys
from tests.state.samples import TABLE, added, backend_of, creation, store_at
store = store_at(sys.argv[1])
store.commit(TABLE, [creation()])
backend = backend_of(store)
inherited = backend._file._connection()
child = os.fork()
if child == 0:
    try:
        store.commit(TABLE, [added(2)])
        shared = backend._file._connection() is inherited
        store.close()
        os._exit(1 if shared else 0)
    finally:
        os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
store.commit(TABLE, [added(3)])
assert backend._file._connection() is inherited
print(type(backend).__name__)
"""


def test_a_forked_child_uses_a_connection_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKING, str(tmp_path)]
    ran = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, f"{SqliteBackend.__name__}\n"), ran.stderr
    assert [each.fragment_id for each in _state(str(tmp_path)).files] == [2, 3]


def test_an_object_is_put_while_others_empty_its_folder(tmp_path: Path) -> None:
    objects = LocalObjects(tmp_path)

    def put_and_delete(writer: int) -> None:
        for number in range(300):
            path = f"logs/one/{writer}-{number}"
            objects.put(path, b"all of it")
            assert objects.get(path) == b"all of it"
            objects.delete([path])

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(put_and_delete, writer) for writer in range(2)]:
            done.result()
    assert not list(objects.list(""))
