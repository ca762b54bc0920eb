"""Deletes rows: in place, by Lance's deletion files, and by removing fragments that have no row left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.state.model.entities import RowCounts
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.change import FragmentCounts, Offsets, RowChange, RowPlan, leaf_changes, total
from deployer.tables.rows.commit import RowJob
from deployer.tables.rows.holds import ALL, refuse_held
from deployer.tables.rows.matching import Deletions, rows_by_partition
from deployer.tables.rows.tasks import RunTasks, run_here, tasks_of

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


def delete_rows(
    table: OpenTable,
    where: str | None,
    *,
    job_id: str | None = None,
    kind: str = "delete",
    dry_run: bool = False,
    allow_destroy: bool = False,
    on_progress: OnProgress = no_progress,
    run_tasks: RunTasks = run_here,
) -> RowChange:
    """Deletes the rows for which the SQL condition is true, as one version; None deletes all.

    A condition that is null for a row does not delete it. `kind` names the job in the log and in `history`. With the id
    of a job that is done, nothing is deleted. The rows stay in earlier versions, savepoints included. `run_tasks` looks
    for the rows elsewhere, by leaf.

    Raises InvalidInput for a condition that cannot be used; Refused where no row would be left of a table that is
    protected from deletion, unless `allow_destroy`; Conflict and OutcomeUnknown as `RowJob.run`.
    """
    files = Deletions(table.location)

    def plan(now: OpenTable, dataset: LanceDataset) -> RowPlan:
        refuse_held(now, ALL if where is None else where, "deleted")
        on_progress(Progress("looking for rows", 0, now.state.files.rows))
        if where is None:
            return _of_all(now)
        found: dict[int, Any] = {}
        for done in run_tasks(dataset, tasks_of(now, dataset, where, in_parts=run_tasks is not run_here)):
            if done.error is not None:
                raise done.error
            found |= done.offsets
        on_progress(Progress("deleting", 0, sum(map(len, found.values()))))
        return deletion(now, dataset, found, files, dry_run=dry_run, why=where)

    return RowJob(kind, plan, files, job_id, dry_run, allow_destroy).run(table)


def deletion(
    table: OpenTable, dataset: LanceDataset, offsets: Offsets, files: Deletions, *, dry_run: bool, why: str
) -> RowPlan:
    """Returns the plan that removes these rows. In a dry run no deletion file is written."""
    state = table.state
    counts = {number: len(rows) for number, rows in offsets.items()}
    leaves = leaf_changes((leaf, RowCounts(deleted=n)) for leaf, n in rows_by_partition(table, counts))
    if dry_run:
        whole = sum((file := state.files.get(i)) is not None and file.rows == n for i, n in counts.items())
        return RowPlan(state.lance_version, total(leaves), leaves, FragmentCounts(len(counts) - whole, whole))
    changed, removed = files.without(dataset, offsets)
    fragments = FragmentCounts(len(changed), len(removed))
    return RowPlan(state.lance_version, total(leaves), leaves, fragments, changed, removed, why=why)


def _of_all(table: OpenTable) -> RowPlan:
    """Returns the plan that removes every fragment; nothing is read."""
    counts = {file.fragment_id: file.rows for file in table.state.files}
    leaves = leaf_changes((leaf, RowCounts(deleted=n)) for leaf, n in rows_by_partition(table, counts))
    removed = tuple(sorted(counts))
    fragments = FragmentCounts(removed=len(removed))
    return RowPlan(table.state.lance_version, total(leaves), leaves, fragments, removed_ids=removed)
