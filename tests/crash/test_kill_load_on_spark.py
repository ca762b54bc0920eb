"""A load of columns on Spark whose driver or worker is killed: the next run with its job id ends it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from deployer.table import connect
from tests import forks
from tests.columns.rows import SCHEMA, rows, source
from tests.crash.test_kill_load_columns import DEPLOYER, WORKER, clean, end_dead_run
from tests.tables.lakes import Lake

pytestmark = [pytest.mark.full, pytest.mark.spark, pytest.mark.own_session]

DRIVER = ("columns.run.claimed", "columns.spark.joined", "columns.commit.after-lance")
TASKS = ("columns.part.saved", "columns.run.written", "columns.task.saved")


def load(root: str, path: str, failpoint: str = "") -> tuple[int, str]:
    environment = {**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER)}
    done = forks.run([sys.executable, WORKER, root, path, "monday", "spark"], env=environment, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "point", [DRIVER[0], TASKS[2], *(pytest.param(each, marks=pytest.mark.slow) for each in (*DRIVER[1:], *TASKS[:2]))]
)
def test_kill_load_on_spark(point: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.table(SCHEMA, row_keys=("id",), splits=())
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start in (0, 10, 20):
            table.add(rows(start, start + 10))
        path = str(lake.file(source(range(100))))
        code, err = load(lake.root, path, point)
        if point in DRIVER:
            assert code == -signal.SIGKILL, err
            end_dead_run(lake)
        else:  # a local session does not try a task again
            assert code == 1 and "the Spark job failed" in err, err
            made = [each.name for each in (Path(lake.root) / "_work").rglob("*") if each.is_file()]
            assert "job" in made and (len(made) > 1 or point == "columns.run.written")
        clean(lake.root)
        code, err = load(lake.root, path)
        assert code == 0, err
        clean(lake.root)
        found = sorted(table.to_arrow(["id", "embedding", "label"]).to_pylist(), key=lambda row: row["id"])
        assert found == source(range(30)).select(["id", "embedding", "label"]).to_pylist()
        state = lake.open().opened.state
        assert not state.intents and "monday" in state.jobs
        assert not [each for each in (Path(lake.root) / "_work").rglob("*") if each.is_file()]
