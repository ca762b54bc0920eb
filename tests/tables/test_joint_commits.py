"""Appends that another process commits: each once, whoever dies, is stopped or is refused in between."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.datasets.files.writer import write_sorted
from deployer.datasets.lance_transactions import Append, commit_now
from deployer.datasets.recovery.rollforward import refresh
from deployer.errors import Conflict
from deployer.state.backends import group_commit as line
from deployer.state.backends.commit_requests import call
from deployer.tables.append import Appender, open_appender
from deployer.tables.ingest.commit.append import AppendResult
from deployer.tables.ingest.commit.pending import Pending
from deployer.tables.maintenance.verify.verify import verify
from deployer.tables.open_table import open_to_change
from tests import forks
from tests.tables.lakes import Lake, flights, sorted_rows

LONG = 600.0
ROWS = 5  #: of each append


class Crowd:
    """Writers that wait for the turn at one table: threads here, and processes that tests kill.

    Threads try for the turn only when they are called, so that a test chooses who has it.
    """

    def __init__(self, lake: Lake, threads: ThreadPoolExecutor) -> None:
        self.lake, self._threads = lake, threads
        state = Path(lake.root, "_state")
        table_id = lake.open().opened.entry.table_id
        self.lock, self.folder = state / f"state.db-turn-{table_id}", state / f"state.db-line-{table_id}"

    @contextmanager
    def held(self) -> Iterator[None]:
        """The turn is taken meanwhile; nobody is called afterwards."""
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(descriptor)

    def call(self) -> None:
        call(self.folder)

    def wake(self) -> None:
        """Has all that wait look again."""
        for path in self.requests("pipe"):
            with suppress(OSError):  # nobody waits any more
                pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                os.write(pipe, b"turn\n")
                os.close(pipe)

    def requests(self, kind: str = "offer") -> list[Path]:
        return sorted(self.folder.glob(f"*.{kind}"))

    def append(self, number: int, job_id: str = "", appender: Appender | None = None) -> Future[AppendResult]:
        """Begins the append of a number in a thread, and returns when it waits."""
        appender = appender or open_appender(self.lake.root, "air.flights")
        before = len(self.requests())
        found = self._threads.submit(appender.append, flights(ROWS, ROWS * number), job_id or f"job-{number}")
        self._until(before + 1, found.done)
        return found

    def process(self, number: int, failpoint: str = "") -> subprocess.Popen[str]:
        before = len(self.requests())
        found = forks.Popen(
            [sys.executable, "-m", "tests.tables.append_worker", self.lake.root, f"job-{number}", str(ROWS * number)],
            env=os.environ | {"DEPLOYER_FAILPOINT": failpoint},
            stderr=subprocess.PIPE,
            text=True,
        )
        self._until(before + 1, lambda: found.poll() is not None)
        return found

    def _until(self, waiting: int, ended: Callable[[], object]) -> None:
        while len(self.requests()) < waiting:
            assert not ended(), "it ended before it waited"
            time.sleep(0.005)

    def holds(self, *numbers: int) -> None:
        """Raises AssertionError unless the rows and jobs of these appends are there, once, and the log tells so."""
        expected = pa.concat_tables([flights(ROWS, ROWS * number) for number in numbers])
        table = self.lake.open()
        columns = ["carrier", "flight", "delay", "at"]  # which no test changes
        newest = lance.dataset(table.opened.location).to_table(columns=columns)
        assert sorted_rows(table.scan(columns=columns).to_table()) == sorted_rows(expected.select(columns))
        assert sorted_rows(newest) == sorted_rows(expected.select(columns))
        state = table.opened.state
        assert set(state.jobs) == {f"job-{number}" for number in numbers} and not state.intents
        assert state.files.rows == ROWS * len(numbers)
        assert [str(one) for each in verify(self.lake.store, self.lake.root) for one in each.differences] == []


@pytest.fixture
def crowd(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Crowd]:
    monkeypatch.setattr(line, "POLL_SECONDS", LONG)
    monkeypatch.setattr(line, "PATIENCE", LONG)
    lake.table()
    with ThreadPoolExecutor(8) as threads:
        crowd = Crowd(lake, threads)
        yield crowd
        monkeypatch.undo()  # threads that a test which failed has left end now
        crowd.wake()


def entries(lake: Lake) -> int:
    return lake.open().opened.state.version


def test_whoever_has_the_turn_commits_for_all(crowd: Crowd) -> None:
    before = entries(crowd.lake)
    with crowd.held():
        waiting = [crowd.append(number) for number in range(4)]
    crowd.call()
    done = [each.result(LONG) for each in waiting]
    crowd.holds(0, 1, 2, 3)
    assert entries(crowd.lake) == before + 2  # one of intents, one of what became of them
    assert {each.job.lance_version for each in done} == {2}  # and one version of the dataset
    newest = crowd.lake.open().history()[0]
    assert (newest.version, newest.rows, newest.foreign) == (2, 4 * ROWS, False)
    assert set(newest.job_id.split(", ")) == {"job-0", "job-1", "job-2", "job-3"}
    assert not any(each.already_done for each in done)
    assert not list(crowd.folder.iterdir())


def test_a_writer_goes_on_after_another_committed_for_it(crowd: Crowd) -> None:
    appenders = [open_appender(crowd.lake.root, "air.flights") for _ in range(3)]
    for first in (0, 3, 6):
        with crowd.held():
            waiting = [crowd.append(first + i, appender=appender) for i, appender in enumerate(appenders)]
        crowd.call()
        assert [each.result(LONG).job.job_id for each in waiting] == [f"job-{first + i}" for i in range(3)]
    crowd.holds(*range(9))


def add_a_column(dataset: lance.LanceDataset) -> None:
    dataset.add_columns({"gate": "cast(NULL as string)"})


def replace_a_column(dataset: lance.LanceDataset) -> None:
    dataset.drop_columns(["price"])
    dataset.add_columns({"price": "cast(NULL as decimal(8, 2))"})


@pytest.mark.parametrize("change", [add_a_column, replace_a_column])
@pytest.mark.parametrize("first", [True, False], ids=["it has the turn first", "it waits"])
def test_one_that_is_refused_takes_nobody_down(
    change: Callable[[lance.LanceDataset], None], first: bool, crowd: Crowd
) -> None:
    appender = open_appender(crowd.lake.root, "air.flights")
    appender.append(flights(ROWS), "job-0")
    with crowd.held():
        waiting = [crowd.append(9, appender=appender)] if first else []
        change(lance.dataset(crowd.lake.open().opened.location))
        crowd.lake.open()  # records it
        good = [crowd.append(number) for number in (1, 2)]
        bad = waiting[0] if waiting else crowd.append(9, appender=appender)
    crowd.call()
    with pytest.raises(Conflict, match=r"changed|columns were replaced"):
        bad.result(LONG)
    assert not any(each.result(LONG).already_done for each in good)
    crowd.holds(0, 1, 2)


def test_a_job_that_two_writers_do_at_once_is_done_once(crowd: Crowd) -> None:
    with crowd.held():
        waiting = [crowd.append(0, "job-0"), crowd.append(0, "job-0"), crowd.append(1)]
    crowd.call()
    assert sorted(each.result(LONG).already_done for each in waiting) == [False, False, True]
    crowd.holds(0, 1)


def test_a_table_that_is_dropped_meanwhile_refuses_all(crowd: Crowd) -> None:
    with crowd.held():
        waiting = [crowd.append(number) for number in range(2)]
        calls = [os.open(path, os.O_WRONLY) for path in crowd.requests("pipe")]
        crowd.lake.store.remove_table_log(crowd.lake.open().opened.entry.table_id)
    while any(not append.done() for append in waiting):
        for each in calls:
            with suppress(BrokenPipeError):
                os.write(each, b"turn\n")
        time.sleep(0.02)
    for each in calls:
        os.close(each)
    for append in waiting:
        with pytest.raises(Conflict):
            append.result(LONG)


@pytest.mark.parametrize(
    ("point", "survives"),
    [
        ("tables.commit.before-lance", False),
        ("line.before-take", False),
        ("line.after-take", False),
        ("line.after-take@2", False),
        ("tables.commit.after-lance", True),
        ("tables.commit.after-state", True),
        ("line.before-answer@2", True),
    ],
)
def test_a_writer_that_is_killed_while_it_commits_for_others_loses_and_doubles_nothing(
    point: str, survives: bool, crowd: Crowd
) -> None:
    with crowd.held():
        waiting = [crowd.append(number) for number in (1, 2)]
        killed = crowd.process(0, point)
    killed.communicate(timeout=LONG)
    assert killed.returncode == -signal.SIGKILL
    while any(not each.done() for each in waiting):
        crowd.wake()
        time.sleep(0.02)
    assert [each.result(LONG).already_done for each in waiting] == [False, False]
    if survives:
        crowd.holds(0, 1, 2)
    else:
        table = crowd.lake.open()
        assert set(table.opened.state.jobs) == {"job-1", "job-2"} and set(table.opened.state.intents) == {"job-0"}
        crowd.lake.open()
        assert table.count() == 2 * ROWS


def test_what_a_killed_writer_offered_is_committed_once_or_not_at_all(crowd: Crowd) -> None:
    with crowd.held():
        waiting = crowd.append(1)
        killed = crowd.process(0, "line.offered")
        killed.communicate(timeout=LONG)
    crowd.call()
    waiting.result(LONG)
    crowd.holds(1)
    assert not list(crowd.folder.iterdir())


def stopped(process: subprocess.Popen[str]) -> None:
    os.waitpid(process.pid, os.WUNTRACED)


@pytest.mark.parametrize(
    ("point", "joint"),
    [("line.after-take", False), ("tables.commit.before-lance", False), ("tables.commit.after-lance", True)],
)
def test_a_writer_that_is_stopped_while_it_commits_for_another_holds_nobody(
    point: str, joint: bool, crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other writers commit alone. The stopped one commits its own rows later, and theirs no second time, even
    where their files are in no fragment any more."""
    monkeypatch.setattr(line, "TAKEN_PATIENCE", 0)
    with crowd.held():
        waiting = [crowd.append(1), crowd.append(2)]
        holder = crowd.process(0, f"{point}=stop")
    try:
        stopped(holder)
        monkeypatch.setattr(line, "PATIENCE", 0)
        crowd.wake()
        assert not any(each.result(LONG).already_done for each in waiting)
        table = crowd.lake.open()
        assert sorted(table.opened.state.jobs) == [f"job-{number}" for number in range(0 if joint else 1, 3)]
        lance.dataset(table.opened.location).optimize.compact_files()
    finally:
        os.kill(holder.pid, signal.SIGCONT)
        _, said = holder.communicate(timeout=LONG)
    assert holder.returncode == 0, said
    assert lance.dataset(table.opened.location).count_rows() == 3 * ROWS  # before deployer looks at it again
    refresh(crowd.lake.store, crowd.lake.root, table.opened.entry.table_id)
    crowd.holds(0, 1, 2)


