"""COMPACT of one table: plans, rewrites and commits portion by portion, then brings its indexes up to date."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from deployer.datasets.files.binary_copy import Copy, lance_tasks
from deployer.datasets.files.writer import WrittenFragment
from deployer.datasets.ordering.clustering import FileClustering, joined
from deployer.errors import Interrupted
from deployer.platform.system.progress import OnProgress, no_progress
from deployer.platform.text.formatting import count
from deployer.runs.rewriting.executor import Job, OnRows, in_driver, with_spark
from deployer.runs.rewriting.index_builds import plans_by_size
from deployer.runs.rewriting.pieces import claimed_fragments, pieces_of, unclaimed
from deployer.runs.rewriting.run import Engine, RewriteRun, TableStats, again, with_whole_indexes
from deployer.runs.rewriting.tasks import Sizes, Task
from deployer.services.kinds.compact.merge_task import Merge
from deployer.services.kinds.compact.options import CompactOptions
from deployer.services.kinds.compact.planning import plan_table
from deployer.services.kinds.compact.results import CompactResult
from deployer.state.model.services import FinalStatus
from deployer.tables.layout.indexes.build import CaughtUp, catch_up
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.layout.partitions.split import place_files
from deployer.tables.open_table import OpenTable, ReadTable

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

    A run that ends early does not update indexes; the next load does. Raises Conflict as `RewriteRun` does.
    """
    started = time.monotonic()
    if place_files(table):
        table = again(table)
    merging = Merging(options.portion_bytes, options.sizes(table.layout().max_rows_per_file), planned)
    table = with_whole_indexes(table, merging, on_progress)
    before = TableStats.of(table)
    run = RewriteRun(merging, session, engine, on_progress, run_id)
    status: FinalStatus = "SUCCEEDED"
    why, indexes = "", CaughtUp()
    try:
        run.rounds(table)
        if run.work.portions:
            indexes = catch_up(
                table.store, table.root, table.entry.table_id, on_progress, plans_by_size(table.store.instance)
            )
        else:
            status = "SKIPPED"
            why = f"{count(before.files, 'file')}: none is to be merged, sorted, placed or freed of deleted rows"
            if claimed := claimed_fragments(again(table).state):
                why += f"; {count(len(claimed), 'other is', 'others are')} left to a run that writes columns"
    except (Interrupted, KeyboardInterrupt) as stop:
        status, why = "CANCELLED", str(stop) or "interrupted"
    return CompactResult(
        table=table.entry.full_name,
        run_id=run.run_id,
        status=status,
        why=why,
        before=before,
        after=TableStats.of(again(table)),
        work=run.work,
        engine=run.engine,
        reason=run.reason,
        seconds=time.monotonic() - started,
        indexes=indexes,
    )


class PlanTasks(Protocol):
    """A function that returns the tasks to run. `planned` describes its arguments."""

    def __call__(self, table: OpenTable, dataset: LanceDataset, sizes: Sizes, *, any_kind: bool) -> Sequence[Task]: ...


@dataclass(frozen=True, slots=True)
class Merging:
    """The `rewriting.run.Rewriting` of COMPACT: it writes the live rows of files to other files, in their order."""

    portion_bytes: int
    sizes: Sizes
    plan: PlanTasks
    doing: str = "compacting"
    kind: str = "compact"

    def keep_order(self, table: OpenTable) -> bool:
        return not table.layout().order

    def tasks(self, table: OpenTable, dataset: LanceDataset, *, any_kind: bool = False) -> Sequence[Task]:
        return self.plan(table, dataset, self.sizes, any_kind=any_kind)

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


def planned(table: ReadTable, dataset: LanceDataset, sizes: Sizes, *, any_kind: bool = False) -> tuple[Task, ...]:
    """Returns the tasks of COMPACT. `dataset` is the table's dataset at its recorded version. `any_kind` plans as if
    the table's indexes covered all files."""
    pieces = unclaimed(table, pieces_of(table, dataset, any_kind=any_kind), in_order=not table.layout().order)
    return plan_table(table.state, pieces, sizes)


def as_work(table: ReadTable, dataset: LanceDataset, tasks: Sequence[Task], sizes: Sizes) -> list[Job]:
    """Returns the tasks with everything that a process needs to run them."""
    layout, state = table.layout(), table.state
    if not layout.order:
        groups = [task.fragments for task in tasks]
        made = lance_tasks(dataset, groups, layout.data_storage_version)
        return [
            Copy(dataset.version, text, task.leaves[0], task.rows, _clustered(table, task))
            for text, task in zip(made, tasks, strict=True)
        ]
    points = dict(zip((leaf.partition_id for leaf in state.leaves()[1:]), table.splits, strict=True))
    return [
        Merge(
            version=dataset.version,
            fragments=task.fragments,
            in_order=frozenset(number for number in task.fragments if _is_sorted(table, number)),
            ranges=Ranges(tuple(points[name] for name in task.leaves[1:]), task.leaves),
            layout=replace(layout, max_rows_per_file=sizes.file_rows),
            sizes=sizes,
            rows=task.rows,
            bytes=task.bytes,
            clustered=_clustered(table, task),
        )
        for task in tasks
    ]


def _clustered(table: ReadTable, task: Task) -> FileClustering | None:
    """Returns the clustering that the rows keep; None unless all files of the task keep theirs, in one leaf."""
    files = [table.state.files.get(number) for number in task.fragments]
    if len(task.leaves) > 1 or any(file is None or not file.keeps_clustering for file in files):
        return None
    return joined([FileClustering.of(file) for file in files if file is not None])


def _is_sorted(table: ReadTable, number: int) -> bool:
    file = table.state.files.get(number)
    return file is not None and file.sorted
