"""Does tasks: in this process, several at a time, or as a Spark job."""

from __future__ import annotations

import os
import pickle
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.compute.progress import Tasks, job_group
from deployer.errors import DeployerError, Interrupted
from deployer.live.lance_io import open_dataset
from deployer.services.compact.copying import Copy, copied
from deployer.services.compact.rewriting import Merge, merged
from deployer.tables.writer import Written

if TYPE_CHECKING:
    import lance
    from pyspark.sql import SparkSession

Job = Merge | Copy
OnRows = Callable[[int], None]  #: told how many more rows were read; what it raises ends the work


def done(dataset: lance.LanceDataset, job: Job, on_rows: OnRows) -> list[Written]:
    """Writes one task's new fragments and commits nothing. `dataset` is open at the task's version."""
    if isinstance(job, Merge):
        return merged(dataset, job, on_rows)
    written = copied(dataset, job)
    on_rows(job.rows)
    return written


def in_driver(dataset: lance.LanceDataset, jobs: Sequence[Job], on_rows: OnRows) -> list[list[Written]]:
    """All tasks in this process, as many at a time as there are cores. The first failure ends all of them."""
    stop = threading.Event()

    def told(rows: int) -> None:
        if stop.is_set():
            raise Interrupted("interrupted")
        on_rows(rows)

    with ThreadPoolExecutor(max(1, min(len(jobs), os.cpu_count() or 1)), "compact") as pool:
        futures = [pool.submit(done, dataset, job, told) for job in jobs]
        try:
            ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for each in ended:
                each.result()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return [each.result() for each in futures]


def with_spark(session: SparkSession, location: str, jobs: Sequence[Job], on_rows: OnRows) -> list[list[Written]]:
    """All tasks as one Spark job, one Spark task each. When `on_rows` raises, the job is cancelled."""
    group = f"compact-{uuid.uuid4().hex[:8]}"
    stopped: list[BaseException] = []
    rows = [job.rows for job in jobs]
    told = 0

    def watch(tasks: Tasks) -> None:
        nonlocal told
        through = sum(rows) * tasks.done // max(1, tasks.total)
        try:
            on_rows(max(0, through - told))
            told = max(told, through)
        except DeployerError as stop:
            stopped.append(stop)
            session.sparkContext.cancelJobGroup(group)

    numbers = session.range(0, len(jobs), 1, max(1, len(jobs)))
    try:
        with job_group(session, group, f"compact {location}", watch):
            found = numbers.mapInArrow(_Task(location, tuple(jobs)), "number int, written binary").collect()
    except Exception as failure:
        if stopped:
            raise stopped[0] from None
        lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
        own = [line for line in lines if line.startswith("deployer.errors.")]
        said = (own or lines or [type(failure).__name__])[0]
        raise DeployerError(f"the Spark job failed: {said}", where=location, remedy="run it again") from failure
    by_number = {row["number"]: pickle.loads(row["written"]) for row in found}  # noqa: S301 (made by our tasks)
    return [by_number[number] for number in range(len(jobs))]


class _Task:
    """What a Spark task does: the jobs whose numbers it is given."""

    def __init__(self, location: str, jobs: tuple[Job, ...]) -> None:
        self._location, self._jobs = location, jobs

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                job = self._jobs[number]
                written = done(open_dataset(self._location, job.version), job, _untold)
                yield pa.RecordBatch.from_arrays(
                    [pa.array([number], pa.int32()), pa.array([pickle.dumps(written)], pa.binary())],
                    ["number", "written"],
                )


def _untold(_: int) -> None:
    pass
