"""A stream, services, a backfill, loads of a column and readers on one table at once: each batch is there once, whole
for every reader, and both columns have their values."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.errors import Conflict
from deployer.services.registry import run_service
from deployer.specs.types.arrow import arrow_field
from deployer.specs.types.computed import ComputedBySql
from deployer.specs.types.types import Column, Scalar
from deployer.table import connect
from tests.projects import REPOSITORY
from tests.services.compact.test_compact import differences
from tests.services.mixed_worker import ROWS
from tests.services.test_all_at_once import SERVICES, Worker, until, worker
from tests.spark.sessions import collect_files, files_left, kill_session, put
from tests.spark.together_program import OVER
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows

#: What the backfill computes; loads and the stream leave it out.
COMPUTED = Column("late", Scalar("int64"), computed=ComputedBySql("CAST(delay AS BIGINT) * 2 + 1", ("delay",)))
LONGEST = 900  #: seconds of the whole test on a busy machine


class StreamProgram:
    """The Spark program, which is killed with all of its processes and started again. `rows` are those of its last
    reading."""

    def __init__(self, folder: Path, root: str, source: Path, number: int) -> None:
        place = folder / f"stream-{number}"
        place.mkdir()
        self.out, self.err = place / "out", place / "err"
        command = [sys.executable, "-m", "tests.spark.together_program", str(place), root, str(source)]
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen(
                [*command, str(folder / "checkpoint")],
                cwd=REPOSITORY,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def rows(self) -> int:
        lines = self.out.read_text().splitlines()
        return int(lines[-1]) if lines else -1

    def kill(self) -> None:
        kill_session(self.process.pid)
        self.process.wait()


@contextmanager
def stream_program(folder: Path, root: str, source: Path, number: int) -> Iterator[StreamProgram]:
    made = StreamProgram(folder, root, source, number)
    try:
        yield made
    finally:
        made.kill()


@pytest.mark.spark
@pytest.mark.own_session
@pytest.mark.parametrize(
    ("batches", "kills"),
    [pytest.param(12, 1, id="short"), pytest.param(300, 20, marks=pytest.mark.slow, id="long")],
)
def test_a_stream_services_loads_and_readers_together(lake: Lake, batches: int, kills: int) -> None:
    dice = random.Random(kills)  # noqa: S311 -- chooses when the stream is killed
    lake.table(FLIGHTS.append(arrow_field(COMPUTED)))
    source = lake.folder / "source"
    source.mkdir()
    kill_before = set(dice.sample(range(2, batches), kills))
    numbered = iter(range(10_000))
    with ExitStack() as stack:

        def start(what: str) -> Worker:
            return stack.enter_context(worker(lake.folder, lake.root, what, next(numbered)))

        backfill = start("backfill")
        others = [start("read"), *(start(what) for what in SERVICES), backfill]
        loads = stack.enter_context(column_loads(lake, batches))
        spark = stack.enter_context(stream_program(lake.folder, lake.root, source, next(numbered)))

        def reaches(rows: int) -> bool:
            assert spark.process.poll() is None, spark.err.read_text()[-5000:]
            assert loads.failure is None, loads.failure
            return spark.rows >= rows

        for number in range(batches):
            put(source, number, flights(ROWS, ROWS * number))
            if number in kill_before:
                time.sleep(dice.uniform(0, 1))  # into what is running
                spark.kill()
                spark = stack.enter_context(stream_program(lake.folder, lake.root, source, next(numbered)))
            if number % 4 == 3:
                until(others, lambda so_far=number - 1: reaches(ROWS * so_far))  # type: ignore[misc]
        (source / OVER).touch()
        assert spark.process.wait(LONGEST) == 0, spark.err.read_text()[-5000:]
        assert spark.rows == ROWS * batches
        for each in others:
            each.stop()
    assert loads.failure is None and loads.done > 0
    assert "SUCCEEDED" in backfill.lines, backfill.lines
    load_column(lake, batches, "last")
    compute_column(lake)
    found = lake.open().scan().to_table()
    assert sorted_rows(found.drop_columns(["score", COMPUTED.name])) == sorted_rows(flights(ROWS * batches))
    delays = found["delay"].to_pylist()
    assert found[COMPUTED.name].to_pylist() == [None if each is None else 2 * each + 1 for each in delays]
    scores = dict(zip(found["at"].to_pylist(), found["score"].to_pylist(), strict=True))
    assert scores == dict(zip(*(column.to_pylist() for column in source_of_column(batches).columns), strict=True))
    assert differences(lake.root) == []
    assert not [each for each in lake.open().opened.state.intents if each.startswith("stream-")]
    collect_files(lake)
    assert not files_left(lake) and lake.open().count() == ROWS * batches


def compute_column(lake: Lake) -> None:
    """Computes the column of the rows that the backfill has not come to."""
    give_up = time.monotonic() + LONGEST
    while True:
        try:
            if run_service(lake.root, "flights", "BACKFILL").status == "SKIPPED":
                return
        except Conflict:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)


def source_of_column(batches: int) -> pa.Table:
    """A value for each row of the stream, by the time that no other row has."""
    rows = flights(ROWS * batches)
    return pa.table({"at": rows["at"], "score": pa.array([number * 2.5 for number in range(rows.num_rows)])})


def load_column(lake: Lake, batches: int, job_id: str) -> None:
    """Loads the column into the rows that are there; again where others change them first."""
    path = str(lake.file(source_of_column(batches)))
    give_up = time.monotonic() + LONGEST
    while True:
        with connect(lake.root) as connection:
            try:
                connection.open_table("flights").load_columns(path, "at", ["score"], job_id=job_id)
            except Conflict:
                if time.monotonic() > give_up:
                    raise
                time.sleep(0.1)
            else:
                return


class Loads(threading.Thread):
    """Loads the column again and again until it is stopped."""

    def __init__(self, lake: Lake, batches: int) -> None:
        super().__init__(daemon=True)
        self._lake, self._batches = lake, batches
        self.done, self.failure, self.over = 0, None, threading.Event()
        self.start()

    failure: Exception | None

    def run(self) -> None:
        while not self.over.wait(0.5):
            try:
                if self._lake.open().count():
                    load_column(self._lake, self._batches, f"load-{self.done}")
                    self.done += 1
            except Exception as failure:
                self.failure = failure
                return


@contextmanager
def column_loads(lake: Lake, batches: int) -> Iterator[Loads]:
    made = Loads(lake, batches)
    try:
        yield made
    finally:
        made.over.set()
        made.join(LONGEST)
