"""Runs of EXPIRE: killed and run again, cancelled, on Spark, and asked for by its schedule."""

from __future__ import annotations

import datetime as dt
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import Interrupted
from deployer.platform.system.progress import Progress, no_progress
from deployer.runs.records import fail_dead_runs, runs_of
from deployer.runs.rewriting.row_tasks import run_with_spark
from deployer.services.agent.watch import Watch
from deployer.services.api.attachments import create_service
from deployer.services.kinds.expire import expire_table
from deployer.services.kinds.expire.job import expire
from deployer.state import open_store
from deployer.state.model.services import Run, Service
from deployer.tables.open_table import open_to_change
from tests import forks
from tests.services.test_expire import AT, ids, table
from tests.tables.lakes import Lake

POINTS = ("tables.rows.before-intent", "tables.rows.before-lance", "tables.rows.after-lance", "tables.rows.after-state")
DAY = 86_400_000


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def runs(lake: Lake) -> tuple[Run, ...]:
    with closing(open_store(lake.root)) as store:
        return tuple(runs_of(store.table(lake.open().opened.entry.table_id), "EXPIRE"))


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "by value"])
def test_a_run_that_was_killed_is_finished_by_the_next(lake: Lake, point: str, keyed: bool) -> None:
    table(lake, pa.date32(), ("day", "id") if keyed else ())
    before = ids(lake)
    command = [sys.executable, "-m", "tests.services.expire_worker", lake.root, str(AT)]
    assert forks.run(command, env={**os.environ, "DEPLOYER_FAILPOINT": point}).returncode < 0
    left = set(range(31)) | (set() if keyed else {1000})
    assert ids(lake) == (left if point in POINTS[2:] else before)
    with closing(open_store(lake.root)) as store:
        fail_dead_runs(store, lake.open().opened.entry.table_id, 1 << 50)
    done = expire_table(lake.root, "flights", now=AT)
    assert ids(lake) == left and done.status == ("SKIPPED" if point in POINTS[2:] else "SUCCEEDED")
    assert [each.status for each in runs(lake)] == [done.status, "FAILED"]
    assert not lake.open().opened.state.intents or point == POINTS[1]


def test_a_run_that_is_cancelled_removes_nothing(lake: Lake) -> None:
    opened = table(lake, pa.date32()).opened
    seen: list[Progress] = []

    def stop(now: Progress) -> None:
        seen.append(now)
        if now.unit == "tasks":
            raise Interrupted("cancelled by a person")

    with pytest.raises(Interrupted, match="cancelled by a person"):
        expire_table(lake.root, "flights", now=AT, on_progress=stop)
    assert seen[-1].total == 1 and len(ids(lake)) == 61
    [run] = runs(lake)
    assert (run.status, "cancelled by a person" in run.reason) == ("CANCELLED", True)
    assert lake.open().opened.state.lance_version == opened.state.lance_version
    assert not [*Path(opened.location).glob("_deletions/*")]


@pytest.mark.spark
@pytest.mark.parametrize("keyed", [True, False], ids=["by key", "by value"])
@pytest.mark.parametrize("held", [True, False], ids=["with a hold", "without holds"])
def test_tasks_of_spark_find_the_same_rows(lake: Lake, spark: Any, keyed: bool, held: bool) -> None:
    holds: Any = [{"name": "audit", "where": "id % 10 = 5"}] if held else []
    table(lake, pa.timestamp("us", "UTC"), ("day", "id") if keyed else (), holds=holds)
    opened = open_to_change(lake.root, "flights")

    def tasks(_: Any, tasks: Any, /) -> Any:
        return run_with_spark(spark, tasks, no_progress)

    foreseen = expire(opened, dry_run=True, now=AT, run_tasks=tasks)
    done = expire(opened, now=AT, run_tasks=tasks)
    stay = {35, 45, 55} if held else set()
    assert ids(lake) == {*range(31), *stay, *(() if keyed else (1000,))}
    assert done.rows == foreseen.rows == 29 - len(stay)


@pytest.mark.spark
def test_a_run_may_be_told_to_use_spark(lake: Lake, spark: Any) -> None:
    table(lake, pa.date32())
    assert expire_table(lake.root, "flights", now=AT, engine="spark").rows == 29
    assert ids(lake) == {*range(31), 1000}


def test_a_schedule_asks_for_a_run_and_a_missed_one_is_overdue(lake: Lake) -> None:
    opened = table(lake, pa.date32(), ("day", "id")).opened
    with closing(open_store(lake.root)) as store:
        service = Service("EXPIRE", "AUTOMATIC", {"schedule": "0 2 * * *"})
        create_service(store, opened.entry.table_id, service)
        watch = Watch(store, lake.root)
        now = round(dt.datetime.now(dt.UTC).timestamp() * 1000)
        [seen] = watch.look(now).tables.values()
        [status] = seen.service_statuses
        assert (status.label, seen.due) == ("OK", ()) and status.next_at is not None
        assert dt.datetime.fromtimestamp(status.next_at / 1000, dt.UTC).strftime("%H:%M") == "02:00"
        [due] = watch.look(status.next_at).tables[opened.entry.table_id].due
        assert (due.service, due.cause) == ("EXPIRE", "schedule")
        [late] = watch.look(status.next_at + DAY // 2).tables[opened.entry.table_id].service_statuses
        assert late.label == "OVERDUE"
