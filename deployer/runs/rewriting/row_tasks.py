"""Runs the parts of a change of rows as Spark tasks, such as one for the fragments of each leaf. The driver commits
once."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.compute.spark.failures import job_failed
from deployer.compute.spark.progress import Tasks, run_job
from deployer.datasets.dataset import open_dataset
from deployer.errors import Interrupted
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.tables.ingest.engine_choice import Engine
from deployer.tables.ingest.rows.load_functions import with_trust
from deployer.tables.rows.tasks import DoneT, RowTask, RunTasks, run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset

SMALL_ROWS = 20_000_000  #: up to this many rows, this process is faster than Spark's start


def tasks_by(
    engine: Engine,
    session: Callable[[], SparkSession],
    on_progress: OnProgress = no_progress,
    doing: str = "changing rows",
) -> RunTasks:
    """Returns a function that runs the tasks of a change. It calls `session` where the tasks need Spark. `doing` is the
    text for progress."""

    def report_progress(now: Progress) -> None:
        on_progress(replace(now, doing=doing))

    def run(dataset: LanceDataset, tasks: Sequence[RowTask[DoneT]], /) -> list[DoneT]:
        if engine == "driver" or (engine == "auto" and sum(task.rows for task in tasks) <= SMALL_ROWS):
            return run_here(dataset, tasks, report_progress)
        return run_with_spark(session(), tasks, report_progress)

    return run


def run_with_spark(
    session: SparkSession, tasks: Sequence[RowTask[DoneT]], on_progress: OnProgress = no_progress
) -> list[DoneT]:
    """Runs all tasks as one Spark job and returns their results. An Interrupted from `on_progress` cancels the job."""
    if not tasks:
        return []
    group, location = f"rows-{uuid.uuid4().hex[:8]}", tasks[0].location
    stopped: list[Interrupted] = []

    def watch(now: Tasks) -> None:
        try:
            on_progress(Progress("changing rows", now.done, now.total, "tasks"))
        except Interrupted as stop:
            stopped.append(stop)
            session.sparkContext.cancelJobGroup(group)

    task = with_trust(_Task(tuple(tasks)))
    frame = session.range(0, len(tasks), 1, len(tasks)).mapInArrow(task, "number int, done binary")
    try:
        found = run_job(session, group, f"change rows of {location}", lambda: list(frame.collect()), watch)
    except Exception as failure:
        if stopped:
            raise stopped[0] from None
        raise job_failed(failure, location) from failure
    by_number = {row["number"]: pickle.loads(row["done"]) for row in found}  # noqa: S301 (made by our tasks)
    return [by_number[number] for number in range(len(tasks))]


class _Task:
    """The function of a Spark task, which runs the parts with the given numbers."""

    def __init__(self, tasks: tuple[RowTask[Any], ...]) -> None:
        self._tasks = tasks

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                task = self._tasks[number]
                done = pickle.dumps(task.done(open_dataset(task.location, task.version)))
                columns = [pa.array([number], pa.int32()), pa.array([done], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["number", "done"])
