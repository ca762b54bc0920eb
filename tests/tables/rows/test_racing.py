"""Processes that change rows of one table at once: no change is lost, and no key is inserted twice."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from deployer.errors import Conflict
from deployer.services.kinds.compact import compact_table
from deployer.table import connect
from tests import forks
from tests.projects import REPOSITORY
from tests.tables.lakes import Lake
from tests.tables.rows.racing_worker import COUNTER
from tests.tables.rows.test_delete import differences

WORKER = str(Path(__file__).with_name("racing_worker.py"))
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("value", pa.int64())])


def race(lake: Lake, processes: int, times: int, row_keys: tuple[str, ...]) -> None:
    lake.table(SCHEMA, row_keys=row_keys, splits=((50,), (1500,)), name="rows")
    on = "id"
    with connect(lake.root) as connection:
        connection.open_table("air.rows").merge([{"id": COUNTER, "value": 0}], on)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    running = [
        forks.Popen([sys.executable, WORKER, lake.root, str(number), str(times)], env=environment)
        for number in range(processes)
    ]
    while any(each.poll() is None for each in running):
        with suppress(Conflict):  # changes of rows may always be first
            compact_table(lake.root, "air.rows", {"target_rows": 1000})
        with suppress(subprocess.TimeoutExpired):
            running[0].wait(timeout=0.3)
    assert [each.wait(timeout=300) for each in running] == [0] * processes
    rows = lake.open("rows").scan().to_table().to_pylist()
    assert [row["value"] for row in rows if row["id"] == COUNTER] == [processes * times]
    found = Counter(row["id"] for row in rows)
    assert {found[step] for step in range(times)} == {1}
    assert {found[2000 + number] for number in range(processes)} == {times}
    assert differences(lake) == [] and not lake.open("rows").opened.state.intents


def test_no_change_is_lost(lake: Lake) -> None:
    race(lake, 2, 4, ("id",))


@pytest.mark.full
def test_no_change_of_many_is_lost(lake: Lake) -> None:
    race(lake, 4, 15, ("id",))