def test_a_writer_that_others_made_look_again_refuses_rows_of_another_schema(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "TAKEN_PATIENCE", 0)
    with crowd.held():
        waiting = crowd.append(1)
        holder = crowd.process(0, "tables.commit.before-lance=stop")
    try:
        stopped(holder)
        crowd.wake()
        waiting.result(LONG)
        add_a_column(lance.dataset(crowd.lake.open().opened.location))
        crowd.lake.open()  # records it
    finally:
        os.kill(holder.pid, signal.SIGCONT)
        _, said = holder.communicate(timeout=LONG)
    assert holder.returncode == 1 and "the table was changed while rows were being written for it" in said
    crowd.holds(1)


def test_files_that_were_committed_twice_count_once(lake: Lake) -> None:
    """As when two processes each took the same append for not done, and both had it right for a moment."""
    opened = lake.table().opened
    written = write_sorted(opened.layout(), flights(ROWS), opened.state.leaves()[0].partition_id)
    pending = Pending.of("job-0", "append", written, opened.state.schema, opened.state.dataset)
    for recorded_first in (False, True):
        if recorded_first:
            refresh(lake.store, lake.root, opened.entry.table_id)
        for _ in range(1 if recorded_first else 2):
            commit_now(opened.location, lance.dataset(opened.location), Append(pending.fragments), [pending.info])
        read = lake.open()
        assert set(read.opened.state.jobs) == {"job-0"} and read.count() == ROWS
        assert sorted_rows(read.scan().to_table()) == sorted_rows(flights(ROWS))  # who only reads leaves them there
        assert lance.dataset(opened.location).count_rows() == 2 * ROWS
        state = open_to_change(lake.root, "flights").state
        assert set(state.jobs) == {"job-0"} and state.files.rows == ROWS
        assert sorted_rows(lance.dataset(opened.location).to_table()) == sorted_rows(flights(ROWS))


