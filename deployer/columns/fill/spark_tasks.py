"""Writes fragments as tasks of a Spark job; the driver claims and commits.

A task that Spark runs twice, after a failure or by speculation, uses the parts and the checkpoint of its other run: one
data file is committed, and the other one is removed. What is wrong with values or input ends the job at once: Spark
would try such a task again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.columns.fill.checkpoints import Checkpoint
from deployer.columns.fill.executor import OnTick, Parts
from deployer.columns.fill.fragment_file import FragmentWriter, OnRows
from deployer.columns.fill.tasks import Piece, Task, dealt, rows_of_task, task_rows, tasks_of
from deployer.columns.fill.work import FragmentWork
from deployer.errors import DeployerError
from deployer.runs.rewriting.executor import with_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class TaskSizes:
    """The division of the work: at most `concurrency` tasks at the same time, of `task_size` rows; by default each
    worker gets two tasks of a table with so many rows."""

    concurrency: int
    task_size: int | None
    table_rows: int


@dataclass(frozen=True, slots=True)
class OnSpark:
    """Writes fragments on the session, which is started when there is something to write. Without `sizes`, a task has
    one fragment, and there are as many at the same time as the cluster has slots.

    The values are pickled, so they have what a task needs to make them.
    """

    session: Callable[[], SparkSession]
    sizes: TaskSizes | None = None

    def written(
        self,
        writer: FragmentWriter,
        dataset: LanceDataset,
        works: Sequence[FragmentWork],
        parts: Parts,  # tasks look for parts themselves: one that runs again has more
        on_rows: OnRows,
        on_tick: OnTick,
    ) -> list[Checkpoint]:
        if not works:
            return []
        session = self.session()
        errors = task_errors(session)

        def report(rows: int) -> None:
            if errors.value:
                raise errors.value[0]
            on_rows(rows)
            on_tick()

        def done(tasks: Sequence[Task], *, counts: bool) -> list[Checkpoint]:
            jobs = [_TaskJob(writer, task, int(dataset.version), errors, counts) for task in tasks]
            found = with_spark(session, writer.location, jobs, report) if jobs else []
            if errors.value:
                raise errors.value[0]
            return [checkpoint for made in found for checkpoint in made]

        slots = int(session.sparkContext.defaultParallelism)
        tasks = tasks_of(works, self._task_rows(slots))
        split = {piece.work: None for task in tasks for piece in task if not piece.is_whole}
        made = done(self._limited(tasks, slots), counts=True)
        files = [(Piece(work, range(work.physical_rows)),) for work in split]
        made += done(self._limited(files, slots), counts=False)
        by_fragment = {each.work.fragment_id: each for each in made}
        return [by_fragment[work.fragment_id] for work in works]

    def _task_rows(self, slots: int) -> int | None:
        if self.sizes is None:
            return None
        return task_rows(self.sizes.task_size, self.sizes.table_rows, min(self.sizes.concurrency, slots))

    def _limited(self, tasks: Sequence[Task], slots: int) -> Sequence[Task]:
        """Returns the tasks, joined to fewer where fewer are to run at the same time than there are slots."""
        if self.sizes is None or self.sizes.concurrency >= slots:
            return tasks
        return dealt(tasks, self.sizes.concurrency)


def task_errors(session: SparkSession) -> Any:
    """Returns an accumulator of the errors that tasks end with: `value` is a list of them."""
    from pyspark import AccumulatorParam

    class Joined(AccumulatorParam[list[DeployerError]]):
        def zero(self, value: list[DeployerError]) -> list[DeployerError]:
            return []

        def addInPlace(  # noqa: N802 (Spark's name)
            self, value1: list[DeployerError], value2: list[DeployerError]
        ) -> list[DeployerError]:
            return [*value1, *value2]

    return session.sparkContext.accumulator([], Joined())


@dataclass(frozen=True, slots=True)
class _TaskJob:
    """See `runs.rewriting.executor.Work`. `counts`: its rows are not counted yet."""

    writer: FragmentWriter
    task: Task
    version: int
    errors: Any
    counts: bool

    @property
    def rows(self) -> int:
        return rows_of_task(self.task) if self.counts else 0

    def done(self, dataset: LanceDataset, on_rows: OnRows, threads: int) -> list[Checkpoint]:
        found: list[Checkpoint] = []
        try:
            for piece in self.task:
                if piece.is_whole:
                    found.append(self.writer.write_once(dataset, piece.work, on_rows))
                else:
                    self.writer.save_rows_once(dataset, piece.work, piece.rows, on_rows)
        except DeployerError as error:
            self.errors.add([error])
            return []
        return found
