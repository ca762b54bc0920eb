"""How far a Spark job is, told by Spark's status tracker while another thread waits for the job."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of all stages of the job group so far; `stage` counts from 1 and is the last one that started."""

    done: int
    total: int
    stage: int


@contextlib.contextmanager
def job_group(
    session: SparkSession, group: str, description: str, on_tasks: Callable[[Tasks], None] | None = None
) -> Iterator[None]:
    """Runs the Spark jobs of the block as one group; when the block is left by an exception they are cancelled.

    `on_tasks` is called from another thread a few times a second, once there are tasks.
    """
    context = session.sparkContext
    stop = threading.Event()
    context.setJobGroup(group, description, interruptOnCancel=True)
    watcher = threading.Thread(target=_watch, args=(session, group, on_tasks or _ignore, stop), daemon=True)
    watcher.start()
    try:
        yield
    except BaseException:
        context.cancelJobGroup(group)
        raise
    finally:
        stop.set()
        watcher.join(timeout=5)
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def _ignore(_: Tasks) -> None:
    pass


def _watch(session: SparkSession, group: str, on_tasks: Callable[[Tasks], None], stop: threading.Event) -> None:
    while True:
        ended = stop.wait(POLL_SECONDS)
        with contextlib.suppress(Exception):  # a session that is being stopped answers nothing
            now = tasks_of(session, group)
            if now.total:
                on_tasks(now)
        if ended:
            return


def tasks_of(session: SparkSession, group: str) -> Tasks:
    """The counts of the group's jobs as they stand. Stages that reuse an earlier one's output are not counted."""
    tracker = session.sparkContext.statusTracker()
    done = total = stages = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is None:
                continue
            done += stage.numCompletedTasks
            total += stage.numTasks
            stages += bool(stage.numActiveTasks or stage.numCompletedTasks)
    return Tasks(done, total, stages)
