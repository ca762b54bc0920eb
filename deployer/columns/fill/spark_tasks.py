"""Writes fragments as tasks of a Spark job, one each; the driver claims and commits.

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
from deployer.columns.fill.work import FragmentWork
from deployer.errors import DeployerError
from deployer.runs.rewriting.executor import with_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class OnSpark:
    """Writes fragments on the session, which is started when there is something to write.

    The values are pickled, so they have what a task needs to make them.
    """

    session: Callable[[], SparkSession]

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

        jobs = [_FragmentJob(writer, work, int(dataset.version), errors) for work in works]
        found = with_spark(session, writer.location, jobs, report)
        if errors.value:
            raise errors.value[0]
        return [checkpoint for made in found for checkpoint in made]


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
class _FragmentJob:
    """See `runs.rewriting.executor.Work`."""

    writer: FragmentWriter
    work: FragmentWork
    version: int
    errors: Any

    @property
    def rows(self) -> int:
        return self.work.physical_rows

    def done(self, dataset: LanceDataset, on_rows: OnRows, threads: int) -> list[Checkpoint]:
        try:
            return [self.writer.write_once(dataset, self.work, on_rows)]
        except DeployerError as error:
            self.errors.add([error])
            return []