def test_writers_that_race_lose_and_double_nothing(lake: Lake) -> None:
    lake.table()
    before = entries(lake)

    def write(writer: int) -> None:
        appender = open_appender(lake.root, "air.flights")
        for number in range(10):
            appender.append(flights(2, 2 * (10 * writer + number)), f"{writer}-{number}")

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(write, writer) for writer in range(4)]:
            done.result(LONG)
    state = lake.open().opened.state
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(80))
    assert len(state.jobs) == 40 and not state.intents and state.lance_version <= 41
    assert state.version - before < 80  # some were committed together


def test_what_another_version_offers_is_left_to_it(lake: Lake) -> None:
    opened = lake.table().opened
    written = write_sorted(opened.layout(), flights(ROWS), opened.state.leaves()[0].partition_id)
    pending = Pending.of("job-0", "append", written, opened.state.schema, opened.state.dataset)
    body = pending.to_bytes()
    found = Pending.from_bytes(body)
    assert found is not None and found.info == pending.info and list(found.fragments) == list(pending.fragments)
    assert Pending.from_bytes(body.replace(b'"format": 1', b'"format": 2')) is None
    assert Pending.from_bytes(body.replace(f'"{lance.__version__}"'.encode(), b'"0.1"')) is None
    assert Pending.from_bytes(b"{}") is None and Pending.from_bytes(b"\x00") is None
