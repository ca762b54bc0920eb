"""Retries draw pauses by chance, settle lost answers first, and keep logs together; readers see one moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from deployer.errors import CommitTimedOut
from deployer.platform.storage.objects import ObjectStore
from deployer.state.backends.protocol import Backend
from deployer.state.commits import Part
from deployer.state.snapshots.retention import SnapshotPolicy
from deployer.state.store import StateStore
from tests import forks

from .conftest import OpenBackend
from .samples import NEVER, TABLE, added, creation, is_on_s3, store_at
from .test_commits import Line, Ticks, answer_lost, request_lost

pytestmark = pytest.mark.gate

SECOND = "b" * 32
READER = str(Path(__file__).with_name("reader.py"))


@pytest.fixture
def line(open_backend: OpenBackend) -> Line:
    return Line(open_backend())


def behind(line: Line, objects: ObjectStore, ticks: Ticks, drawn: list[tuple[float, float]]) -> StateStore:
    def uniform(low: float, high: float) -> float:
        drawn.append((low, high))
        return high / 4

    return StateStore(cast(Backend, line), objects, replace(ticks.clock(), uniform=uniform), NEVER)


def test_pauses_are_drawn_from_nothing_to_a_bound_that_doubles(line: Line, objects: ObjectStore) -> None:
    drawn: list[tuple[float, float]] = []
    ticks = Ticks()
    store = behind(line, objects, ticks, drawn)
    store.commit(TABLE, [creation()])
    line.plan = [lambda put, records: False] * 12
    store.commit(TABLE, [added(1)])
    assert [low for low, _ in drawn] == [0] * 11
    assert [high for _, high in drawn] == [0.002 * 2**i for i in range(8)] + [0.5] * 3
    assert ticks.slept == [high / 4 for _, high in drawn]


def test_a_time_out_says_how_often_it_was_tried(line: Line, objects: ObjectStore) -> None:
    ticks = Ticks()
    store = behind(line, objects, ticks, [])
    store.commit(TABLE, [creation()])
    line.plan, line.puts = [lambda put, records: False] * 1000, 0
    with pytest.raises(CommitTimedOut) as caught:
        store.commit(TABLE, [added(1)], timeout=3)
    assert caught.value.attempts == line.puts
    assert str(caught.value.attempts) in caught.value.what and "within 3 s" in caught.value.what
    assert 3 <= sum(ticks.slept) < 3.5


@pytest.mark.parametrize("step", [answer_lost, request_lost])
def test_a_lost_answer_for_several_logs_is_settled_for_all(line: Line, objects: ObjectStore, step: object) -> None:
    store = behind(line, objects, Ticks(), [])
    store.commit_all([Part(TABLE, [creation()]), Part(SECOND, [creation()])])
    line.plan, line.puts = [step], 0  # type: ignore[list-item]
    states = store.commit_all([Part(TABLE, [added(1)]), Part(SECOND, [added(1)])])
    assert [state.version for state in states.values()] == [2, 2]
    assert line.puts == (1 if step is answer_lost else 2)
    assert {log: state.files.count for log, state in store.tables([TABLE, SECOND]).items()} == {TABLE: 1, SECOND: 1}


def test_transactions_over_several_logs_in_any_order_are_all_or_nothing(root: str) -> None:
    store_at(root).commit_all([Part(TABLE, [creation()]), Part(SECOND, [creation()])])

    def write(writer: int) -> None:
        store = store_at(root, policy=NEVER)
        for number in range(12):
            update = added(writer * 100 + number)
            logs = (TABLE, SECOND) if writer % 2 else (SECOND, TABLE)
            store.commit_all([Part(log, [update]) for log in logs])
        store.close()

    torn: list[tuple[int, int]] = []
    failed = threading.Event()

    def read() -> int:
        store, seen = store_at(root, policy=NEVER), 0
        while seen < 25 and not failed.is_set():
            states = store.tables([TABLE, SECOND])
            versions = (states[TABLE].version, states[SECOND].version)
            if versions[0] != versions[1] or list(states[TABLE].files) != list(states[SECOND].files):
                torn.append(versions)
            seen = versions[0]
        store.close()
        return seen

    with ThreadPoolExecutor(3) as threads:
        reader = threads.submit(read)
        try:
            for writer in [threads.submit(write, number) for number in range(2)]:
                writer.result()
        except BaseException:
            failed.set()  # or the reader would wait for it forever
            raise
        assert reader.result() == 25
    assert torn == []


@pytest.mark.parametrize("at", [[], ["20"]], ids=["the newest", "of the past"])
def test_a_reader_that_stood_still_while_its_snapshot_was_removed(root: str, at: list[str]) -> None:
    """Stopped between the pointer and the files, until retention has removed both: it reads what is there now."""
    store = store_at(root, policy=SnapshotPolicy(entries=10, keep=1, keep_for=0))
    for number in range(21):
        store.commit(TABLE, [added(number) if number else creation()])
    process = forks.Popen(
        [sys.executable, READER, root, *at],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "DEPLOYER_FAILPOINT": "snapshot:before-read=stop"},
    )
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), "the reader ended before it came to the snapshot"
    for number in range(30, 51):
        store.commit(TABLE, [added(number)])
    os.kill(process.pid, signal.SIGCONT)
    said, _ = process.communicate(timeout=300)
    if is_on_s3(root):  # a pointer holds small files too: the reader has all of what was there
        assert said == ("state 20\n" if at else "state 21\n")
    elif at:
        assert said.startswith(f"NotFound: table {TABLE}: its state at version 20 is not kept any more")
    else:
        assert said == "state 42\n"
