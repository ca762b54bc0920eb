"""COMPACT of one table: plans, rewrites and commits portion by portion, then brings its indexes up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deployer.datasets.writer import Written
from deployer.errors import Interrupted
from deployer.services.compact.candidates import as_work, planned
from deployer.services.compact.options import CompactOptions
from deployer.services.compact.results import CompactResult
from deployer.services.rewriting.executor import OnRows, in_driver, with_spark
from deployer.services.rewriting.run import Engine, RewriteRun, TableStats, again, with_whole_indexes
from deployer.services.rewriting.tasks import Sizes, Task
from deployer.state.model.services import FinalStatus
from deployer.system.progress import OnProgress, no_progress
from deployer.tables.indexes.build import CaughtUp, catch_up
from deployer.tables.open_table import OpenTable
from deployer.tables.partitions.split import place_files
from deployer.text.formatting import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset


def compact(
    table: OpenTable,
    options: CompactOptions,
    session: Callable[[], SparkSession],
    engine: Engine = "auto",
    on_progress: OnProgress = no_progress,
    run_id: str | None = None,
) -> CompactResult:
    """Merges small files of each leaf, drops deleted rows, and puts files into the leaves that their keys fit.

    A run that is ended early leaves indexes to the next load. See `portions`; raises Conflict as `RewriteRun` does.
    """
    started = time.monotonic()
    if place_files(table):
        table = again(table)
    merging = _Merging(options.portion_bytes, options.sizes(table.layout().max_rows_per_file))
    table = with_whole_indexes(table, merging, on_progress)
    before = TableStats.of(table)
    run = RewriteRun(merging, session, engine, on_progress, run_id)
    status: FinalStatus = "SUCCEEDED"
    why, indexes = "", CaughtUp()
    try:
        run.rounds(table)
        if run.work.portions:
            indexes = catch_up(table.store, table.root, table.entry.table_id, on_progress)
        else:
            status = "SKIPPED"
            why = f"{count(before.files, 'file')}: none is to be merged, sorted, placed or freed of deleted rows"
    except (Interrupted, KeyboardInterrupt) as stop:
        status, why = "CANCELLED", str(stop) or "interrupted"
    return CompactResult(
        table.entry.full_name,
        run.run_id,
        status,
        why,
        before,
        TableStats.of(again(table)),
        run.work,
        run.engine,
        run.reason,
        time.monotonic() - started,
        indexes,
    )


@dataclass(frozen=True, slots=True)
class _Merging:
    """What COMPACT rewrites, and how: see `portions.Rewriting`."""

    portion_bytes: int
    sizes: Sizes
    kind: str = "compact"
    doing: str = "compacting"

    def keep_order(self, table: OpenTable) -> bool:
        return not table.layout().order

    def tasks(self, table: OpenTable, dataset: LanceDataset, *, any_kind: bool = False) -> Sequence[Task]:
        return planned(table, dataset, self.sizes, any_kind=any_kind)

    def written(
        self,
        table: OpenTable,
        dataset: LanceDataset,
        tasks: Sequence[Task],
        session: Callable[[], SparkSession] | None,
        on_rows: OnRows,
    ) -> list[list[Written]]:
        jobs = as_work(table, dataset, tasks, self.sizes)
        if session is None:
            return in_driver(dataset, jobs, on_rows)
        return with_spark(session(), table.location, jobs, on_rows)

    def is_better(self, table: OpenTable, task: Task, made: Sequence[Written]) -> bool:
        return True
