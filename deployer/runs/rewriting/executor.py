"""Runs the parts of the work on a dataset, such as a rewrite, in this process, several at a time, or as a Spark job."""

from __future__ import annotations

import os
import pickle
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from deployer.compute.spark.failures import job_failed
from deployer.compute.spark.progress import Tasks, run_job
from deployer.compute.spark.reused_workers import freeze_modules
from deployer.datasets.dataset import open_dataset
from deployer.datasets.files.writer import WrittenFragment
from deployer.errors import DeployerError, Interrupted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset

# By default, Lance leaves two cores to reading, and encodes and decodes pages in as many threads as there are other
# cores: on a machine with two cores, in one thread.
os.environ.setdefault("LANCE_CPU_THREADS", str(os.cpu_count() or 1))

OnRows = Callable[[int], None]  #: called with the number of newly read rows; an exception from it ends the work


T = TypeVar("T")


class Work(Protocol[T]):
    """A part of the work on a dataset, with everything that a process needs to run it; it is pickled. `version` is the
    version of the dataset."""

    @property
    def version(self) -> int: ...

    @property
    def rows(self) -> int: ...

    def done(self, dataset: LanceDataset, on_rows: OnRows, threads: int) -> list[T]:
        """Writes new fragments, or segments of indexes, and commits nothing. `dataset` is open at `version`."""


Job = Work[WrittenFragment]  #: a part of a rewrite of files


def in_driver(dataset: LanceDataset, jobs: Sequence[Work[T]], on_rows: OnRows) -> list[list[T]]:
    """Runs all jobs in this process, as many at a time as there are cores, and returns their results.

    The first failure ends all of them.
    """
    stop = threading.Event()

    def reported(rows: int) -> None:
        if stop.is_set():
            raise Interrupted("interrupted")
        on_rows(rows)

    cores = os.cpu_count() or 1
    workers = max(1, min(len(jobs), cores))
    with ThreadPoolExecutor(workers, "rewrite") as pool:
        futures = [pool.submit(job.done, dataset, reported, max(1, cores // workers)) for job in jobs]
        try:
            ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for each in ended:
                each.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return [each.result() for each in futures]


def with_spark(session: SparkSession, location: str, jobs: Sequence[Work[T]], on_rows: OnRows) -> list[list[T]]:
    """Runs all jobs as one Spark job with a task for each, and returns their results. An error of `on_rows` cancels the
    Spark job.

    The job uses an RDD: planning and starting the same tasks with a DataFrame takes 2.5 times the processor time.
    """
    numbers = session.sparkContext.parallelize(range(len(jobs)), max(1, len(jobs)))
    tasks = numbers.mapPartitions(_Task(location, tuple(jobs)))
    found = collected(session, tasks, location, sum(job.rows for job in jobs), on_rows)
    by_number = {number: pickle.loads(written) for number, written in found}  # noqa: S301 (made by our tasks)
    return [by_number[number] for number in range(len(jobs))]


def collected(session: SparkSession, frame: Any, location: str, rows: int, on_rows: OnRows) -> list[Any]:
    """Returns the rows of a frame or an RDD. As tasks end, `on_rows` gets their share of `rows`; an exception from it
    cancels the job."""
    group = f"rewrite-{uuid.uuid4().hex[:8]}"
    stopped: list[BaseException] = []
    reported = 0

    def watch(tasks: Tasks) -> None:
        nonlocal reported
        through = rows * tasks.done // max(1, tasks.total)
        try:
            on_rows(max(0, through - reported))
            reported = max(reported, through)
        except DeployerError as stop:
            stopped.append(stop)
            session.sparkContext.cancelJobGroup(group)

    try:
        return run_job(session, group, f"rewrite {location}", lambda: list(frame.collect()), watch)
    except Exception as failure:
        if stopped:
            raise stopped[0] from None
        raise job_failed(failure, location) from failure


class _Task:
    """The function of a Spark task, which runs the jobs with the given numbers."""

    def __init__(self, location: str, jobs: tuple[Work[Any], ...]) -> None:
        self._location, self._jobs = location, jobs

    def __call__(self, numbers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        for number in numbers:
            job = self._jobs[number]
            written = job.done(open_dataset(self._location, job.version), no_row_progress, 1)
            freeze_modules()
            yield number, pickle.dumps(written)


def no_row_progress(_: int) -> None:
    """Does nothing, as a progress callback."""
