"""Jobs of Spark of which a process is killed while the driver lives on: each row is there once, after Spark repeated
the task, or the job was run again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from deployer.datasets.files.unreferenced_files import WRITING
from tests.spark.sessions import (
    Kill,
    Step,
    collect_files,
    files_left,
    its_executor,
    kill_at_stops,
    nobody,
)
from tests.spark.test_kill_driver import APPEND_POINTS, TASK_POINTS, UPSERT_POINTS, after, at, stream, write
from tests.spark.test_writes import rows_in
from tests.tables.lakes import Lake, flights

pytestmark = [pytest.mark.spark, pytest.mark.own_session]


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("write", "append"),
        pytest.param("stream", "upsert", marks=pytest.mark.slow),
        pytest.param("stream", "append", marks=pytest.mark.slow),
        pytest.param("write", "upsert", marks=pytest.mark.slow),
        pytest.param("write", "overwrite", marks=pytest.mark.slow),
    ],
)
def test_python_that_is_killed_at_each_point(lake: Lake, kind: str, mode: str) -> None:
    """In one session: a task that is killed is repeated by Spark; a job whose commit is killed fails, and is run
    again."""
    lake.table()
    points = APPEND_POINTS if mode == "append" else UPSERT_POINTS
    steps, kills, expected = list[Step](), dict[int, Kill](), list[bool]()
    model = after("append", [], flights(0))
    for number, point in enumerate(points):
        rows = flights(20, (20 if mode == "append" else 10) * number)
        step = write(lake, rows, str(number), mode) if kind == "write" else stream(lake, rows, upsert=mode == "upsert")
        kills[len(steps)] = Kill()
        steps.append(at(step, point))
        expected.append(point in TASK_POINTS)
        if point not in TASK_POINTS:
            steps.append(step)
            expected.append(True)
        model = after(mode, model, rows)
    ended = kill_at_stops(lake, steps, kills)
    assert [each == "ended" for each in ended] == expected, ended
    assert rows_in(lake) == model and not lake.open().opened.state.intents
    left = files_left(lake)
    scopes = {Path(each).name.partition(".")[0] for each in left if each.startswith(WRITING)}
    if kind == "stream":  # but for the file that a task had not noted yet
        assert not scopes and len([each for each in left if each.startswith("data/")]) <= 1, left
    else:
        assert len(scopes) <= 1, left  # of the commit that was killed when it had been begun, and was not made
    collect_files(lake)
    assert not files_left(lake) and rows_in(lake) == model


def test_an_aborted_job_leaves_no_file(lake: Lake) -> None:
    lake.table()
    steps = [
        at(write(lake, flights(20), "a"), "spark.commit.checked"),
        at(write(lake, flights(20), "b"), "spark.task.file-noted"),  # each attempt
        at(write(lake, flights(20), "c"), "spark.task.written"),
    ]
    ended = kill_at_stops(lake, steps, {0: Kill(), 1: Kill(times=100), 2: Kill(times=100)})
    assert "ended" not in ended
    assert rows_in(lake) == [] and not files_left(lake)


def test_executors_that_are_killed_and_tasks_that_run_twice(lake: Lake) -> None:
    """With two executors and speculation: one is killed in a task; a task takes forever, so that Spark runs it again
    beside; and so in streams."""
    lake.table()
    steps, kills, model = list[Step](), dict[int, Kill](), after("append", [], flights(0))

    def add(step: Step, rows: pa.Table, point: str, kill: Kill, mode: str = "append") -> None:
        nonlocal model
        kills[len(steps)] = kill
        steps.append(at({**step, "tasks": 4}, point))
        model = after(mode, model, rows)

    rows = flights(40)
    add(write(lake, rows, "executor"), rows, TASK_POINTS[1], Kill(its_executor))
    rows = flights(40, 200)
    add(write(lake, rows, "twice"), rows, TASK_POINTS[2], Kill(nobody))
    rows = flights(40, 180)
    add(stream(lake, rows, upsert=True), rows, TASK_POINTS[2], Kill(its_executor), "upsert")
    rows = flights(40, 240)
    add(stream(lake, rows), rows, TASK_POINTS[1], Kill(nobody))
    ended = kill_at_stops(lake, steps, kills, cluster=True)
    assert ended == ["ended"] * len(steps), ended
    assert rows_in(lake) == model
    assert {each for each in files_left(lake) if not each.startswith("data/")} == set()
    collect_files(lake)
    assert not files_left(lake) and rows_in(lake) == model
