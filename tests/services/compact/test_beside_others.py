"""COMPACT while others load, delete, read, pause and cancel: nothing is lost, and everybody is told."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import lance
import pytest

from deployer.errors import Conflict, Interrupted, InvalidInput
from deployer.platform.system.progress import Progress
from deployer.runs.records import cancel_run, runs_of
from deployer.runs.rewriting import replace
from deployer.services.api.attachments import alter_service, create_service, pause_service, resume_service
from deployer.services.kinds.compact import compact_table
from deployer.state import open_store
from deployer.state.model.services import Run, Service
from deployer.tables.append import open_appender
from tests import forks
from tests.services.compact.test_compact import append, check_files, differences
from tests.tables.lakes import Lake, flights, sorted_rows

WORKER = str(Path(__file__).with_name("ingest_worker.py"))
REPOSITORY = Path(__file__).resolve().parents[3]
WRITERS, LOADS, ROWS = 8, 6, 20


@pytest.mark.parametrize("row_keys", [(), ("carrier", "flight")], ids=["keyless", "keyed"])
def test_loads_by_many_processes_are_never_held_up_or_lost(lake: Lake, row_keys: tuple[str, ...]) -> None:
    lake.table(row_keys=row_keys)
    append(lake, flights(400, 100_000), 8)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    writers = [
        forks.Popen(
            [sys.executable, WORKER, lake.root, str(number), str(LOADS), str(ROWS)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(WRITERS)
    ]
    try:
        compacted = 0
        while any(writer.poll() is None for writer in writers):
            compacted += compact_table(lake.root, "flights", {"portion_bytes": 5000}).work.portions
        for writer in writers:
            _, message = writer.communicate(timeout=300)
            assert writer.returncode == 0, message
    finally:
        for writer in writers:
            if writer.poll() is None:
                writer.kill()
            writer.communicate()
    assert compacted > 0
    compact_table(lake.root, "flights")
    expected = sorted_rows(flights(400, 100_000)) + sorted_rows(flights(WRITERS * LOADS * ROWS))
    assert sorted_rows(lake.open().scan().to_table()) == sorted(expected, key=repr)
    if row_keys:
        check_files(lake)
    assert differences(lake.root) == []
    jobs = lake.open().opened.state.jobs
    assert {f"{number}-{each}" for number in range(WRITERS) for each in range(LOADS)} <= jobs.keys()


def test_loads_wait_while_a_portion_is_committed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Lance they would lose the race, and try again forever longer."""
    table = lake.table(row_keys=()).opened
    append(lake, flights(60), 6)
    commit, waited = lance.LanceDataset.commit, list[bool]()

    def looking(*given: object, **named: object) -> lance.LanceDataset:
        with ThreadPoolExecutor(1) as other:
            waited.append(other.submit(turn_is_taken).result())
        return commit(*given, **named)

    def turn_is_taken() -> bool:
        [lock] = Path(lake.root).rglob(f"*-turn-{table.entry.table_id}")
        with lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    monkeypatch.setattr(lance.LanceDataset, "commit", looking)
    assert compact_table(lake.root, "flights").work.portions == 1
    assert waited == [True] and not turn_is_taken()


def before_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], times: int = 1) -> None:
    """Does something between a portion's reading and its commit."""
    left = [times]
    from deployer.platform.system.failpoints import reached as real

    def reached(name: str) -> None:
        if name == "services.replace.before-lance" and left[0]:
            left[0] -= 1
            act()
        real(name)

    monkeypatch.setattr(replace, "reached", reached)


