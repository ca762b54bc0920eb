"""A backfill killed between two side effects: the next run with its job id calls the function for what no checkpoint
holds, and ends it as an undisturbed one."""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.state.model.files.computed_by import definitions_of
from deployer.table import connect
from tests import forks
from tests.columns.backfill.functions import CALLS, calls
from tests.columns.rows import SCHEMA, rows, values
from tests.crash.test_kill_load_columns import DEPLOYER, clean, end_dead_run
from tests.tables.lakes import Lake

pytestmark = pytest.mark.full

WORKER = str(Path(__file__).with_name("backfill_worker.py"))
CHECKPOINT = 4  #: rows of a checkpoint of the worker
POINTS = (
    "columns.backfill.before-call",
    "columns.backfill.after-call",
    "columns.part.before",
    "columns.part.saved",
    "columns.run.prepared",
    "columns.run.claimed",
    "columns.run.written",
    "columns.run.saved",
    "columns.commit.before-intent",
    "columns.commit.before-lance",
    "columns.commit.after-lance",
    "columns.commit.after-state",
    "columns.run.recorded",
    "columns.backfill.filled",
)
ONCE = {"columns.run.recorded", "columns.backfill.filled"}
PASSES = [(point, number) for point in POINTS for number in (1, 3) if point not in ONCE or number == 1]
PASSES = [(point, 2 if point == "columns.run.prepared" and number == 3 else number) for point, number in PASSES]


def rows_of(start: int, stop: int) -> pa.Table:
    return rows(start, stop).append_column("score", pa.nulls(stop - start, pa.float64()))


def backfill(lake: Lake, failpoint: str = "") -> int:
    environment = {**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER)}
    done = forks.run([sys.executable, WORKER, lake.root, "monday"], env=environment, text=True)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


@pytest.mark.thinned(2)
@pytest.mark.parametrize("others", ["alone", "beside others"])
@pytest.mark.parametrize(("point", "number"), PASSES)
def test_kill_backfill(point: str, number: int, others: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CALLS, str(tmp_path / "calls"))
    lake = Lake(tmp_path)
    lake.table(pa.schema([*SCHEMA, pa.field("score", pa.float64())]), row_keys=("id",), splits=())
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for start in (0, 10, 20):
            table.add(rows_of(start, start + 10))
        assert backfill(lake, f"{point}@{number}") == -signal.SIGKILL
        clean(lake.root)
        end_dead_run(lake)
        ids = {*range(30)}
        is_over = point in ONCE
        if others != "alone" and not is_over:
            table.add(rows_of(30, 40))
            table.delete("id in (2, 13)")
            ids = {*range(40)} - {2, 13}
            cluster_table(lake.root, "flights", {"columns": ["rating"]})
            compact_table(lake.root, "flights", {"min_files": 2})
            clean_table(lake.root, "flights", {"older_than": "0d"})
        assert backfill(lake) == 0
        clean(lake.root)
        assert values(table, "score") == {i: i * 2 + 1.0 for i in ids}
        state = lake.open().opened.state
        assert not state.intents and "monday" in state.jobs
        field = {each.name(): each.id() for each in lake.open().opened.dataset().lance_schema.fields()}["score"]
        assert {len(definitions_of(file.computed)[field]) for file in state.files} == {1}
    if others == "alone":
        repeated = sum(count - 1 for count in Counter(calls()).values())
        assert repeated <= CHECKPOINT and {*calls()} == ids
