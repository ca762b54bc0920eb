"""A change of rows killed between two side effects: it is there as a whole or not at all, and done once."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pytest

from deployer.state import open_store
from deployer.tables.maintenance.verify.verify import repair, verify
from tests import forks
from tests.crash.rows_worker import JOBS
from tests.tables.lakes import Lake, flights, sorted_rows

WORKER = str(Path(__file__).with_name("rows_worker.py"))
DEPLOYER = Path(__file__).resolve().parents[2]
ROWS = 300
POINTS = (
    "tables.rows.before-intent",
    "tables.rows.before-lance",
    "tables.rows.after-lance",
    "tables.rows.after-state",
)
EVERY_PASS = [(point, number) for point in POINTS for number in (1, 2, 3)]


def work(root: str, failpoint: str = "") -> tuple[int, list[str]]:
    environment = {**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER)}
    done = forks.run([sys.executable, WORKER, root], env=environment, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout.split()


def expected(jobs: int) -> list[dict[str, Any]]:
    rows = flights(ROWS).to_pylist()
    for _, after in [*JOBS.values()][:jobs]:
        rows = after(rows)
    return sorted(rows, key=repr)


def check(lake: Lake, point: str, number: int) -> None:
    lake.table()
    lake.ingest(lake.file(flights(ROWS)), job_id="load")
    code, acknowledged = work(lake.root, f"{point}@{number}")
    assert code == -signal.SIGKILL and len(acknowledged) == number - 1
    with closing(open_store(lake.root)) as store:
        assert not [step for step in repair(store, lake.root, now=1 << 50, grace=0) if step.left]
        assert [str(one) for each in verify(store, lake.root, full=True) for one in each.differences] == []
    done = number - 1 + (point in POINTS[2:])
    opened = lake.open().opened
    assert sorted_rows(lance.dataset(opened.location).to_table()) == expected(done)
    assert list(opened.state.jobs) == ["load", *(f"rows-{i}" for i in range(done))] and not opened.state.intents
    code, acknowledged = work(lake.root)
    assert code == 0 and sorted_rows(lake.open().scan().to_table()) == expected(len(JOBS))
    assert list(lake.open().opened.state.jobs) == ["load", *(f"rows-{i}" for i in range(len(JOBS)))]


@pytest.mark.parametrize("point", POINTS)
def test_a_change_that_is_killed_is_whole_or_not_there(tmp_path: Path, point: str) -> None:
    check(Lake(tmp_path), point, 3)


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize(("point", "number"), EVERY_PASS, ids=[f"{point}-{number}" for point, number in EVERY_PASS])
def test_a_change_that_is_killed_at_any_pass_is_whole_or_not_there(tmp_path: Path, point: str, number: int) -> None:
    check(Lake(tmp_path), point, number)
