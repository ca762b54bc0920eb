"""A run that writes columns: it claims fragments, computes their values, and commits them group by group.

Other writers continue meanwhile: they add and delete rows, and rewrite fragments that are not claimed. After the last
fragment, the run lists fragments that are new, until it finds none. Therefore the result is the same as if the values
had been written after all other changes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from deployer.columns.fill.added_columns import add_columns
from deployer.columns.fill.checkpoint_sizes import CheckpointSizes
from deployer.columns.fill.checkpoints import Checkpoint, JobFolder
from deployer.columns.fill.commit import Filling, commit_columns, record_done
from deployer.columns.fill.executor import Executor, InThreads
from deployer.columns.fill.fragment_file import FragmentWriter
from deployer.columns.fill.work import ColumnValues, FragmentWork, ValuesSource, works_of
from deployer.datasets.dataset import open_dataset
from deployer.errors import Conflict
from deployer.platform.system.failpoints import reached
from deployer.platform.system.memory import keep_little_memory, release_memory
from deployer.platform.system.progress import OnProgress, Progress
from deployer.runs.rewriting.index_builds import plans_by_size
from deployer.tables.layout.indexes.build import catch_up
from deployer.tables.open_table import OpenTable, open_entry

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

CACHE_BYTES = 2_000_000  #: size of Lance's cache of file metadata; small, because each fragment is read only once
ROUNDS = 100  #: most rounds in which fragments are listed that are new since the previous round


@dataclass(frozen=True, slots=True)
class FillSizes:
    """The sizes of the work: fragments in a commit (None: all), fragments at the same time, and rows of a batch."""

    commit_granularity: int | None = None
    concurrency: int = 8
    checkpoints: CheckpointSizes = CheckpointSizes()


@dataclass(frozen=True, slots=True)
class FillStats:
    """The figures of a run: the numbers of rows with values, fragments, commits, and bytes of the files. `reused` is
    the number of fragments with checkpoints of an earlier run."""

    rows: int = 0
    fragments: int = 0
    commits: int = 0
    bytes: int = 0
    reused: int = 0


class FillRun:
    """One run of a job. `document` describes the job; a run cannot resume a job with another description.

    Without an `executor`, fragments are written in threads of this process. An executor may compute values itself.
    """

    def __init__(
        self,
        filling: Filling,
        source: ValuesSource,
        values: ColumnValues,
        sizes: FillSizes,
        document: Mapping[str, Any],
        on_progress: OnProgress,
        executor: Executor | None = None,
    ) -> None:
        self.stats = FillStats()
        self._filling, self._source, self._sizes, self._on_progress = filling, source, sizes, on_progress
        self._document = document
        self._executor = executor or InThreads(sizes.concurrency)
        self._folder = JobFolder(filling.root, filling.entry.table_id, filling.job_id)
        self._writer = FragmentWriter(
            self._folder, filling.location, filling.entry.dataset, filling.target, values, sizes.checkpoints
        )
        self._saved: dict[int, Checkpoint] = {}
        self._parts: dict[int, list[range]] = {}  # the rows of saved parts of unfinished fragments
        self._done: dict[int, tuple[str | None, ...]] = {}  # the inputs of committed values, by fragment
        self._reusable: dict[int, Checkpoint] = {}
        self._lock, self._rows, self._of = threading.Lock(), 0, 0

    def fill(self) -> FillStats:
        """Writes the values of all fragments, and records that the job is complete.

        Raises the errors of the values; before the first commit, nothing is then changed. Raises Conflict where the run
        was ended or taken over, or where a change of the table or its columns prevents the rest of the work.
        """
        keep_little_memory()
        table = self._open()
        self._folder.begin(self._document, self._filling.address)
        self._saved, self._parts = self._folder.saved(), self._folder.saved_parts()
        try:
            table, todo = self._next(table)
        except BaseException:
            if not self._saved and not self._parts:
                self._folder.remove()
            raise
        for _ in range(ROUNDS):
            if not todo:
                break
            self._round(open_dataset(table.location, table.state.lance_version, metadata_cache_bytes=CACHE_BYTES), todo)
            todo = []  # frees the memory of a long list before the fragments are listed again
            table, todo = self._next(self._open())
        self._finish()
        return self.stats

    def _open(self) -> OpenTable:
        filling = self._filling
        table = open_entry(filling.store, filling.root, filling.store.instance().tables[filling.entry.table_id])
        filling.require_held(table.state)
        return table

    def _next(self, table: OpenTable) -> tuple[OpenTable, list[FragmentWork]]:
        """Prepares the next fragments. Returns the table, which then has all columns, and the fragments."""
        filling = self._filling
        dataset = table.dataset()
        found = works_of(dataset, filling.target, filling.inputs)
        todo = [work for work in found if not self._is_done(work)]
        if filling.select is not None:
            todo = filling.select(table, dataset, todo)
        self._reusable = {work.fragment_id: saved for work in todo if (saved := self._checkpoint(work)) is not None}
        self._source.prepare(dataset, [work for work in todo if work.fragment_id not in self._reusable])
        reached("columns.run.prepared")
        if set(filling.target.names) <= set(dataset.schema.names):
            filling.require_columns(dataset)
            return table, todo
        add_columns(filling.store, filling.root, filling.entry.table_id, filling.target)
        reached("columns.run.added")
        table = self._open()
        known = {(work.fragment_id, work.inputs) for work in todo}
        again = works_of(table.dataset(), filling.target, filling.inputs)
        return table, [work for work in again if (work.fragment_id, work.inputs) in known]

    def _is_done(self, work: FragmentWork) -> bool:
        if self._done.get(work.fragment_id) == work.inputs:
            return True
        saved = self._saved.get(work.fragment_id)
        if saved is not None and saved.is_committed(self._filling.entry.dataset, work):
            self._done[work.fragment_id] = work.inputs
            return True
        return False

    def _checkpoint(self, work: FragmentWork) -> Checkpoint | None:
        """Returns the checkpoint of the fragment by an earlier run, if its files are complete."""
        saved = self._saved.get(work.fragment_id)
        if saved is None or not saved.holds(self._filling.entry.dataset, work):
            return None
        return saved if saved.is_whole(self._filling.location) else None

    def _round(self, dataset: LanceDataset, todo: Sequence[FragmentWork]) -> None:
        size = self._sizes.commit_granularity or len(todo)
        self._rows, self._of = 0, sum(work.physical_rows for work in todo)
        for start in range(0, len(todo), size):
            group = todo[start : start + size]
            if not self._filling.claim([work.fragment_id for work in group]):
                return  # some fragments were rewritten; the next round lists the new ones
            reached("columns.run.claimed")
            written = self._written(dataset, group)
            release_memory()  # a commit takes the most memory: it reads the list of all fragments and makes a new one
            committed = commit_columns(self._filling, written)
            done = [each for each in written if each.work.fragment_id in committed]
            rows = {work.fragment_id: work.rows for work in group}  # checkpoints have no number of deleted rows
            self._done.update((each.work.fragment_id, each.work.inputs) for each in done)
            for each in done:  # `_done` replaces their checkpoints
                self._saved.pop(each.work.fragment_id, None)
            release_memory()
            self.stats = replace(
                self.stats,
                rows=self.stats.rows + sum(rows[each.work.fragment_id] for each in done),
                fragments=self.stats.fragments + len(done),
                commits=self.stats.commits + bool(done),
                bytes=self.stats.bytes + sum(file.bytes for each in done for file in each.files),
            )

    def _written(self, dataset: LanceDataset, group: Sequence[FragmentWork]) -> list[Checkpoint]:
        """Writes the files with the fragments' values, and returns a checkpoint for each fragment."""
        known = [saved for work in group if (saved := self._reusable.get(work.fragment_id)) is not None]
        self.stats = replace(self.stats, reused=self.stats.reused + len(known))
        self._count(sum(each.work.physical_rows for each in known))
        todo = [work for work in group if work.fragment_id not in self._reusable]
        made = self._executor.written(self._writer, dataset, todo, self._parts, self._count, self._tick)
        self._saved.update((each.work.fragment_id, each) for each in made)
        self._filling.admit()
        return [*known, *made]

    def _count(self, rows: int) -> None:
        with self._lock:
            self._rows += rows

    def _tick(self) -> None:
        names = ", ".join(self._filling.target.names)
        self._on_progress(Progress(f"writing {names}", min(self._rows, self._of), self._of))

    def _finish(self) -> None:
        filling = self._filling
        for attempt in range(10):
            try:
                record_done(filling, self.stats.rows)
                break
            except Conflict:
                filling.require_held(filling.store.table(filling.entry.table_id))
                if attempt == 9:
                    raise
        reached("columns.run.recorded")
        plan_build = plans_by_size(filling.store.instance)
        catch_up(filling.store, filling.root, filling.entry.table_id, self._on_progress, plan_build)
        self._folder.remove()
