"""Runs: one holder at a time, leases that end, wishes, and races between threads and processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from deployer.errors import Conflict, NotFound
from deployer.platform.system.clock import Clock
from deployer.runs.records import (
    HeldRun,
    begin_runs,
    cancel_run,
    dead_runs,
    end_queued_run,
    fail_dead_runs,
    find_run,
    queue_run,
    runs_of,
    start_run,
)
from deployer.services.api.attachments import create_service, pause_service, resume_service
from deployer.state.model.services import RUNS_KEPT, Figures, Service
from deployer.state.store import StateStore
from tests import forks
from tests.state.samples import TABLE, added, creation, store_at

WORKER = str(Path(__file__).with_name("run_worker.py"))
REPOSITORY = Path(__file__).resolve().parents[2]


class Time:
    """A clock that stands still unless it is moved."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.clock = Clock(
            now=lambda: round(self.seconds * 1000), monotonic=lambda: self.seconds, sleep=lambda s: self.pass_by(s)
        )

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds

    @property
    def ms(self) -> int:
        return round(self.seconds * 1000)


@pytest.fixture
def time_() -> Time:
    return Time()


@pytest.fixture
def store(root: str, time_: Time) -> Iterator[StateStore]:
    store = store_at(root, time_.clock)
    store.commit(TABLE, [creation()])
    create_service(store, TABLE, Service("COMPACT", "AUTOMATIC", {"commits": 10}))
    yield store
    store.close()


def queued(store: StateStore, run_id: str = "run-1") -> str:
    return queue_run(store, TABLE, "COMPACT", cause="on demand", author="ann", run_id=run_id).run_id


def held(store: StateStore, time_: Time, run_id: str = "run-1", **options: Any) -> HeldRun:
    return start_run(store, TABLE, queued(store, run_id), lease=60, clock=time_.clock, **options)


def test_a_run_from_beginning_to_end(store: StateStore, time_: Time) -> None:
    began = time_.ms
    run = queue_run(store, TABLE, "COMPACT", cause="schedule", cluster="local", author="ann", run_id="run-1")
    assert (run.status, run.cause, run.cluster, run.author, run.queued_at) == (
        "QUEUED", "schedule", "local", "ann", began
    )  # fmt: skip
    time_.pass_by(5)
    working = start_run(store, TABLE, "run-1", lease=60, log="run-1.log", clock=time_.clock)
    assert (working.run.status, working.run.started_at, working.run.lease_until, working.run.log) == (
        "RUNNING", began + 5_000, began + 65_000, "run-1.log"
    )  # fmt: skip
    time_.pass_by(30)
    assert working.look({"done": 0.5}) is None
    run = find_run(store.table(TABLE), "run-1")
    assert (run.progress, run.lease_until) == ({"done": 0.5}, began + 95_000)
    figures = Figures(10, 9, 1000, 900, 3, 4, {"fragments": 20}, {"fragments": 1})
    ended = working.finish(figures=figures, progress={"done": 1})
    assert ended == find_run(store.table(TABLE), "run-1") == runs_of(store.table(TABLE), "COMPACT")[0]
    assert (ended.status, ended.ended_at, ended.figures, ended.progress, ended.lease_until, ended.is_open) == (
        "SUCCEEDED", began + 35_000, figures, {"done": 1}, None, False
    )  # fmt: skip


def test_a_lease_is_written_only_when_a_third_of_it_is_over(store: StateStore, time_: Time) -> None:
    working, before = held(store, time_), store.table(TABLE).version
    for second in range(60):
        working.look({"second": second})
        time_.pass_by(1)
    assert store.table(TABLE).version == before + 2


def test_of_those_who_start_a_queued_run_one_gets_it(root: str, store: StateStore) -> None:
    queued(store)
    stores = [store_at(root) for _ in range(4)]
    for each in stores:
        each.table(TABLE)

    def start(number: int) -> str:
        try:
            return start_run(stores[number], TABLE, "run-1", holder=f"holder-{number}").run.holder or ""
        except Conflict as conflict:
            assert "run run-1 is RUNNING, not QUEUED" in str(conflict)
            return ""

    with ThreadPoolExecutor(4) as pool:
        got = [holder for holder in pool.map(start, range(4)) if holder]
    assert got == [find_run(store.table(TABLE), "run-1").holder]
    for each in stores:
        each.close()


