"""COMPACT of one table: plans, rewrites and commits portion by portion, then brings its indexes up to date."""

from __future__ import annotations

import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from deployer.errors import Conflict, Interrupted
from deployer.live.indexes import observed_indexes
from deployer.plan.words import count
from deployer.plan.words import size as size_words
from deployer.services.compact.copying import with_sizes
from deployer.services.compact.options import CompactOptions
from deployer.services.compact.pieces import as_work, by_indexes, planned
from deployer.services.compact.planning import Sizes, Task, in_portions
from deployer.services.compact.results import Compacted, Moment, Work
from deployer.services.compact.work import in_driver, with_spark
from deployer.services.replace import Rewritten, commit_rewritten
from deployer.state.services import FinalStatus
from deployer.tables.commit import discard
from deployer.tables.dataset import OpenTable, open_entry
from deployer.tables.indexes import CaughtUp, catch_up, join_parts
from deployer.tables.leaf_split import place_files
from deployer.tables.progress import OnProgress, Progress, untold

if TYPE_CHECKING:
    import lance
    from pyspark.sql import SparkSession

Engine = Literal["auto", "spark", "driver"]

SMALL_BYTES = 2_000_000_000  #: up to here this process does it before a Spark job on the same machine would have
ROUNDS = 6  #: how often what is left is planned again: after conflicts, or after files were put into their leaves


def compact(
    table: OpenTable,
    options: CompactOptions,
    session: Callable[[], SparkSession],
    engine: Engine = "auto",
    on_progress: OnProgress = untold,
    run_id: str | None = None,
) -> Compacted:
    """Merges small files of each leaf, drops deleted rows, and puts files into the leaves that their keys fit.

    Each portion is a version of its own. Where `on_progress` raises Interrupted, or Ctrl-C is pressed, the run is over:
    portions committed until then stand, and indexes are left to the next load. Loads go on meanwhile. Raises Conflict
    when others change the files of every portion again and again.
    """
    started = time.monotonic()
    if place_files(table):
        table = _again(table)
    table = _with_whole_indexes(table, options, on_progress)
    before = Moment.of(table)
    run = _Run(options, session, engine, on_progress, run_id or uuid.uuid4().hex)
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
    return Compacted(
        table.entry.full_name,
        run.run_id,
        status,
        why,
        before,
        Moment.of(_again(table)),
        run.work,
        run.engine,
        run.reason,
        time.monotonic() - started,
        indexes,
    )


def _again(table: OpenTable) -> OpenTable:
    """With the newest state that is recorded; `refreshed` would go through all that was committed since its own."""
    return open_entry(table.store, table.root, table.entry)


def _with_whole_indexes(table: OpenTable, options: CompactOptions, on_progress: OnProgress) -> OpenTable:
    """With all fragments in one part of each index where others could not be joined, if there is anything to join."""
    dataset = table.dataset()
    if not by_indexes(table, dataset) or not observed_indexes(dataset):
        return table
    sizes = options.sizes(table.layout().max_rows_per_file)
    if planned(table, dataset, sizes, any_kind=True):
        catch_up(table.store, table.root, table.entry.table_id, on_progress)
        join_parts(table.store, table.root, table.entry.table_id)
    return _again(table)


class _Run:
    """One run: what it is to do, and what it has done."""

    def __init__(
        self,
        options: CompactOptions,
        session: Callable[[], SparkSession],
        engine: Engine,
        on_progress: OnProgress,
        run_id: str,
    ) -> None:
        self.run_id, self.work = run_id, Work()
        self.engine, self.reason = "none", "there was nothing to do"
        self._options, self._session, self._wanted, self._on_progress = options, session, engine, on_progress
        self._lock, self._rows, self._of = threading.Lock(), 0, 0
        self._refusal = ""  # of the last portion that could not be committed

    def rounds(self, table: OpenTable) -> None:
        """Plans and does what there is, and plans again what others changed or what placing files has left small."""
        sizes = self._options.sizes(table.layout().max_rows_per_file)
        most, portions = sys.maxsize, -1
        for _ in range(ROUNDS):
            table = _again(table)
            dataset = table.dataset()
            tasks = planned(table, dataset, sizes)
            rows = sum(task.rows for task in tasks)
            if not tasks or rows > most:
                return
            conflicts, portions = self.work.conflicts, self.work.portions
            self._round(table, dataset, tasks, sizes)
            again = self.work.conflicts > conflicts or any(len(task.leaves) > 1 for task in tasks)
            most = sys.maxsize if again else rows // 2  # files that came out smaller than was thought
        if self.work.portions == portions:
            raise Conflict(
                f"no portion could be committed, {ROUNDS} times: {self._refusal}",
                where=table.address,
                remedy="run it again when fewer delete or update rows; loads are no hindrance",
            )

    def _round(self, table: OpenTable, dataset: lance.LanceDataset, tasks: Sequence[Task], sizes: Sizes) -> None:
        self.engine, self.reason = _engine(self._wanted, tasks)
        portions = in_portions(tasks, self._options.portion_bytes)
        if not table.layout().order:
            portions.reverse()  # a portion gives what follows it new numbers, so those that follow come first
        self._rows, self._of = 0, sum(task.rows for task in tasks)
        for portion in portions:
            self._portion(table, dataset, portion, sizes)

    def _portion(self, table: OpenTable, dataset: lance.LanceDataset, tasks: Sequence[Task], sizes: Sizes) -> None:
        self._told(0)
        jobs = as_work(table, dataset, tasks, sizes)
        if self.engine == "spark":
            made = with_spark(self._session(), table.location, jobs, self._told)
        else:
            made = in_driver(dataset, jobs, self._told)
        self._told(0)  # the last moment at which it can be stopped
        written = [each for group in made for each in group]
        with_sizes(table.location, written)
        there = {each.fragment_id: each for each in dataset.get_fragments()}
        old = [[there[number].metadata for number in task.fragments] for task in tasks]
        rewritten = [Rewritten(tuple(before), tuple(after)) for before, after in zip(old, made, strict=True)]
        job_id = f"{self.run_id}-{uuid.uuid4().hex[:8]}"  # never one of a process that had the run before
        try:
            commit_rewritten(
                table.store,
                table.root,
                table.entry,
                job_id,
                "compact",
                rewritten,
                read_version=int(dataset.version),
                keep_order=not table.layout().order,
            )
        except Conflict as conflict:
            discard(table.location, written)
            self._refusal = conflict.what
            self.work = replace(self.work, conflicts=self.work.conflicts + 1)
            return
        self.work = Work(
            self.work.tasks + len(tasks),
            self.work.portions + 1,
            self.work.conflicts,
            self.work.rows + sum(task.rows for task in tasks),
            self.work.deleted_rows + sum(task.deleted for task in tasks),
            self.work.bytes_read + sum(file.file_size_bytes or 0 for each in old for f in each for file in f.files),
            self.work.bytes_written + sum(each.bytes for each in written),
        )

    def _told(self, rows: int) -> None:
        with self._lock:
            self._rows += rows
            now = Progress("compacting", min(self._rows, self._of), self._of)
        self._on_progress(now)


def _engine(wanted: Engine, tasks: Sequence[Task]) -> tuple[str, str]:
    size = sum(task.bytes for task in tasks)
    amount = f"{count(len(tasks), 'task')}, {size_words(size)}"
    if wanted != "auto":
        return wanted, f"as asked for ({amount})"
    if size <= SMALL_BYTES or len(tasks) == 1:
        return "driver", f"{amount}: this process is quicker than a Spark job"
    return "spark", f"{amount}: more than {size_words(SMALL_BYTES)}"
