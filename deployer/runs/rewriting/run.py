"""A run of COMPACT or CLUSTER that rewrites files of a table.

The run is planned, written and committed in portions. Each portion is a separate version. The run ends where
`on_progress` raises Interrupted or the user presses Ctrl-C; committed portions stay. Loads continue meanwhile. A
portion whose files another process changed is planned again.
"""

from __future__ import annotations

import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from deployer.datasets.dataset import versions_written
from deployer.datasets.files.binary_copy import with_sizes
from deployer.datasets.files.writer import WrittenFragment, discard
from deployer.datasets.indexes.read import observed_indexes
from deployer.datasets.lance_transactions import RewrittenGroup
from deployer.errors import Conflict
from deployer.platform.files.json_values import JSON
from deployer.platform.system.progress import OnProgress, Progress
from deployer.platform.text.formatting import count, size
from deployer.runs.rewriting.executor import OnRows
from deployer.runs.rewriting.replace import commit_rewritten
from deployer.runs.rewriting.tasks import Task, in_batches
from deployer.tables.layout.indexes.build import catch_up, join_parts
from deployer.tables.open_table import OpenTable, ReadTable, open_entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset

Engine = Literal["auto", "spark", "driver"]

SMALL_BYTES = 2_000_000_000  #: up to this size, this process is faster than a Spark job on the same machine
ROUNDS = 6  #: how often the rest is planned again: after conflicts, or after files were put into their leaves


class Rewriting(Protocol):
    """The rewriting of a service. `kind` is the kind of its jobs, and `doing` is the text for progress."""

    @property
    def kind(self) -> str: ...

    @property
    def doing(self) -> str: ...

    @property
    def portion_bytes(self) -> int: ...

    def keep_order(self, table: OpenTable) -> bool:
        """Returns whether files after the rewritten ones have to stay after them."""

    def tasks(self, table: OpenTable, dataset: LanceDataset, *, any_kind: bool = False) -> Sequence[Task]:
        """Returns the tasks. With `any_kind`, plans as if all files were in the same parts of indexes."""

    def written(
        self,
        table: OpenTable,
        dataset: LanceDataset,
        tasks: Sequence[Task],
        session: Callable[[], SparkSession] | None,
        on_rows: OnRows,
    ) -> list[list[WrittenFragment]]:
        """Writes the new fragments of each task, with Spark if a session is given, and returns them."""

    def is_better(self, table: OpenTable, task: Task, made: Sequence[WrittenFragment]) -> bool:
        """Returns whether the new fragments of a task are to replace the old ones."""


@dataclass(frozen=True, slots=True)
class TableStats:
    """The figures of a table at one time. `rows` counts live rows; `bytes` is the size of the version's files."""

    files: int
    rows: int
    bytes: int
    versions: int
    lance_version: int

    @staticmethod
    def of(table: OpenTable) -> TableStats:
        files = table.state.files
        versions = len(versions_written(table.location))
        return TableStats(files.count, files.rows, files.bytes, versions, table.state.lance_version)

    def as_json(self) -> dict[str, JSON]:
        return {"files": self.files, "rows": self.rows, "bytes": self.bytes, "versions": self.versions}


@dataclass(frozen=True, slots=True)
class RewriteStats:
    """The figures of committed work. `rows` rows and `bytes_read` bytes were rewritten into `bytes_written` bytes.

    `deleted_rows` counts the dropped rows. `conflicts` counts portions that were planned again because others changed
    their files meanwhile.
    """

    tasks: int = 0
    portions: int = 0
    conflicts: int = 0
    rows: int = 0
    deleted_rows: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


def again(table: OpenTable) -> OpenTable:
    """Returns the table with the newest recorded state; `refreshed` would read all commits since its own state."""
    return open_entry(table.store, table.root, table.entry)


def with_whole_indexes(table: OpenTable, rewriting: Rewriting, on_progress: OnProgress) -> OpenTable:
    """Joins the parts of each index, so that the fragments of all parts can be joined; returns the table after that.

    Does nothing where indexes do not limit the joining of fragments, or where the rewriting has no tasks.
    """
    dataset = table.dataset()
    if not by_indexes(table, dataset) or not observed_indexes(dataset):
        return table
    if rewriting.tasks(table, dataset, any_kind=True):
        catch_up(table.store, table.root, table.entry.table_id, on_progress)
        join_parts(table.store, table.root, table.entry.table_id)
    return again(table)