def test_a_dead_run_is_failed_by_one_of_those_who_look_and_its_holder_is_told(
    root: str, store: StateStore, time_: Time
) -> None:
    working = held(store, time_)
    others = [store_at(root, time_.clock) for _ in range(3)]
    assert fail_dead_runs(store, TABLE, time_.ms + 60_000) == []
    time_.pass_by(61)
    assert [run.run_id for run in dead_runs(store.table(TABLE), time_.ms)] == ["run-1"]
    with ThreadPoolExecutor(3) as pool:
        failed = [run for found in pool.map(lambda s: fail_dead_runs(s, TABLE, time_.ms), others) for run in found]
    assert [(run.run_id, run.status) for run in failed] == [("run-1", "FAILED")]
    assert "considered dead: its lease expired 1 s ago" in failed[0].reason
    again = start_run(others[0], TABLE, queued(others[0], "run-2"), clock=time_.clock)
    for call in (working.renew, working.look, working.finish):
        with pytest.raises(Conflict, match="run run-1 is FAILED, not RUNNING"):
            call()
    with pytest.raises(Conflict, match="run run-1 is FAILED, not RUNNING"):
        store.commit(TABLE, [added(1)], working.requirements())
    assert again.renew() is None and store.commit(TABLE, [added(1)], again.requirements()).files.count == 1
    for each in others:
        each.close()


def test_a_lease_that_was_renewed_meanwhile_is_left(store: StateStore, time_: Time) -> None:
    """Who found the run dead decided on a state before the holder renewed it."""
    working = held(store, time_)
    time_.pass_by(61)
    stale = store.table(TABLE)
    working.renew()
    store.table = lambda table_id, at=None: stale  # type: ignore[method-assign]
    assert fail_dead_runs(store, TABLE, time_.ms) == []
    del store.table
    assert find_run(store.table(TABLE), "run-1").status == "RUNNING"


def test_one_run_of_a_service_at_a_time_and_none_without_the_service(store: StateStore, time_: Time) -> None:
    queued(store)
    with pytest.raises(Conflict, match="run run-1 of COMPACT is QUEUED"):
        queued(store, "run-2")
    working = start_run(store, TABLE, "run-1", clock=time_.clock)
    with pytest.raises(Conflict, match="run run-1 of COMPACT is RUNNING"):
        queued(store, "run-2")
    working.finish("SKIPPED", reason="nothing to do")
    queued(store, "run-2")
    with pytest.raises(Conflict, match="the table has no CLEAN service"):
        queue_run(store, TABLE, "CLEAN", cause="on demand")
    assert queue_run(store, TABLE, "CLEAN", cause="on demand", needs_service=False).status == "QUEUED"


def test_queueing_and_starting_can_be_repeated_by_who_did_it(store: StateStore, time_: Time) -> None:
    assert queued(store) == queued(store)
    first = start_run(store, TABLE, "run-1", holder="me", clock=time_.clock)
    assert start_run(store, TABLE, "run-1", holder="me", clock=time_.clock).run.started_at == first.run.started_at
    first.finish()
    assert queued(store) == "run-1"
    assert [run.status for run in runs_of(store.table(TABLE))] == ["SUCCEEDED"]


def test_a_run_that_begins_at_once_is_never_seen_queued(store: StateStore) -> None:
    """Who is killed leaves it running, with a lease that ends; a queued run would keep all others out forever."""
    before = store.table(TABLE).version
    [working] = begin_runs(store, [TABLE], "CLEAN", cause="on demand", run_id="once")
    assert (working.run.status, store.table(TABLE).version) == ("RUNNING", before + 1)
    for id in ("once", None):
        with pytest.raises(Conflict, match="run once of CLEAN is RUNNING"):
            begin_runs(store, [TABLE], "CLEAN", cause="on demand", run_id=id)
    working.finish()
    with pytest.raises(Conflict, match="run once of CLEAN is SUCCEEDED"):
        begin_runs(store, [TABLE], "CLEAN", cause="on demand", run_id="once")
    [cluster] = begin_runs(store, [TABLE], "CLUSTER", cause="on demand")
    with pytest.raises(Conflict, match=f"run {cluster.run_id} of CLUSTER is RUNNING"):
        begin_runs(store, [TABLE], "COMPACT", cause="on demand")
    assert sorted(run.service for run in runs_of(store.table(TABLE))) == ["CLEAN", "CLUSTER"]


