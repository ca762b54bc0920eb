"""Reports the progress of a Spark job from Spark's status tracker, while another thread waits for the job."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

POLL_SECONDS = 0.2  #: seconds between two reads of the status tracker
END_SECONDS = 10.0  #: seconds that a cancelled job may take to end


@dataclass(frozen=True, slots=True)
class Tasks:
    """The numbers of completed and of all tasks of the job group so far. `stage` is the number of started stages."""

    done: int
    total: int
    stage: int


def run_job(
    session: SparkSession,
    group: str,
    description: str,
    work: Callable[[], T],
    on_tasks: Callable[[Tasks], None] | None = None,
) -> T:
    """Calls `work`, which runs Spark jobs, within `job_group` and in its own thread; returns the result of `work`.

    An interrupt cancels the jobs, and is raised when they have ended or after `END_SECONDS`. Meanwhile the caller's
    thread makes no Java call, because an interrupt within such a call breaks the connection to Java.
    """
    from pyspark import InheritableThread

    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            with job_group(session, group, description, on_tasks):
                results.append(work())
        except BaseException as failure:
            failures.append(failure)

    thread = InheritableThread(target=run, daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        with contextlib.suppress(Exception):  # the signal may have ended Java too
            session.sparkContext.cancelJobGroup(group)
        thread.join(END_SECONDS)
        raise
    if failures:
        raise failures[0]
    return results[0]


@contextlib.contextmanager
def job_group(
    session: SparkSession, group: str, description: str, on_tasks: Callable[[Tasks], None] | None = None
) -> Iterator[None]:
    """Runs the Spark jobs of the block as one group. An exception in the block cancels them.

    Another thread calls `on_tasks` a few times a second, as soon as there are tasks.
    """
    context = session.sparkContext
    stop = threading.Event()
    context.setJobGroup(group, description, interruptOnCancel=True)
    watcher = threading.Thread(target=_watch, args=(session, group, on_tasks or _ignore, stop), daemon=True)
    watcher.start()
    try:
        yield
    except BaseException:
        with contextlib.suppress(Exception):  # Java may be gone; its error must not hide the first
            context.cancelJobGroup(group)
        raise
    finally:
        stop.set()
        watcher.join(timeout=5)
        with contextlib.suppress(Exception):
            context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
            context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def _ignore(_: Tasks) -> None:
    pass


def _watch(session: SparkSession, group: str, on_tasks: Callable[[Tasks], None], stop: threading.Event) -> None:
    while True:
        ended = stop.wait(POLL_SECONDS)
        with contextlib.suppress(Exception):  # a session that is being stopped does not answer
            now = tasks_of(session, group)
            if now.total:
                on_tasks(now)
        if ended:
            return


def tasks_of(session: SparkSession, group: str) -> Tasks:
    """Returns the present counts of the group's jobs. Stages that reuse the output of an earlier stage are not
    counted."""
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
