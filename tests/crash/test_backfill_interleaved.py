"""Backfills that are killed again and again, beside loads, deletions, COMPACT, CLUSTER and CLEAN: for minutes.

The driver is killed between two side effects or in a call, the process of the function in a call, and a worker of Spark
in a task. At the end the table has all rows of a model with their values, and the function was called again only for
what no checkpoint held, or for files that were rewritten before they were committed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.errors import Conflict, Refused
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.state.model.files.computed_by import definitions_of
from deployer.table import Table, connect
from tests.columns.backfill.functions import CALLS, MORTAL, calls
from tests.columns.rows import SCHEMA, values
from tests.columns.rows import rows as rows_between
from tests.crash.interleaved_worker import STOPPED
from tests.crash.test_kill_backfill import POINTS
from tests.crash.test_kill_load_columns import DEPLOYER, clean, end_dead_run
from tests.tables.lakes import Lake

pytestmark = [pytest.mark.slow, pytest.mark.full]

WORKER = str(Path(__file__).with_name("interleaved_worker.py"))
ROUNDS = 24  #: kills, most of which have a run to kill
CHECKPOINT, TASKS = 10, 2  #: rows of a checkpoint of the worker, and its tasks at the same time


@dataclass
class Model:
    """What the table is to have, and how often rows may have been computed again."""

    lake: Lake
    table: Table
    chance: random.Random
    ids: set[int] = field(default_factory=set)
    next_id: int = 0
    repeats: int = 0

    def add(self) -> None:
        number = self.chance.choice([5, 40, 150])
        added = rows_between(self.next_id, self.next_id + number)
        self.table.add(added.append_column("score", pa.nulls(number, pa.float64())))
        self.ids |= {*range(self.next_id, self.next_id + number)}
        self.next_id += number

    def delete(self) -> None:
        gone = set(self.chance.sample(sorted(self.ids), 5))
        self.table.delete(f"id in ({', '.join(map(str, sorted(gone)))})")
        self.ids -= gone

    def compact(self) -> None:
        compact_table(self.lake.root, "flights", {"min_files": 2})

    def cluster(self) -> None:
        cluster_table(self.lake.root, "flights", {"columns": [self.chance.choice(["rating", "name"])]})

    def clean(self) -> None:
        clean_table(self.lake.root, "flights", {"older_than": "0d"})

    def step(self) -> None:
        """Makes one change; a service that a run excludes changes nothing."""
        steps: list[Callable[[], None]] = [self.add, self.add, self.delete, self.compact, self.cluster, self.clean]
        chosen = self.chance.choice(steps)
        if chosen == self.add:
            self.add()
            return
        try:
            chosen()
        except (Conflict, Refused):
            assert chosen != self.delete

    @property
    def largest_file(self) -> int:
        return max((file.rows for file in self.lake.open().opened.state.files), default=0)


def start(lake: Lake, job: str, engine: str, place: str, failpoint: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "DEPLOYER_FAILPOINT": failpoint, "PYTHONPATH": str(DEPLOYER)}
    command = [sys.executable, WORKER, lake.root, job, engine, place]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.parametrize("seed", [1])
def test_kills_beside_all_other_changes(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CALLS, str(tmp_path / "calls"))
    monkeypatch.setenv(MORTAL, str(tmp_path / "mortal"))
    lake = Lake(tmp_path)
    lake.table(pa.schema([*SCHEMA, pa.field("score", pa.float64())]), row_keys=("id",), splits=())
    seen = Counter[str]()
    with connect(lake.root) as connection:
        model = Model(lake, connection.open_table("flights"), random.Random(seed))  # noqa: S311 (repeatable)
        for _ in range(4):
            model.add()
        job = 0
        for number in range(ROUNDS):
            engine = "spark" if number % 10 == 7 else "driver"
            kind = model.chance.choice(["between", "driver", "child"]) if engine == "driver" else "task of Spark"
            failpoint = f"{model.chance.choice(POINTS)}@{model.chance.choice([1, 2, 5])}" if kind == "between" else ""
            if not failpoint:
                (tmp_path / "mortal").touch()
            largest = model.largest_file
            ran = start(lake, f"job-{job}", engine, "child" if kind == "child" else "here", failpoint)
            while ran.poll() is None:
                model.step()
                largest = max(largest, model.largest_file)
            told = ran.communicate()[1]
            assert ran.returncode in (0, -signal.SIGKILL, STOPPED), told
            seen[f"{kind}: {'done' if ran.returncode == 0 else 'ended'}"] += 1
            if ran.returncode == 0:
                job += 1
            else:
                end_dead_run(lake)
            # A task repeats a checkpoint; a file that is rewritten before its values are committed, all of its rows.
            model.repeats += TASKS * CHECKPOINT + TASKS * largest
            (tmp_path / "mortal").unlink(missing_ok=True)
            model.step()
        ran = start(lake, f"job-{job}", "driver", "here", "")
        told = ran.communicate()[1]
        assert ran.returncode == 0, told
        assert values(model.table, "score") == {i: i * 2 + 1.0 for i in model.ids}
        clean(lake.root)
        state = lake.open().opened.state
        field_id = {each.name(): each.id() for each in lake.open().opened.dataset().lance_schema.fields()}["score"]
        assert {len(definitions_of(file.computed)[field_id]) for file in state.files} == {1}
    repeated = sum(count - 1 for count in Counter(calls()).values())
    sys.stdout.write(f"{dict(seen)}; {len(model.ids):,} rows, {len(calls()):,} calls, {repeated:,} repeated\n")
    assert {*calls()} >= model.ids and repeated <= model.repeats
    assert any(each.endswith("ended") for each in seen)
