"""A load of columns killed between two side effects: the next run with its job id ends it as an undisturbed one."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import closing
from pathlib import Path

import pytest

from deployer.columns.fill import commit as fill_commit
from deployer.runs.records import fail_dead_runs, runs_of
from deployer.services.kinds.compact import compact_table
from deployer.state import open_store
from deployer.state.log.updates import CommitStarted
from deployer.table import connect
from deployer.tables.maintenance.verify.verify import repair, verify
from tests import forks
from tests.columns.rows import SCHEMA, rows, source
from tests.tables.lakes import Lake

pytestmark = pytest.mark.full

WORKER = str(Path(__file__).with_name("load_columns_worker.py"))
DEPLOYER = Path(__file__).resolve().parents[2]
POINTS = (
    "columns.run.prepared",
    "tables.schema.before-lance",
    "tables.schema.after-lance",
    "tables.schema.after-state",
    "columns.run.added",
    "columns.run.claimed",
    "columns.part.before",
    "columns.part.saved",
    "columns.run.written",
    "columns.run.saved",
    "columns.commit.before-intent",
    "columns.commit.before-lance",
    "columns.commit.after-lance",
    "columns.commit.after-state",
    "columns.run.recorded",
)
ONCE = {"columns.run.prepared", "columns.run.added", "columns.run.recorded"}
PASSES = [(point, number) for point in POINTS for number in (1, 2, 3) if point not in ONCE or number == 1]
PASSES = [(point, number) for point, number in PASSES if not point.startswith("tables.schema") or number < 3]


def load(root: str, path: str, failpoint: str = "") -> int:
    environment = {**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER)}
    done = forks.run([sys.executable, WORKER, root, path, "monday"], env=environment, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def clean(root: str) -> None:
    with closing(open_store(root)) as store:
        assert not [step for step in repair(store, root, now=1 << 50, grace=0) if step.left]
        assert [str(one) for each in verify(store, root, full=True) for one in each.differences] == []


def end_dead_run(lake: Lake) -> None:
    """What the next run does by itself once the lease is over, which these tests do not wait for."""
    table_id = lake.open().opened.entry.table_id
    for run in [run for run in runs_of(lake.store.table(table_id)) if run.is_open]:
        assert run.lease_until is not None
        fail_dead_runs(lake.store, table_id, run.lease_until + 1)


def test_the_next_run_ends_commits_of_processes_that_died(tmp_path: Path) -> None:
    """Its own earlier runs' at once, and others' after ten minutes: nothing else has to clean up."""
    lake = Lake(tmp_path)
    table_id = lake.table(SCHEMA, row_keys=("id",), splits=()).opened.entry.table_id
    path = str(lake.file(source(range(100))))
    with connect(lake.root) as connection:
        connection.open_table("flights").add(rows(0, 10))
    assert load(lake.root, path, "columns.commit.before-lance") == -signal.SIGKILL
    lake.store.commit(table_id, [CommitStarted("recent", "ingest", 1), CommitStarted("old", "ingest", 1)])
    intents = lake.store.table(table_id).intents
    assert len(intents) == 3
    end_dead_run(lake)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fill_commit, "dead_loads", lambda state, now: [each for each in state.intents if each == "old"])
        with connect(lake.root) as connection:
            connection.open_table("flights").load_columns(path, "id", ["embedding", "label"], job_id="monday")
    assert [*lake.store.table(table_id).intents] == ["recent"]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("others", ["alone", "beside others"])
@pytest.mark.parametrize(("point", "number"), PASSES)
def test_kill_load_columns(point: str, number: int, others: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    lake.table(SCHEMA, row_keys=("id",), splits=())
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start in (0, 10, 20):
            table.add(rows(start, start + 10))
        path = str(lake.file(source(range(100))))
        assert load(lake.root, path, f"{point}@{number}") == -signal.SIGKILL
        clean(lake.root)
        end_dead_run(lake)
        ids = {*range(30)}
        if others != "alone" and point != "columns.run.recorded":  # with which the load is done
            table.add(rows(30, 40))
            compact_table(lake.root, "flights")
            ids |= {*range(30, 40)}
        assert load(lake.root, path) == 0
        clean(lake.root)
        found = sorted(table.to_arrow(["id", "embedding", "label"]).to_pylist(), key=lambda row: row["id"])
        assert found == source(sorted(ids)).select(["id", "embedding", "label"]).to_pylist()
        state = lake.open().opened.state
        assert not state.intents and "monday" in state.jobs
        assert [*(Path(lake.root) / "_work").rglob("fragment-*")] == [] or point == "columns.run.recorded"
