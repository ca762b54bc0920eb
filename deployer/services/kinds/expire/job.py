"""A run of EXPIRE. One commit drops files in which all rows are expired, and deletes expired rows of other files."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deployer.datasets.ordering.clustering import field_of
from deployer.live.reader import holds_of
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.text.formatting import count
from deployer.runs.rewriting.run import TableStats, again
from deployer.services.kinds.expire.expired_files import Cutoff, ExpiredFiles, cutoff_of, expired_files
from deployer.services.kinds.expire.results import ExpireResult
from deployer.state.model.entities import RowCounts
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.change import FragmentCounts, RowPlan, leaf_changes, total
from deployer.tables.rows.commit import RowJob
from deployer.tables.rows.holds import held_rows, without_held
from deployer.tables.rows.matching import Deletions, rows_by_partition
from deployer.tables.rows.tasks import RunTasks, first_error, run_here, tasks_of

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset


def expire(
    table: OpenTable,
    dry_run: bool = False,
    on_progress: OnProgress = no_progress,
    run_id: str = "",
    now: float | None = None,
    run_tasks: RunTasks = run_here,
) -> ExpireResult:
    """Removes the rows of a table that are older than its retention at `now` (seconds since 1970), as one version.

    Rows under a legal hold stay. `run_tasks` runs the search for rows, which has separate tasks for each leaf, such as
    with Spark. Raises Refused for a table without retention, and Interrupted where `on_progress` raises it; then
    nothing is removed.
    """
    started = time.monotonic()
    at = time.time() if now is None else now
    cutoff = cutoff_of(table.state, table.schema, table.address, at)
    before = TableStats.of(table)
    files = Deletions(table.location)
    dropped = ExpiredFiles()

    def plan(newest: OpenTable, dataset: LanceDataset) -> RowPlan:
        nonlocal dropped
        on_progress(Progress("looking for expired rows", 0, newest.state.files.rows, "rows"))
        dropped, made = _planned(newest, dataset, cutoff, files, run_tasks, dry_run=dry_run)
        return made

    done = RowJob("expire", plan, files, f"{run_id}-expire" if run_id else None, dry_run, may_empty=True).run(table)
    held = held_rows(again(table), cutoff.where)
    moment = dt.datetime.fromtimestamp(cutoff.at, dt.UTC).isoformat().replace("+00:00", "Z")
    kept = sum(each.rows for each in held)
    stay = f"; {count(kept, 'expired row stays', 'expired rows stay')} under legal hold" if kept else ""
    why = stay.removeprefix("; ")
    if not done.rows:
        why = f"no row before {moment} is left to remove{stay}"
    elif dry_run:
        why = f"dry run: would remove {count(done.rows, 'row')} before {moment}{stay}"
    return ExpireResult(
        table=table.entry.full_name,
        run_id=run_id,
        status="SUCCEEDED" if done.rows else "SKIPPED",
        why=why,
        dry_run=dry_run,
        column=cutoff.column,
        before_time=moment,
        rows=done.rows,
        whole_rows=dropped.rows,
        whole_files=len(dropped.whole),
        held_rows=kept,
        holds=tuple(each.hold.name for each in held),
        before=before,
        after=before if dry_run else TableStats.of(again(table)),
        seconds=time.monotonic() - started,
    )


def _planned(
    table: OpenTable, dataset: LanceDataset, cutoff: Cutoff, files: Deletions, run_tasks: RunTasks, *, dry_run: bool
) -> tuple[ExpiredFiles, RowPlan]:
    """Returns the files that are dropped as a whole, and the plan for all expired rows.

    In a table with legal holds, every file that may have expired rows is read, since each may have rows that stay.
    """
    field = field_of(dataset, cutoff.column)
    found = expired_files(table.state, cutoff, None if field is None else field.id())
    if holds_of(table.state):
        found = ExpiredFiles((), (*found.whole, *found.mixed))
    offsets: dict[int, Any] = {}
    if found.mixed:
        mixed = frozenset(file.fragment_id for file in found.mixed)
        tasks = tasks_of(table, dataset, without_held(table, cutoff.where), in_parts=True, only=mixed)
        done = run_tasks(dataset, tasks)
        if error := first_error(done):
            raise error
        offsets = {number: rows for part in done for number, rows in part.offsets.items()}
    whole = {file.fragment_id: file.rows for file in found.whole}
    gone: Mapping[int, int] = {**whole, **{number: len(rows) for number, rows in offsets.items()}}
    leaves = leaf_changes((leaf, RowCounts(deleted=n)) for leaf, n in rows_by_partition(table, gone))
    version = table.state.lance_version
    if dry_run:
        counts = FragmentCounts(len(offsets), len(whole))
        return found, RowPlan(version, total(leaves), leaves, counts)
    changed, emptied = files.without(dataset, offsets)
    removed = (*whole, *emptied)
    counts = FragmentCounts(len(changed), len(removed))
    return found, RowPlan(version, total(leaves), leaves, counts, changed, removed, why=cutoff.where)
