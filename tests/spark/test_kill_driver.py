"""A job of Spark whose driver is killed with all of its processes: once it has run again, each row is there once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.sessions import Step, collect_files, files_left, kill_driver_at_stop, run, source
from tests.spark.test_writes import keyed, rows_in
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows

TASK_POINTS = ("spark.task.file-written", "spark.task.file-noted", "spark.task.written")
APPEND_POINTS = (
    *TASK_POINTS,
    "spark.commit.checked",
    "tables.commit.before-intent",
    "tables.commit.before-lance",
    "tables.commit.after-lance",
    "tables.commit.after-state",
    "spark.commit.committed",
)
UPSERT_POINTS = (
    *TASK_POINTS,
    "spark.commit.checked",
    "tables.rows.before-intent",
    "tables.rows.before-lance",
    "tables.rows.after-lance",
    "tables.rows.after-state",
    "spark.commit.committed",
)
#: What a kill leaves to `table gc`: a file that is not noted yet, and deletions of rows that another attempt repeats.
UNNOTED = {"spark.task.file-written": "data/", "tables.rows.before-intent": "_deletions/"}
UNNOTED["tables.rows.before-lance"] = "_deletions/"
OPTIONS: Mapping[str, dict[str, str]] = {"append": {}, "upsert": {"upsert": "true"}, "overwrite": {}}


def write(lake: Lake, rows: pa.Table, job_id: str, mode: str = "append") -> Step:
    """A write of the rows by two tasks."""
    step: Step = {"kind": "write", "table": "air.flights", "source": source(lake, rows)}
    options = {"jobId": job_id, **OPTIONS[mode]}
    return {**step, "mode": "overwrite" if mode == "overwrite" else "append", "options": options}


def stream(lake: Lake, *batches: pa.Table, upsert: bool = False) -> Step:
    """A stream of its own, with a batch for each of the tables."""
    folder = source(lake, *batches)
    step: Step = {"kind": "stream", "table": "air.flights", "source": folder, "checkpoint": f"{folder}-checkpoint"}
    return {**step, "options": {"upsert": str(upsert).lower()}}


def at(step: Step, point: str) -> Step:
    """The step, in which processes stop at the point."""
    return {**step, "failpoint": f"{point}=stop"}


def after(mode: str, table: list[dict[str, Any]], rows: pa.Table) -> list[dict[str, Any]]:
    """The rows of the table after a step that writes the rows."""
    match mode:
        case "overwrite":
            return sorted_rows(rows)
        case "upsert":
            return keyed(pa.Table.from_pylist(table, FLIGHTS), rows)
    return sorted_rows(pa.concat_tables([pa.Table.from_pylist(table, FLIGHTS), rows]))


@pytest.mark.spark
@pytest.mark.own_session
def test_a_stream_whose_driver_is_killed_resumes(lake: Lake) -> None:
    lake.table()
    step = stream(lake, flights(40), flights(40, 40))
    kill_driver_at_stop(lake, [at(step, "tables.commit.after-lance")])
    assert run(lake, [step]) == ["ended"]
    assert rows_in(lake) == sorted_rows(flights(80)) and not files_left(lake)


def cases() -> Iterator[Any]:
    """Kinds of steps, and points one after the other, at most five of them."""
    for kind, mode in (("write", "append"), ("stream", "upsert"), ("stream", "append"), ("write", "upsert")):
        points = APPEND_POINTS if mode == "append" else UPSERT_POINTS
        for start in range(0, len(points), 5):
            yield pytest.param(kind, mode, points[start : start + 5], id=f"{kind}-{mode}-{start}")
    yield pytest.param("write", "overwrite", UPSERT_POINTS[3:8], id="write-overwrite")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.own_session
@pytest.mark.parametrize(("kind", "mode", "points"), list(cases()))
def test_a_driver_that_is_killed_at_each_point(lake: Lake, kind: str, mode: str, points: tuple[str, ...]) -> None:
    """Each session ends what the one before began, and is killed at the next point."""
    lake.table()
    model = after("append", [], flights(10))
    lake.ingest(lake.file(flights(10)))
    former = list[Step]()
    for number, point in enumerate(points):
        start = 20 * number if mode == "append" else 10 * number  # rows of an upsert are partly those of the one before
        rows = flights(20, 100 + start)
        step = write(lake, rows, str(number), mode) if kind == "write" else stream(lake, rows, upsert=mode == "upsert")
        kill_driver_at_stop(lake, [*former, at(step, point)])
        before, model = model, after(mode, model, rows)
        assert rows_in(lake) in (before, model), point
        former = [step]
    assert run(lake, former) == ["ended"]
    assert rows_in(lake) == model and not lake.open().opened.state.intents
    left = files_left(lake)
    if kind == "stream":
        allowed = tuple(UNNOTED[point] for point in points if point in UNNOTED)
        assert {each for each in left if not each.startswith(allowed)} == set()
    collect_files(lake)
    assert not files_left(lake) and rows_in(lake) == model