def test_a_queued_run_is_cancelled_at_once_and_a_running_one_by_its_holder(store: StateStore, time_: Time) -> None:
    queued(store)
    assert cancel_run(store, TABLE, "run-1", reason="not now").status == "CANCELLED"
    with pytest.raises(Conflict, match="run run-1 is CANCELLED, not QUEUED"):
        start_run(store, TABLE, "run-1")
    working = held(store, time_, "run-2")
    assert cancel_run(store, TABLE, "run-2").wish == "cancel"
    assert working.look() is None  # it looked within the last second
    time_.pass_by(1)
    assert working.look() == "cancel"
    assert working.finish("CANCELLED", reason="by ann").wish is None
    assert cancel_run(store, TABLE, "run-2").status == "CANCELLED"
    with pytest.raises(NotFound, match="there is no run run-9"):
        cancel_run(store, TABLE, "run-9")


def test_pausing_a_service_holds_its_run_and_starts_none(root: str, store: StateStore, time_: Time) -> None:
    working = held(store, time_)
    other = store_at(root, time_.clock)
    assert pause_service(other, TABLE, "COMPACT").paused
    time_.pass_by(1)
    assert working.look() == "pause"
    waits = 0

    def pass_by(seconds: float) -> None:
        nonlocal waits
        time_.seconds += seconds
        if (waits := waits + 1) == 100:  # longer than the lease
            resume_service(other, TABLE, "COMPACT")

    time_.pass_by = pass_by  # type: ignore[method-assign]
    assert working.wait_while_paused({"done": 0.5}) is None
    assert waits == 100 and dead_runs(store.table(TABLE), time_.ms) == []
    pause_service(other, TABLE, "COMPACT")
    cancel_run(other, TABLE, "run-1")
    resume_service(other, TABLE, "COMPACT")
    assert working.wait_while_paused() in (None, "cancel") and working.renew() == "cancel"
    working.finish("CANCELLED")
    queued(store, "run-2")
    pause_service(other, TABLE, "COMPACT")
    with pytest.raises(Conflict, match="the COMPACT service is paused"):
        start_run(store, TABLE, "run-2")
    assert end_queued_run(store, TABLE, "run-2", "SKIPPED", reason="paused").status == "SKIPPED"
    other.close()


def test_only_the_newest_of_the_runs_that_ended_are_kept(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    store.commit(TABLE, [creation()])
    queue_run(store, TABLE, "CLEAN", cause="open", run_id="open", needs_service=False)
    for number in range(RUNS_KEPT + 3):
        queue_run(store, TABLE, "COMPACT", cause="", run_id=f"run-{number:03}", needs_service=False)
        end_queued_run(store, TABLE, f"run-{number:03}", "SKIPPED", reason="")
    left = runs_of(store.table(TABLE))
    assert sorted(run.run_id for run in left) == ["open"] + [f"run-{n:03}" for n in range(3, RUNS_KEPT + 3)]
    store.close()


def _start(root: str, *args: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), *sys.path]))}
    command = [sys.executable, WORKER, root, *args]
    return forks.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_processes_that_race_for_runs(root: str, store: StateStore) -> None:
    workers = [_start(root, "race", "raced") for _ in range(4)]
    got = sorted(int(line) for worker in workers for line in worker.communicate()[0].split())
    assert [worker.returncode for worker in workers] == [0] * 4
    ended = [int(run.reason) for run in runs_of(store.table(TABLE), "CLEAN") if run.status == "SUCCEEDED"]
    assert got == sorted(ended) and len(set(got)) == len(got) and got


def test_a_holder_that_is_killed_is_found_and_one_that_lives_is_not(root: str, store: StateStore) -> None:
    queued(store)
    worker = _start(root, "hold", "run-1")
    try:
        assert worker.stdout is not None and worker.stdout.readline() == "held\n"
        first = find_run(store.table(TABLE), "run-1").lease_until or 0
        while (find_run(store.table(TABLE), "run-1").lease_until or 0) <= first:  # a thread keeps the lease
            assert worker.poll() is None
            time.sleep(0.05)
    finally:
        worker.kill()
        worker.communicate()
    while not (failed := fail_dead_runs(store, TABLE)):
        time.sleep(0.05)
    assert [(run.run_id, run.status) for run in failed] == [("run-1", "FAILED")]
