"""Writes fragments in the tasks of a Spark job; the driver claims and commits them.

Spark may run a task twice, after a failure or by speculation. The second run uses the parts and the checkpoint of the
first: one data file is committed, and the other one is removed. An error of the values or of the input ends the job at
once, because Spark would only repeat such a task.
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
    """The division of the work: at most `concurrency` tasks of `task_size` rows run at the same time. Without
    `task_size`, each worker gets two tasks of a table with `table_rows` rows."""

    concurrency: int
    task_size: int | None
    table_rows: int


@dataclass(frozen=True, slots=True)
class OnSpark:
    """An executor that writes fragments on a Spark session. `session` starts the session; it is called only when there
    is a fragment to write. Without `sizes`, a task has one fragment, and all slots of the cluster are used.

    The values are pickled, so that a task can compute them.
    """

    session: Callable[[], SparkSession]
    sizes: TaskSizes | None = None

    def written(
        self,
        writer: FragmentWriter,
        dataset: LanceDataset,
        works: Sequence[FragmentWork],
        parts: Parts,  # not used: tasks list the parts, because a repeated task has more
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
        """Returns the tasks; joins them to `concurrency` tasks where this is less than the number of slots."""
        if self.sizes is None or self.sizes.concurrency >= slots:
            return tasks
        return dealt(tasks, self.sizes.concurrency)


def task_errors(session: SparkSession) -> Any:
    """Returns an accumulator of the tasks' errors: its `value` is the list of errors."""
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
    """The work of a Spark task (see `runs.rewriting.executor.Work`). With `counts`, its rows are added to the
    progress."""

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
