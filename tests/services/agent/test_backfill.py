"""BACKFILL beside the agent: rows that start it, what is overdue, and runs that are paused and cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.errors import Interrupted
from deployer.functions import udf
from deployer.platform.isolation.trusted_functions import VARIABLE
from deployer.runs.records import cancel_run, runs_of
from deployer.services.agent.watch import Watch
from deployer.services.api import management
from deployer.services.kinds.backfill import BACKFILL
from deployer.services.kinds.backfill.results import BackfillResult
from deployer.specs.types.arrow import arrow_field
from deployer.specs.types.computed import Computed, ComputedBySql, ComputedByUdf
from deployer.specs.types.types import Column, Scalar
from deployer.state import open_store
from deployer.state.model.services import Run
from deployer.table import connect
from deployer.tables.open_table import OpenTable, open_entry
from tests.columns.rows import SCHEMA, rows, values
from tests.services.agent.conftest import Watched, until
from tests.tables.lakes import Lake

BEGUN, OVER = threading.Event(), threading.Event()
WAITING = f"{__name__}:waiting"
KM = ComputedBySql("rating * 1.609344", ("rating",))


@udf(data_type=pa.float64(), version="1")
def waiting(rating: float) -> float:
    BEGUN.set()
    assert OVER.wait(300)
    return rating * 2


@pytest.fixture
def backfilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """A lake with 30 rows, of which neither `km` nor `twice` is computed."""
    monkeypatch.setenv(VARIABLE, WAITING)
    monkeypatch.setattr("deployer.runs.records.LOOK", 0.001)
    BEGUN.clear()
    OVER.clear()
    lake = Lake(tmp_path)
    computed: dict[str, Computed] = {"km": KM, "twice": ComputedByUdf(WAITING, "", ("rating",), "1")}
    fields = [arrow_field(Column(name, Scalar("float64"), computed=each)) for name, each in computed.items()]
    lake.table(pa.schema([*SCHEMA, *fields]), row_keys=("id",), splits=())
    found = Watched(lake)
    for start in (0, 10, 20):
        write(found, start, start + 10)
    yield found
    OVER.set()
    for agent in found.agents:
        agent.workers.kill()


def write(watched: Watched, start: int, end: int) -> None:
    with connect(watched.lake.root) as connection:
        connection.open_table("flights").add(rows(start, end))


def kilometres(watched: Watched) -> int:
    """The number of rows that have a value of `km`."""
    with connect(watched.lake.root) as connection:
        return sum(value is not None for value in values(connection.open_table("flights"), "km").values())


def opened(watched: Watched) -> OpenTable:
    entry = watched.lake.store.instance().by_name("air.flights")
    assert entry is not None
    return open_entry(watched.lake.store, watched.lake.root, entry)


def attach(watched: Watched, **options: str) -> None:
    management.attach(opened(watched), "BACKFILL", "AUTOMATIC", {"rows": "25", **options})


def backfills(watched: Watched) -> list[Run]:
    return runs_of(watched.state, "BACKFILL")


def test_written_rows_start_a_run_of_the_agent(backfilled: Watched) -> None:
    attach(backfilled, columns="km")
    assert backfilled.agent().once()
    [run] = backfills(backfilled)
    assert (run.status, run.cause) == ("SUCCEEDED", "trigger: 30 rows written")
    assert kilometres(backfilled) == 30
    write(backfilled, 30, 40)
    with connect(backfilled.lake.root) as connection:
        connection.open_table("flights").backfill("km", where="id < 5")  # by hand: it answers for no trigger
    assert kilometres(backfilled) == 30
    backfilled.agent().once()
    assert len(backfills(backfilled)) == 2 and kilometres(backfilled) == 30  # too few rows
    write(backfilled, 40, 60)
    backfilled.agent().once()
    [run, *_] = backfills(backfilled)
    assert (run.status, run.cause) == ("SUCCEEDED", "trigger: 30 rows written") and kilometres(backfilled) == 60


def test_a_run_that_nobody_starts_is_overdue_once_its_grace_is_over(backfilled: Watched) -> None:
    attach(backfilled, columns="km")
    watch = Watch(open_store(backfilled.lake.root), backfilled.lake.root, grace=600)
    now = round(time.time() * 1000)

    def label(after: int) -> list[str]:
        return [each.label for seen in watch.look(now + after).tables.values() for each in seen.service_statuses]

    assert [label(after) for after in (1000, 500_000, 700_000)] == [["DUE"], ["DUE"], ["OVERDUE"]]
    BACKFILL.run(backfilled.lake.root, "flights", engine="driver")
    assert label(700_001) == ["OK"]


def test_a_paused_service_waits_until_it_is_resumed(backfilled: Watched) -> None:
    attach(backfilled, columns="km")
    management.pause(opened(backfilled), "BACKFILL")
    agent = backfilled.agent()
    agent.once()
    assert not backfills(backfilled)
    management.resume(opened(backfilled), "BACKFILL")
    backfilled.agent().once()
    assert [each.status for each in backfills(backfilled)] == ["SUCCEEDED"] and kilometres(backfilled) == 30


def begun(watched: Watched) -> tuple[threading.Thread, list[BackfillResult | Interrupted]]:
    """A run of the service that has begun to call the function."""
    ended: list[BackfillResult | Interrupted] = []

    def run() -> None:
        try:
            ended.append(BACKFILL.run(watched.lake.root, "flights", engine="driver"))
        except Interrupted as interrupted:
            ended.append(interrupted)

    thread = threading.Thread(target=run)
    thread.start()
    assert BEGUN.wait(300)
    return thread, ended


def open_run(watched: Watched, holds: Callable[[Run], bool]) -> Run:
    until(lambda: any(map(holds, backfills(watched))))
    return next(filter(holds, backfills(watched)))


def test_a_running_run_is_paused_and_resumed(backfilled: Watched) -> None:
    attach(backfilled)
    thread, ended = begun(backfilled)
    management.pause(opened(backfilled), "BACKFILL")
    OVER.set()
    run = open_run(backfilled, lambda each: each.status == "RUNNING")
    thread.join(0.3)
    management.resume(opened(backfilled), "BACKFILL")
    thread.join(300)
    assert [type(each) for each in ended] == [BackfillResult]
    assert [(each.run_id, each.status) for each in backfills(backfilled)] == [(run.run_id, "SUCCEEDED")]


def test_a_running_run_is_cancelled_and_the_next_resumes_it(backfilled: Watched) -> None:
    attach(backfilled, commit_granularity="1", concurrency="1")
    thread, ended = begun(backfilled)
    run = open_run(backfilled, lambda each: each.status == "RUNNING")
    cancel_run(backfilled.lake.store, backfilled.table_id, run.run_id, reason="a test")
    OVER.set()
    thread.join(300)
    assert [each.status for each in backfills(backfilled)] == ["CANCELLED"] and len(ended) == 1
    assert kilometres(backfilled) == 30  # of the column before it, which was done
    done = BACKFILL.run(backfilled.lake.root, "flights", engine="driver")
    assert [each.column for each in done.columns] == ["twice"]
