"""Writes files of the newest version again that hold erased rows, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deployer.datasets.files.writer import WrittenFragment
from deployer.platform.system.progress import OnProgress
from deployer.services.compact.job import as_work
from deployer.services.compact.options import CompactOptions
from deployer.services.rewriting.executor import OnRows, in_driver, with_spark
from deployer.services.rewriting.pieces import pieces_of
from deployer.services.rewriting.run import RewriteRun
from deployer.services.rewriting.tasks import Sizes, Task
from deployer.tables.open_table import OpenTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset


@dataclass(frozen=True, slots=True)
class _Erasing:
    """What is rewritten, and how: see `rewriting.run.Rewriting`. Each file with one of the `paths` is a task alone."""

    paths: frozenset[str]
    sizes: Sizes
    portion_bytes: int = 1_000_000_000
    kind: str = "compact"
    doing: str = "writing files without the rows"

    def keep_order(self, table: OpenTable) -> bool:
        return not table.layout().order

    def tasks(self, table: OpenTable, dataset: LanceDataset, *, any_kind: bool = False) -> Sequence[Task]:
        held = {
            fragment.fragment_id
            for fragment in dataset.get_fragments()
            if self.paths.intersection(file.path for file in fragment.metadata.files)
        }
        leaves = [leaf.partition_id for leaf in table.state.leaves()]
        found = [piece for piece in pieces_of(table, dataset, any_kind=True) if piece.file.fragment_id in held]
        ordered = table.layout().order
        return [
            Task.of(
                [each],
                [str(each.file.partition)] if each.file.partition in leaves else leaves if ordered else leaves[:1],
                "erased rows",
            )
            for each in found
        ]

    def written(
        self,
        table: OpenTable,
        dataset: LanceDataset,
        tasks: Sequence[Task],
        session: Callable[[], SparkSession] | None,
        on_rows: OnRows,
    ) -> list[list[WrittenFragment]]:
        jobs = as_work(table, dataset, tasks, self.sizes)
        if session is None:
            return in_driver(dataset, jobs, on_rows)
        return with_spark(session(), table.location, jobs, on_rows)

    def is_better(self, table: OpenTable, task: Task, made: Sequence[WrittenFragment]) -> bool:
        return True


def rewrite_files(table: OpenTable, paths: frozenset[str], on_progress: OnProgress) -> int:
    """Writes each fragment again that has one of these data files, without its deleted rows; returns how many.

    Raises Conflict where others change these fragments again and again.
    """

    def session() -> SparkSession:
        from deployer.compute.spark.local import LocalCluster, job_session

        return job_session(LocalCluster)

    options = CompactOptions()
    erasing = _Erasing(paths, options.sizes(table.layout().max_rows_per_file), options.portion_bytes)
    run = RewriteRun(erasing, session, "auto", on_progress, None)
    run.rounds(table)
    return run.work.tasks
