"""A merge of more rows than a part has, killed anywhere: it is there as a whole or not at all, and done once."""

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
from deployer.tables.rows.merging.rules import MergeRules
from tests import forks
from tests.crash.merge_worker import JOB, source
from tests.tables.lakes import Lake, flights, sorted_rows
from tests.tables.rows.test_merge import merged

pytestmark = pytest.mark.full

WORKER = str(Path(__file__).with_name("merge_worker.py"))
DEPLOYER = Path(__file__).resolve().parents[2]
ROWS = 300
DRIVER = (
    "tables.merge.rows-stored",
    "tables.merge.rows-stored@3",
    "tables.merge.rows-checked",
    "tables.merge.parts-merged",
    "tables.rows.before-intent",
    "tables.rows.before-lance",
    "tables.rows.after-lance",
    "tables.rows.after-state",
)
PARTS = ("tables.merge.part-written", "tables.merge.part-written@2", "tables.merge.part-written@5")
COMMITTED = ("tables.rows.after-lance", "tables.rows.after-state")


def merge(root: str, engine: str, failpoint: str = "") -> tuple[int, str]:
    environment = {**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER)}
    done = forks.run([sys.executable, WORKER, root, engine], env=environment, text=True)
    return done.returncode, done.stderr


def check(lake: Lake, rows: list[dict[str, Any]]) -> None:
    """Nothing is left beside the rows once garbage is collected."""
    with closing(open_store(lake.root)) as store:
        assert not [step for step in repair(store, lake.root, now=1 << 50, grace=0) if step.left]
        assert [str(one) for each in verify(store, lake.root, full=True) for one in each.differences] == []
    opened = lake.open().opened
    assert sorted_rows(lance.dataset(opened.location).to_table()) == rows
    assert not opened.state.intents


def check_killed(folder: Path, engine: str, point: str) -> None:
    lake = Lake(folder)
    lake.table()
    lake.ingest(lake.file(flights(ROWS)), job_id="load")
    before = sorted_rows(flights(ROWS))
    after = merged(flights(ROWS).to_pylist(), source().to_pylist(), MergeRules())
    code, err = merge(lake.root, engine, point)
    if engine == "spark" and point in PARTS:  # a worker is killed, and the driver fails
        assert code == 1 and "the Spark job failed" in err, err
    else:
        assert code == -signal.SIGKILL, err
    check(lake, after if point in COMMITTED else before)
    for _ in range(2):
        code, err = merge(lake.root, engine)
        assert code == 0, err
        check(lake, after)
    assert list(lake.open().opened.state.jobs) == ["load", JOB]


@pytest.mark.parametrize("point", [*DRIVER, *PARTS])
def test_a_merge_in_parts_that_is_killed(tmp_path: Path, point: str) -> None:
    check_killed(tmp_path, "driver", point)


@pytest.mark.spark
@pytest.mark.own_session
@pytest.mark.parametrize(
    "point",
    [PARTS[0], *(pytest.param(each, marks=pytest.mark.slow) for each in DRIVER[2:])],
)
def test_a_merge_by_tasks_of_spark_that_is_killed(tmp_path: Path, point: str) -> None:
    check_killed(tmp_path, "spark", point)
