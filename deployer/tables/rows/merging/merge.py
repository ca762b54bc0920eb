"""Merges rows into a table: source rows whose key the table has update or delete rows, and the others are inserted.

Of the fragments whose ranges can contain a key of the source, only the columns by which rows are matched are read.
Other columns are read only for matched rows, and only if the source does not have them. A source with more rows than
one part (`source_parts`) is written to files on disk and merged part by part. Spark's tasks do this if much data has to
be scanned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deployer.datasets.files.writer import discard
from deployer.live.reader import has_unique_keys
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.state.model.entities import RowCounts
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.candidates import files_in
from deployer.tables.rows.change import FragmentCounts, RowChange, RowPlan, leaf_changes, total
from deployer.tables.rows.commit import RowJob, moved
from deployer.tables.rows.holds import refuse_held_addresses
from deployer.tables.rows.matching import Deletions, addresses_of, offsets_of, rows_by_partition
from deployer.tables.rows.merging.part import CheckTask, MergeDone, MergePart, MergeTarget, MergeTask
from deployer.tables.rows.merging.rules import MergeRules
from deployer.tables.rows.merging.source_parts import MergeInput, merge_input
from deployer.tables.rows.new_rows import among, refuse_taken_keys, written_keys
from deployer.tables.rows.source import RepeatedKeys, keys_of, refuse_repeated
from deployer.tables.rows.tasks import (
    DoneT,
    RowTask,
    RunTasks,
    first_error,
    place_of,
    run_here,
    tasks_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

#: The maximum numbers of rows of the table that one task scans: in this process, which keeps all matches in memory, and
#: in other processes.
ROWS_HERE = 33_554_432
ROWS_ELSEWHERE = 4_194_304


def merge_rows(
    table: OpenTable,
    rows: Any,
    on: Sequence[str] | str | None = None,
    rules: MergeRules = MergeRules(),  # noqa: B008 (it is frozen)
    *,
    job_id: str | None = None,
    kind: str = "merge",
    dry_run: bool = False,
    allow_destroy: bool = False,
    indexes: bool = True,
    sources: str = "",
    on_progress: OnProgress = no_progress,
    run_tasks: RunTasks = run_here,
) -> RowChange:
    """Merges rows by the columns `on` (the row keys by default), as one version.

    `rows` are an Arrow table or batch, a RecordBatchReader, a DataFrame of pandas or polars, or a list of dicts. A
    column that they do not have keeps its value in updated rows, and gets its default, or null, in inserted rows. A key
    with a null does not match any row. If several rows of the table have the same key, all of them are updated.
    `run_tasks` runs the work in other processes. `indexes`: the table's indexes are updated afterwards.

    Raises Refused, with examples, if two of the rows have the same key, for values that do not fit, and for unique keys
    that another row has. Raises InvalidInput for columns that cannot be used. Otherwise it raises as `delete_rows`
    does.
    """
    rules.check(table.address)
    files = Deletions(table.location)
    with ExitStack() as opened:
        given: list[MergeInput] = []

        def plan(now: OpenTable, dataset: LanceDataset) -> RowPlan:
            if not given:
                on_progress(Progress("reading the rows", 0, None, "rows"))
                given.append(opened.enter_context(merge_input(rows, on, now)))
            if keys_of(on, now) != given[0].on:
                raise moved(now, "its row keys were changed meanwhile")
            return _Merge(now, dataset, given[0], rules, run_tasks, on_progress).plan(files, dry_run=dry_run)

        job = RowJob(kind, plan, files, job_id, dry_run, allow_destroy, sources, indexes=indexes)
        return job.run(table)


@dataclass(frozen=True, slots=True)
class _Merge:
    """A merge on one version of the table."""

    table: OpenTable
    dataset: LanceDataset
    source: MergeInput
    rules: MergeRules
    run_tasks: RunTasks
    on_progress: OnProgress

    def plan(self, files: Deletions, *, dry_run: bool) -> RowPlan:
        """Returns the plan of the merge. Finds the matching rows, and writes the new rows and the deletion files of the
        removed rows."""
        done = self._merged(dry_run=dry_run)
        written = [each for part in done for each in part.written]
        try:
            matched = np.sort(np.concatenate([np.zeros(0, np.uint64), *(part.addresses for part in done)]))
            deleted = self._not_in_source(matched)
            gone = deleted if self.rules.when_matched == "ignore" else np.sort(np.concatenate([matched, deleted]))
            refuse_held_addresses(self.table, gone, "changed")
            leaves = leaf_changes(self._counts(done, matched, deleted))
            if dry_run:
                made = self._foreseen(gone, sum(bool(each.counts.updated or each.counts.inserted) for each in leaves))
                return RowPlan(int(self.dataset.version), total(leaves), leaves, made)
            compared = has_unique_keys(self.table.state) and bool(written)
            if compared and {*self.source.on} != {*self.table.row_keys}:
                refuse_taken_keys(self.table, self.dataset, written_keys(self.table, written), gone)
            changed, removed = files.without(self.dataset, offsets_of([gone]))
        except BaseException:
            discard(self.table.location, written)
            raise
        made = FragmentCounts(len(changed), len(removed), len(written))
        version = int(self.dataset.version)
        return RowPlan(version, total(leaves), leaves, made, changed, removed, tuple(written), compared)

    def _merged(self, *, dry_run: bool) -> list[MergeDone]:
        """Returns the results of the tasks. Raises the error of a failed task; then all files that tasks wrote are
        removed."""
        target = MergeTarget.of(self.table, self.dataset)
        parts = [MergePart(target, self.source.on, each) for each in self.source.parts]
        checks = self._run([CheckTask(part) for part in parts], "reading the rows")
        if error := first_error(checks):
            raise error
        repeated = RepeatedKeys()
        for each in checks:
            repeated = repeated.joined(each.repeated)
        refuse_repeated(repeated, self.table)
        reached("tables.merge.rows-checked")
        tasks, several = list[MergeTask](), dict[int, MergePart]()
        for number, (part, check) in enumerate(zip(parts, checks, strict=True)):
            groups = self._groups({file.fragment_id: file.rows for file in files_in(self.table, check.spans)})
            if len(groups) > 1:
                several[number] = part
            for group in groups:
                looked = sum(group.values()) + part.rows
                alone = len(groups) == 1
                tasks.append(MergeTask(part, self.rules, tuple(group), looked, inserts=alone, dry_run=dry_run))
        done = self._all_done(tasks, "merging", [])
        reached("tables.merge.parts-merged")
        inserts = []
        for part in several.values():
            bits = [each.found for task, each in zip(tasks, done, strict=True) if task.part is part]
            found = np.bitwise_or.reduce([np.frombuffer(each, np.uint8) for each in bits]).tobytes()
            inserts.append(MergeTask(part, self.rules, (), part.rows, dry_run=dry_run, found=found))
        return [*done, *self._all_done(inserts, "inserting", done)]

    def _all_done(self, tasks: Sequence[MergeTask], doing: str, before: Sequence[MergeDone]) -> list[MergeDone]:
        """Returns the results of the tasks. Raises the error of a failed task; then the files that they and the tasks
        of `before` wrote are removed."""
        done = list[MergeDone]()
        try:
            done = self._run(tasks, doing)
            if error := first_error(done):
                raise error
        except BaseException:
            discard(self.table.location, [each for part in (*before, *done) for each in part.written])
            raise
        return done

    def _run(self, tasks: Sequence[RowTask[DoneT]], doing: str) -> list[DoneT]:
        """Runs the tasks and returns their results. In this process, it reports progress by task."""
        if self.run_tasks is not run_here:
            return self.run_tasks(self.dataset, tasks)
        return run_here(
            self.dataset, tasks, lambda now: self.on_progress(Progress(doing, now.done, now.total, "parts"))
        )

    def _groups(self, rows: dict[int, int]) -> list[dict[int, int]]:
        """Returns the fragments of a part, with their numbers of rows, in one group for each task. There is at least
        one group."""
        most = ROWS_HERE if self.run_tasks is run_here else ROWS_ELSEWHERE
        groups: list[dict[int, int]] = [{}]
        for number in sorted(rows, key=lambda each: place_of(self.table, each)):
            if groups[-1] and sum(groups[-1].values()) + rows[number] > most:
                groups.append({})
            groups[-1][number] = rows[number]
        return groups

    def _not_in_source(self, matched: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Returns the addresses of rows to delete because the source does not have their keys."""
        none = np.zeros(0, np.uint64)
        if self.rules.when_not_matched_by_source == "keep":
            return none
        where = self.rules.where or "true"
        in_parts = self.run_tasks is not run_here
        done = self._run(tasks_of(self.table, self.dataset, where, in_parts=in_parts), "looking for other rows")
        if error := first_error(done):
            raise error
        found = np.sort(np.concatenate([none, *(addresses_of(part.offsets) for part in done)]))
        return found[~among(found, matched)]

    def _foreseen(self, gone: NDArray[np.uint64], new: int) -> FragmentCounts:
        """Returns the numbers of fragments for a dry run. `new` is one for each leaf with new rows, which is the
        minimum."""
        counts = {number: len(rows) for number, rows in offsets_of([gone]).items()}
        held = {i: file.rows for i in counts if (file := self.table.state.files.get(i)) is not None}
        whole = sum(held.get(i) == n for i, n in counts.items())
        return FragmentCounts(len(counts) - whole, whole, new)

    def _counts(
        self, done: Sequence[MergeDone], matched: NDArray[np.uint64], deleted: NDArray[np.uint64]
    ) -> Iterator[tuple[str | None, RowCounts]]:
        for partition, n in self._by_partition(matched):
            if self.rules.when_matched == "update":
                yield partition, RowCounts(updated=n)
            elif self.rules.when_matched == "delete":
                yield partition, RowCounts(deleted=n)
        for partition, n in self._by_partition(deleted):
            yield partition, RowCounts(deleted=n)
        for part in done:
            for partition, n in part.inserted.items():
                yield partition, RowCounts(inserted=n)

    def _by_partition(self, addresses: NDArray[np.uint64]) -> Iterator[tuple[str | None, int]]:
        counted = {number: len(rows) for number, rows in offsets_of([addresses]).items()}
        return rows_by_partition(self.table, counted)
