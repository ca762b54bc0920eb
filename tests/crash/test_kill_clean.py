"""A cleaning killed between two side effects: the rows stay as they are, and the next run ends it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import lance
import pytest

from deployer.runs.records import runs_of
from deployer.services.savepoints.savepoints import take_savepoint
from deployer.state.log.updates import CommitStarted
from tests import forks
from tests.crash.test_kill_compact import clean as verified
from tests.crash.test_kill_compact import end_dead_run
from tests.tables.lakes import Lake, flights, sorted_rows

pytestmark = pytest.mark.full

WORKER = str(Path(__file__).with_name("clean_worker.py"))
DEPLOYER = Path(__file__).resolve().parents[2]


def work(root: str, failpoint: str = "") -> int:
    environment = {**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER)}
    return forks.run([sys.executable, WORKER, root], env=environment).returncode


@pytest.mark.parametrize("point", ["tables.collect.abandoned", "tables.collect.versions", "tables.collect.removed@2"])
def test_a_run_that_is_killed_leaves_every_row_and_the_next_ends_it(tmp_path: Path, point: str) -> None:
    lake = Lake(tmp_path)
    lake.table()
    for i in range(4):
        lake.ingest(lake.file(flights(20, 20 * i)))
        if i == 1:
            take_savepoint(lake.store, [lake.open().opened.entry.table_id], "half")
    opened = lake.open().opened
    lake.store.commit(opened.entry.table_id, [CommitStarted("lost", "ingest", 1)])
    strays = [Path(opened.location) / "data" / f"stray-{i}.lance" for i in range(3)]
    for stray in strays:
        stray.write_bytes(b"x")
    assert work(lake.root, point) == -signal.SIGKILL
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(80))
    verified(lake.root)
    end_dead_run(lake)
    assert work(lake.root) == 0
    verified(lake.root)
    assert not any(stray.exists() for stray in strays)
    assert [each["version"] for each in lance.dataset(opened.location).versions()] == [3, 5]
    assert lance.dataset(opened.location, version=3).count_rows() == 40
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(80))
    runs = runs_of(lake.store.table(opened.entry.table_id), "CLEAN")
    assert sorted(run.status for run in runs) == ["FAILED", "SUCCEEDED"]