@pytest.mark.parametrize("row_keys", [(), ("carrier", "flight")], ids=["keyless", "keyed"])
def test_a_portion_whose_rows_were_deleted_meanwhile_is_planned_again(
    lake: Lake, row_keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.table(row_keys=row_keys)
    append(lake, flights(300), 6)
    location = lake.open().opened.location
    before_commit(monkeypatch, lambda: lance.dataset(location).delete("carrier = 'UA'"))
    done = compact_table(lake.root, "flights")
    assert (done.status, done.work.conflicts) == ("SUCCEEDED", 1)
    assert not lake.open().opened.state.intents
    expected = [row for row in sorted_rows(flights(300)) if row["carrier"] != "UA"]
    assert sorted_rows(lake.open().scan().to_table()) == expected
    assert not [each for each in lake.open().opened.dataset().get_fragments() if each.num_deletions]
    assert differences(lake.root) == []


def test_a_load_between_reading_and_commit_is_no_conflict(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table(row_keys=())
    append(lake, flights(300), 6)
    before_commit(monkeypatch, lambda: append(lake, flights(50, 300), 1))
    done = compact_table(lake.root, "flights", {"target_rows": 300})
    assert (done.status, done.work.conflicts) == ("SUCCEEDED", 0)
    assert lake.open().scan().to_table().equals(flights(350))
    assert differences(lake.root) == []


def test_rows_that_are_deleted_again_and_again_end_the_run_in_words(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.table()
    append(lake, flights(300), 6)
    location, numbers = lake.open().opened.location, iter(range(100, 1000, 120))
    before_commit(monkeypatch, lambda: lance.dataset(location).delete(f"flight >= {1000 - next(numbers)}"), 99)
    with pytest.raises(
        Conflict, match=r"no portion could be committed, 6 times: .*another process changed or deleted rows"
    ):
        compact_table(lake.root, "flights")
    assert (last_run(lake).status, lake.open().opened.state.intents) == ("FAILED", {})
    assert differences(lake.root) == []


def last_run(lake: Lake) -> Run:
    return runs_of(lake.store.table(lake.open().opened.entry.table_id))[0]


def test_a_cancelled_run_keeps_the_portions_that_it_committed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table_id = lake.table().opened.entry.table_id
    append(lake, flights(400), 5)
    asked: list[str] = []

    def cancel() -> None:
        asked.append(cancel_run(lake.store, table_id, last_run(lake).run_id).run_id)

    before_commit(monkeypatch, cancel)
    monkeypatch.setattr("deployer.runs.records.LOOK", 0)
    done = compact_table(lake.root, "flights", {"portion_bytes": 1})
    assert (done.status, done.work.portions, asked) == ("CANCELLED", 1, [done.run_id])
    assert (last_run(lake).status, last_run(lake).figures.rows_in) == ("CANCELLED", done.work.rows)
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(400))
    assert differences(lake.root) == []
    assert compact_table(lake.root, "flights").status == "SUCCEEDED"
    check_files(lake)


def test_a_paused_run_waits_until_it_is_resumed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table_id = lake.table().opened.entry.table_id
    create_service(lake.store, table_id, Service("COMPACT", options={"target_rows": 200}))
    append(lake, flights(400), 5)
    monkeypatch.setattr("deployer.runs.records.LOOK", 0.01)
    before_commit(monkeypatch, lambda: pause_service(lake.store, table_id, "COMPACT"))
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(compact_table(lake.root, "flights", {"portion_bytes": 1})))
    with closing(open_store(lake.root)) as other:
        thread.start()
        while not other.table(table_id).services["COMPACT"].paused:
            assert thread.is_alive()
            thread.join(0.01)
        thread.join(0.5)
        assert thread.is_alive() and not found
        resume_service(other, table_id, "COMPACT")
        thread.join(300)
    assert [getattr(each, "status", "") for each in found] == ["SUCCEEDED"]
    check_files(lake)


def test_an_interrupt_keeps_what_is_committed(lake: Lake) -> None:
    lake.table()
    append(lake, flights(400), 5)
    reported: list[Progress] = []

    def interrupt(now: Progress) -> None:
        reported.append(now)
        if now.done > 200:
            raise Interrupted("interrupted")

    done = compact_table(lake.root, "flights", {"portion_bytes": 1}, on_progress=interrupt)
    assert done.status == "CANCELLED" and 0 < done.work.portions < 4
    assert (reported[0].doing, reported[0].total) == ("compacting", 400)
    assert last_run(lake).status == "CANCELLED"
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(400))
    assert differences(lake.root) == []


def test_a_service_that_is_attached_gives_its_options(lake: Lake) -> None:
    table_id = lake.table(splits=()).opened.entry.table_id
    append(lake, flights(400), 4)
    create_service(lake.store, table_id, Service("COMPACT", options={"min_files": 5}))
    assert compact_table(lake.root, "flights").status == "SKIPPED"
    assert compact_table(lake.root, "flights", {}).status == "SUCCEEDED"


def test_options_that_nobody_checked_are_checked_when_it_runs(lake: Lake) -> None:
    table_id = lake.table(splits=()).opened.entry.table_id
    append(lake, flights(400), 4)
    create_service(lake.store, table_id, Service("COMPACT", options={"min_files": "5"}, unsafe_raw=True))
    assert compact_table(lake.root, "flights").status == "SKIPPED"
    before = lake.store.table(table_id).services["COMPACT"]
    alter_service(lake.store, table_id, before, Service("COMPACT", options={"fast": "yes"}, unsafe_raw=True))
    with pytest.raises(InvalidInput, match="COMPACT has no option `fast`"):
        compact_table(lake.root, "flights")


def test_rows_that_an_appender_has_ready_are_added_after_a_compaction(lake: Lake) -> None:
    lake.table(row_keys=())
    with closing(open_appender(lake.root, "air.flights")) as appender:
        for start in range(0, 100, 10):
            appender.append(flights(10, start))
        compact_table(lake.root, "flights")
        appender.append(flights(10, 100))
    assert lake.open().scan().to_table().equals(flights(110))
    assert differences(lake.root) == []