class RewriteRun:
    """One run: its tasks and its completed work."""

    def __init__(
        self,
        rewriting: Rewriting,
        session: Callable[[], SparkSession],
        engine: Engine,
        on_progress: OnProgress,
        run_id: str | None,
    ) -> None:
        self.run_id, self.work = run_id or uuid.uuid4().hex, RewriteStats()
        self.engine, self.reason = "none", "there was nothing to do"
        self._rewriting, self._session, self._wanted, self._on_progress = rewriting, session, engine, on_progress
        self._lock, self._rows, self._of = threading.Lock(), 0, 0
        self._refusal = ""  # error of the last portion that could not be committed

    def rounds(self, table: OpenTable) -> None:
        """Plans and runs the tasks.

        Plans again for files that others changed, and for small files that remain after files were placed. Raises
        Conflict where others repeatedly change the files of every portion.
        """
        most, portions = sys.maxsize, -1
        for _ in range(ROUNDS):
            table = again(table)
            dataset = table.dataset()
            tasks = self._rewriting.tasks(table, dataset)
            rows = sum(task.rows for task in tasks)
            if not tasks or rows > most:
                return
            conflicts, portions = self.work.conflicts, self.work.portions
            self._round(table, dataset, tasks)
            plans_again = self.work.conflicts > conflicts or any(len(task.leaves) > 1 for task in tasks)
            most = sys.maxsize if plans_again else rows // 2  # the files became smaller than estimated
        if self.work.portions == portions:
            raise Conflict(
                f"no portion could be committed, {ROUNDS} times: {self._refusal}",
                where=table.address,
                remedy="run it again when fewer processes delete or update rows; loads do not conflict",
            )

    def _round(self, table: OpenTable, dataset: LanceDataset, tasks: Sequence[Task]) -> None:
        self.engine, self.reason = _engine(self._wanted, tasks)
        portions = in_batches(tasks, self._rewriting.portion_bytes)
        if self._rewriting.keep_order(table):
            portions.reverse()  # a portion changes the numbers of later fragments, so later portions run first
        self._rows, self._of = 0, sum(task.rows for task in tasks)
        for portion in portions:
            self._portion(table, dataset, portion)

    def _portion(self, table: OpenTable, dataset: LanceDataset, tasks: Sequence[Task]) -> None:
        self._report_rows(0)
        session = self._session if self.engine == "spark" else None
        made = self._rewriting.written(table, dataset, tasks, session, self._report_rows)
        self._report_rows(0)  # the last point at which the portion can be stopped
        better = [self._rewriting.is_better(table, task, own) for task, own in zip(tasks, made, strict=True)]
        discard(table.location, [each for own, wins in zip(made, better, strict=True) if not wins for each in own])
        tasks = [task for task, wins in zip(tasks, better, strict=True) if wins]
        made = [own for own, wins in zip(made, better, strict=True) if wins]
        if not tasks:
            return
        written = [each for group in made for each in group]
        with_sizes(table.location, written)
        there = {each.fragment_id: each for each in dataset.get_fragments()}
        old = [[there[number].metadata for number in task.fragments] for task in tasks]
        rewritten = [RewrittenGroup(tuple(before), tuple(after)) for before, after in zip(old, made, strict=True)]
        job_id = f"{self.run_id}-{uuid.uuid4().hex[:8]}"  # differs from ids of a process that held the run before
        try:
            commit_rewritten(
                table.store,
                table.root,
                table.entry,
                job_id,
                self._rewriting.kind,
                rewritten,
                read_version=int(dataset.version),
                keep_order=self._rewriting.keep_order(table),
            )
        except Conflict as conflict:
            discard(table.location, written)
            self._refusal = conflict.what
            self.work = replace(self.work, conflicts=self.work.conflicts + 1)
            return
        self.work = RewriteStats(
            self.work.tasks + len(tasks),
            self.work.portions + 1,
            self.work.conflicts,
            self.work.rows + sum(task.rows for task in tasks),
            self.work.deleted_rows + sum(task.deleted for task in tasks),
            self.work.bytes_read + sum(file.file_size_bytes or 0 for each in old for f in each for file in f.files),
            self.work.bytes_written + sum(each.bytes for each in written),
        )

    def _report_rows(self, rows: int) -> None:
        with self._lock:
            self._rows += rows
            now = Progress(self._rewriting.doing, min(self._rows, self._of), self._of)
        self._on_progress(now)


def _engine(wanted: Engine, tasks: Sequence[Task]) -> tuple[str, str]:
    read = sum(task.bytes for task in tasks)
    amount = f"{count(len(tasks), 'task')}, {size(read)}"
    if wanted != "auto":
        return wanted, f"as asked for ({amount})"
    if read <= SMALL_BYTES or len(tasks) == 1:
        return "driver", f"{amount}: this process is quicker than a Spark job"
    return "spark", f"{amount}: more than {size(SMALL_BYTES)}"


def by_indexes(table: ReadTable, dataset: LanceDataset) -> bool:
    """Returns whether fragments in a part of an index cannot be joined with fragments outside of the part.

    With stable row ids, Lance refuses to join them, so that it can keep indexes through a rewrite. Lance's own tasks
    never join them.
    """
    return bool(dataset.has_stable_row_ids) or not table.layout().order
