"""A restore killed between two side effects: the table is unchanged, or as it was then; the next run ends it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from deployer.datasets.recovery.restored_together import end_dead_restores
from deployer.errors import Conflict
from deployer.platform.system.clock import Clock
from deployer.runs.records import runs_of
from deployer.services.savepoints.savepoints import make_savepoint
from deployer.tables.evolution.rewrite.truncate import reinitialise_table
from tests import forks
from tests.crash.test_kill_compact import clean as verified
from tests.crash.test_kill_compact import end_dead_run
from tests.tables.lakes import Lake, flights, sorted_rows

pytestmark = pytest.mark.full

WORKER = str(Path(__file__).with_name("restore_worker.py"))
DEPLOYER = Path(__file__).resolve().parents[2]
#: Each point, and whether the rows of then are there after it: in place, and where the table was emptied since.
POINTS = {
    "services.savepoint.tagged": (False, False),
    "services.restore.before-intent": (False, False),
    "services.restore.before-lance": (False, False),
    "services.restore.after-lance": (True, False),
    "services.restore.after-state": (True, True),
}


def work(root: str, failpoint: str = "") -> tuple[int, str]:
    environment = {**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER)}
    done = forks.run([sys.executable, WORKER, root], env=environment, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize("rewritten", [False, True], ids=["in-place", "rewritten"])
@pytest.mark.parametrize("point", POINTS)
def test_a_restore_that_is_killed_is_whole_or_not_there(tmp_path: Path, point: str, rewritten: bool) -> None:
    lake = Lake(tmp_path)
    lake.table()
    lake.ingest(lake.file(flights(60)))
    table_id = lake.open().opened.entry.table_id
    make_savepoint(lake.store, lake.root, [lake.open().opened.entry], "then")
    if rewritten:
        reinitialise_table(lake.store, lake.root, table_id, allow_destroy=True)
    lake.ingest(lake.file(flights(40, 60)), job_id="second")
    then, now = sorted_rows(flights(60)), sorted_rows(flights(40, 60) if rewritten else flights(100))
    assert work(lake.root, point)[0] == -signal.SIGKILL
    verified(lake.root)
    there = POINTS[point][rewritten]
    assert sorted_rows(lake.open().scan().to_table()) == (then if there else now)
    if point != "services.savepoint.tagged":
        end_dead_run(lake)
    code, status = work(lake.root)
    assert (code, status.strip()) == (0, "SKIPPED" if there else "SUCCEEDED")
    verified(lake.root)
    assert sorted_rows(lake.open().scan().to_table()) == then
    assert lake.ingest(lake.file(flights(40, 60)), job_id="second").rows == 40
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(100))
    verified(lake.root)
    assert all(not run.is_open for run in runs_of(lake.store.table(table_id)))


def test_a_dead_restore_keeps_loads_off_until_its_lease_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(tmp_path)
    lake.table()
    make_savepoint(lake.store, lake.root, [lake.open().opened.entry], "then")
    lake.ingest(lake.file(flights(60)))
    assert work(lake.root, "services.restore.before-lance")[0] == -signal.SIGKILL
    file = lake.file(flights(40, 60))
    with pytest.raises(Conflict, match="being restored"):
        lake.ingest(file, job_id="later")
    state = lake.store.table(lake.open().opened.entry.table_id)
    assert not end_dead_restores(lake.store, lake.root, state)
    later = Clock().now() + 120_000
    monkeypatch.setattr("deployer.datasets.recovery.restored_together.Clock", lambda: Clock(now=lambda: later))
    with pytest.raises(Conflict, match="run the ingest again"):
        lake.ingest(file, job_id="later")
    assert lake.ingest(file, job_id="later").rows == 40
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(flights(100))
