"""Refreshes that are killed at each point between two side effects, and run again under the same job id or another."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deployer.platform.system.clock import Clock
from deployer.runs.records import fail_dead_runs
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.merging.merge import merge_rows
from tests.tables.lakes import Lake
from tests.views.refresh.conftest import COUNTS, LATE, SCHEMA, Views, rows

POINTS = [
    "views.refresh.pinned",
    "views.refresh.planned",
    "views.refresh.written",
    "tables.rows.before-intent",
    "tables.rows.before-lance",
    "tables.rows.after-lance",
    "tables.rows.after-state",
    "views.refresh.committed",
]
GATE = ("views.refresh.written", "tables.rows.after-lance")


def killed(views: Views, name: str, point: str, job_id: str) -> None:
    """The refresh ends at the point as by SIGKILL; then the lease of its run is over."""
    command = [sys.executable, "-m", "tests.views.refresh.worker", views.lake.root, name, job_id]
    done = subprocess.run(command, env=os.environ | {"DEPLOYER_FAILPOINT": point}, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    fail_dead_runs(views.store, views.open(name).entry.table_id, Clock().now() + 120_000)


def check(views: Views, point: str) -> None:
    """Kills a full and an incremental refresh of a row view and of a group view."""
    for name, query in (("late", LATE), ("counts", COUNTS)):
        views.view(query, name)
        killed(views, name, point, "first")
        seen = views.rows(name)
        views.refresh(name, job_id="first")
        then = views.rows(name)
        assert seen in ([], then), "a reader sees the whole refresh or none of it"
        views.add(rows(300, 400))
        delete_rows(views.open(), "id BETWEEN 10 AND 60")
        merge_rows(views.open(), rows(90, 120, delay=3))
        killed(views, name, point, "second")
        seen = views.rows(name)
        done = views.refresh(name, job_id="third" if name == "late" else "second")
        assert done.mode == "incremental" or done.already_done or done.status == "SKIPPED"
        found = views.rows(name)
        assert seen in (then, found), "a reader sees the whole refresh or none of it"
        assert views.plan(name).mode == "none"
        views.refresh(name, full=True)
        assert found == views.rows(name), (name, point)
        delete_rows(views.open(), "id >= 300")
    assert views.rows("late") != []


@pytest.mark.parametrize(
    "point", [pytest.param(each, marks=[] if each in GATE else pytest.mark.full) for each in POINTS]
)
def test_a_killed_refresh_is_done_once(views: Views, point: str) -> None:
    check(views, point)


@pytest.mark.full
@pytest.mark.parametrize("point", POINTS)
def test_a_killed_refresh_is_done_once_on_s3(on_s3: str, tmp_path: Path, point: str) -> None:
    lake = Lake(tmp_path, on_s3)
    lake.table(SCHEMA, row_keys=("id",), splits=())
    views = Views(lake)
    for start in (0, 100, 200):
        views.add(rows(start, start + 100))
    check(views, point)
    lake.store.close()
