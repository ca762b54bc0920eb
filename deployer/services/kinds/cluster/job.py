"""CLUSTER of one table: surveys, plans, arranges and commits in portions, then updates the table's indexes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from deployer.datasets.files.writer import WrittenFragment
from deployer.datasets.ordering.clustering import Bounds
from deployer.errors import Conflict, Interrupted
from deployer.platform.files.json_values import JSON
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.text.formatting import count, size
from deployer.runs.rewriting.executor import OnRows, in_driver, with_spark
from deployer.runs.rewriting.index_builds import plans_by_size
from deployer.runs.rewriting.pieces import pieces_of, unclaimed
from deployer.runs.rewriting.run import Engine, RewriteRun, RewriteStats, TableStats, again, with_whole_indexes
from deployer.runs.rewriting.tasks import Piece, Task
from deployer.services.kinds.cluster.depth import Depth, overlap_depth
from deployer.services.kinds.cluster.layout import Arrangement
from deployer.services.kinds.cluster.options import ClusterOptions
from deployer.services.kinds.cluster.planning import (
    Selection,
    covered_leaf,
    outlook,
    plan_clusters,
    recorded,
    whole_leaves,
)
from deployer.services.kinds.cluster.results import ClusteringQuality, ClusterResult
from deployer.services.kinds.cluster.sampling import FileSample, samples_of, survey
from deployer.services.kinds.cluster.shuffle_task import HELD_BYTES, Shuffle, shuffled
from deployer.services.kinds.cluster.sort_task import Arrange
from deployer.specs.types.column_names import listed
from deployer.state.log.updates import FilesReplaced
from deployer.state.model.entities import File
from deployer.state.model.services import FinalStatus
from deployer.state.transactions.tables import to_place_files
from deployer.tables.layout.indexes.build import CaughtUp, catch_up
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.layout.partitions.split import place_files
from deployer.tables.open_table import OpenTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset


def cluster(
    table: OpenTable,
    options: ClusterOptions,
    session: Callable[[], SparkSession],
    engine: Engine = "auto",
    on_progress: OnProgress = no_progress,
    run_id: str | None = None,
) -> ClusterResult:
    """Arranges the rows of each leaf by the options' curve and columns; files with this arrangement are left out.

    After a run that ends early, the next load updates the indexes. Raises Conflict as `RewriteRun` does, and
    InvalidInput for columns that cannot be used.
    """
    started = time.monotonic()
    arrangement = options.arrangement(table)
    if not options.dry_run and place_files(table):
        table = again(table)
    arranging = _Arranging(table, options, arrangement, on_progress)
    run = RewriteRun(arranging, session, engine, on_progress, run_id)
    before, depth_before = TableStats.of(table), ClusteringQuality()
    status: FinalStatus = "SUCCEEDED"
    why, indexes, work = "", CaughtUp(), RewriteStats()
    try:
        depth_before = arranging.clusteredness(table)
        if options.dry_run:
            work = _planned(table, arranging)
            status = "SUCCEEDED" if work.tasks else "SKIPPED"
            why = _would(work) if work.tasks else _nothing(before, arrangement)
        else:
            table = with_whole_indexes(table, arranging, on_progress)
            run.rounds(table)
            if run.work.portions:
                indexes = catch_up(
                    table.store, table.root, table.entry.table_id, on_progress, plans_by_size(table.store.instance)
                )
            else:
                status, why = "SKIPPED", _nothing(before, arrangement)
            arranging.mark(again(table))
    except (Interrupted, KeyboardInterrupt) as stop:
        status, why = "CANCELLED", str(stop) or "interrupted"
    table = again(table)
    changed, completed = bool(run.work.portions), status != "CANCELLED" and not run.work.conflicts
    return ClusterResult(
        table=table.entry.full_name,
        run_id=run.run_id,
        status=status,
        why=why,
        dry_run=options.dry_run,
        curve=arrangement.curve,
        columns=arrangement.columns,
        before=before,
        after=TableStats.of(table),
        depth_before=depth_before,
        depth_after=arranging.clusteredness(table, no_progress) if changed else depth_before,
        work=work if options.dry_run else run.work,
        engine=run.engine,
        reason=run.reason,
        seconds=time.monotonic() - started,
        indexes=indexes,
        whole={} if options.dry_run else arranging.whole_now(table, completed=completed),
    )


def _planned(table: OpenTable, arranging: _Arranging) -> RewriteStats:
    tasks = arranging.tasks(table, table.dataset(), any_kind=True)
    rows, held = sum(task.rows for task in tasks), sum(task.bytes for task in tasks)
    return RewriteStats(len(tasks), 0, 0, rows, sum(task.deleted for task in tasks), held)


def _would(work: RewriteStats) -> str:
    rewritten = f"{count(work.rows, 'row')}, {size(work.bytes_read)}"
    return f"a dry run: {rewritten} in {count(work.tasks, 'task')} would be arranged"


def _nothing(before: TableStats, arrangement: Arrangement) -> str:
    by = f"{arrangement.curve} over {listed(arrangement.columns)}"
    return (
        f"{count(before.files, 'file')}: all are clustered by {by}, as well as possible"
        if before.files
        else "there are no rows"
    )


class _Arranging:
    """The files that CLUSTER rewrites, and how: see `rewriting.run.Rewriting`."""

    kind, doing = "cluster", "clustering"

    def __init__(
        self, table: OpenTable, options: ClusterOptions, arrangement: Arrangement, on_progress: OnProgress
    ) -> None:
        self.portion_bytes = options.portion
        self._arrangement, self._on_progress = arrangement, on_progress
        self._sizes = options.sizes(table.layout().max_rows_per_file)
        present = frozenset(file.fragment_id for file in table.state.files)
        self._chosen = Selection(arrangement.name, None if options.incremental else present)
        self._best: set[int] = set()  # files that a rewrite did not change, or would not change
        self._whole = set(whole_leaves(table.state, arrangement, self._sizes))  # leaves that are arranged at once
        self._arranged: set[str] = set()  # leaves whose rows this run arranges all at once
        self._known: dict[tuple[int, int], FileSample] = {}  # by fragment and its rows, which deletions make fewer

    def keep_order(self, table: OpenTable) -> bool:
        return False

    def tasks(self, table: OpenTable, dataset: LanceDataset, *, any_kind: bool = False) -> Sequence[Task]:
        leaves = table.state.leaves()
        pieces = unclaimed(table, pieces_of(table, dataset, any_kind=any_kind), in_order=False)
        found: list[Task] = []
        for kind in sorted({piece.kind for piece in pieces}):
            own = [piece for piece in pieces if piece.kind == kind]
            found += plan_clusters(own, leaves, self._chosen, self._sizes, self.portion_bytes, self._place)
        return [task for task in found if self._can_improve(table, task)]

    def written(
        self,
        table: OpenTable,
        dataset: LanceDataset,
        tasks: Sequence[Task],
        session: Callable[[], SparkSession] | None,
        on_rows: OnRows,
    ) -> list[list[WrittenFragment]]:
        jobs = self._jobs(table, dataset, tasks)
        if session is None:
            return in_driver(dataset, jobs, on_rows)
        whole = [(i, job) for i, job in enumerate(jobs) if isinstance(job, Arrange)]
        made = with_spark(session(), table.location, [job for _, job in whole], on_rows) if whole else []
        by_number = dict(zip((i for i, _ in whole), made, strict=True))
        for i, job in enumerate(jobs):
            if isinstance(job, Shuffle):
                by_number[i] = shuffled(session(), table.location, job, on_rows)
        return [by_number[i] for i in range(len(jobs))]

    def _can_improve(self, table: OpenTable, task: Task) -> bool:
        """Returns whether a task may improve its files, which only writing shows; otherwise its files count as
        clustered."""
        leaf = covered_leaf(table.state, task)
        if leaf in self._whole and not task.deleted:
            self._best.update(task.fragments)
            return False
        if leaf is None:
            self._whole.difference_update(task.leaves)
            self._arranged.difference_update(task.leaves)
        files = _files_of(table, task)
        if outlook(task, files, [self._bounds(file) for file in files], self._arrangement, self._sizes) == "same":
            self._best.update(task.fragments)
            return False
        if leaf is not None:
            self._whole.discard(leaf)
            self._arranged.add(leaf)
        return True

    def whole_now(self, table: OpenTable, *, completed: bool) -> dict[str, JSON]:
        """Returns the leaves that were arranged at once, for the run record. `completed`: the run completed its
        plan."""
        leaves = self._whole | self._arranged if completed else self._whole
        return recorded(table.state, self._arrangement, self._sizes, leaves)

    def is_better(self, table: OpenTable, task: Task, made: Sequence[WrittenFragment]) -> bool:
        """Returns False where the new files have the same bounds and rows as the old ones, and so would be read as
        often.

        Where this is known before, nothing is written (`_can_improve`).
        """
        old = [file for file in _files_of(table, task) if file.rows]
        if task.deleted or len(task.leaves) > 1 or len(old) < len(task.fragments):
            return True
        if any(each.sorted for each in made) and not all(file.sorted for file in old):
            return True
        before = sorted((self._bounds(file) or ((), ()), file.rows) for file in old)
        after = sorted(((each.clustered.low, each.clustered.high), each.rows) for each in made if each.clustered)
        if before != after:
            return True
        self._best.update(task.fragments)
        return False

    def mark(self, table: OpenTable) -> None:
        """Records the bounds of files that would not change; they count as clustered, and stay."""
        files = [file for number in sorted(self._best) if (file := table.state.files.get(number)) is not None]
        unknown = [file for file in files if file.clustering != self._arrangement.name and self._bounds(file) is None]
        self._survey(table.dataset(), unknown, self._on_progress)  # files of loads during the run
        marked = []
        for file in files:
            bounds = self._bounds(file)
            if file.clustering != self._arrangement.name and bounds is not None:
                low, high = bounds
                name = self._arrangement.name
                marked.append(replace(file, clustering=name, cluster_min=low, cluster_max=high))
        if marked:
            ids, state = tuple(file.fragment_id for file in marked), table.state
            unchanged = to_place_files(ids, state.lance_version, state.dataset)
            with suppress(Conflict):  # another process changed the table: the next run checks again
                replaced = FilesReplaced(ids, tuple(marked), state.lance_version)
                table.store.commit(state.table_id, [replaced], unchanged)

    def clusteredness(self, table: OpenTable, on_progress: OnProgress | None = None) -> ClusteringQuality:
        """Returns the overlap depth of each leaf. It reads the columns of files that are not clustered."""
        files = list(table.state.files)
        unknown = [file for file in files if file.clustering != self._arrangement.name and file.rows]
        self._survey(table.dataset(), unknown, on_progress or self._on_progress)
        leaves: dict[str, Depth] = {}
        for leaf in table.state.leaves():
            own = [(file, self._bounds(file)) for file in table.state.files.for_partition(leaf.partition_id)]
            boxes = [(bounds, file.rows) for file, bounds in own if bounds is not None]
            if boxes:
                leaves[leaf.partition_id] = overlap_depth(boxes)
        return ClusteringQuality(leaves, sum(file.clustering == self._arrangement.name for file in files))

    def _jobs(self, table: OpenTable, dataset: LanceDataset, tasks: Sequence[Task]) -> list[Arrange | Shuffle]:
        wanted = [table.state.files.get(number) for task in tasks for number in task.fragments]
        self._survey(dataset, [file for file in wanted if file is not None], self._on_progress)
        points = dict(zip((leaf.partition_id for leaf in table.state.leaves()[1:]), table.splits, strict=True))
        layout = replace(table.layout(), max_rows_per_file=self._sizes.file_rows)
        found: list[Arrange | Shuffle] = []
        for task in tasks:
            own = _files_of(table, task)
            samples = samples_of([self._known[_key(file)] for file in own if file.rows], len(self._arrangement.columns))
            arrange = Arrange(
                version=int(dataset.version),
                fragments=task.fragments,
                ranges=Ranges(tuple(points[name] for name in task.leaves[1:]), task.leaves),
                layout=layout,
                arrangement=self._arrangement,
                scales=self._arrangement.scales(samples),
                sizes=self._sizes,
                rows=task.rows,
                bytes=task.bytes,
            )
            large = task.bytes > HELD_BYTES and len(task.leaves) == 1 and bool(samples)
            found.append(Shuffle.of(arrange, samples) if large else arrange)
        return found

    def _survey(self, dataset: LanceDataset, files: Sequence[File], on_progress: OnProgress) -> None:
        new = {file.fragment_id: file for file in files if file.rows and _key(file) not in self._known}
        if new:
            found = survey(
                dataset,
                self._arrangement,
                {number: file.rows for number, file in new.items()},
                lambda done: on_progress(Progress("looking at files", done, len(new), "files")),
            )
            self._known.update((_key(new[number]), each) for number, each in found.items())

    def _bounds(self, file: File) -> Bounds | None:
        if file.clustering == self._arrangement.name:
            return file.cluster_min, file.cluster_max
        known = self._known.get(_key(file))
        return known.bounds if known is not None else None

    def _place(self, piece: Piece) -> Any:
        """Returns the position of the file, by the least values of the columns."""
        bounds = self._bounds(piece.file)
        return (bounds is None, bounds or (), piece.file.fragment_id)


def _files_of(table: OpenTable, task: Task) -> list[File]:
    """Returns the recorded files of a task."""
    return [file for number in task.fragments if (file := table.state.files.get(number)) is not None]


def _key(file: File) -> tuple[int, int]:
    return file.fragment_id, file.rows
