"""Erases rows of a table: the steps in their order, each of which can be repeated after a crash."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from deployer.datasets.commit.protocol import TableCommits
from deployer.datasets.commit_metadata import FENCE, CommitMetadata
from deployer.datasets.dataset import open_dataset
from deployer.datasets.indexes.read import observed_indexes, remembered_indexes
from deployer.datasets.lance_transactions import Fence
from deployer.datasets.storage.job_folders import ERRORS, WORK, job_files, remove_job_folder
from deployer.datasets.storage.places import dataset_uri
from deployer.datasets.storage.refs import delete_tag
from deployer.datasets.storage.removal import remove_dataset
from deployer.errors import Conflict, Refused
from deployer.live.former_datasets import former_datasets
from deployer.plan.assess.savepoints import OPTION, describe_savepoints
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.system.retry import Backoff
from deployer.runs.rewriting.row_tasks import tasks_by
from deployer.runs.rewriting.run import Engine, again
from deployer.services.erasure.counting import Values
from deployer.services.erasure.history import forget_keys
from deployer.services.erasure.planning import plan_erasure, values_of
from deployer.services.erasure.proof import proven
from deployer.services.erasure.results import ErasurePlan, ErasureResult
from deployer.services.erasure.rewrite import rewrite_files
from deployer.services.savepoints.savepoints import remove_savepoint
from deployer.state.log.service_updates import SavepointsExpired
from deployer.state.log.updates import DatasetRemoved
from deployer.tables.inspect.savepoint_tags import settle_tags
from deployer.tables.layout.indexes.build import build_or_empty
from deployer.tables.maintenance.collect.versions import remove_numbered
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.change import RowPlan
from deployer.tables.rows.commit import RowJob
from deployer.tables.rows.delete import deletion
from deployer.tables.rows.holds import refuse_held
from deployer.tables.rows.matching import Deletions
from deployer.tables.rows.tasks import RunTasks, count_rows, first_error, tasks_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deployer.datasets.lance_types import LanceDataset

ATTEMPTS = 8  #: attempts to make a version without the rows while others commit
_BACKOFF = Backoff(first=0.05, longest=2.0)


def erase(
    table: OpenTable,
    where: str,
    *,
    delete_savepoints: bool = False,
    allow_destroy: bool = False,
    on_progress: OnProgress = no_progress,
    engine: Engine = "auto",
    session: Callable[[], SparkSession] | None = None,
) -> ErasureResult:
    """Erases the rows for which the SQL condition is true from all stored data of the table, and reads the remaining
    data.

    Spark does large amounts of work, unless `engine` chooses otherwise; `session` starts it. A condition that is null
    for a row does not erase it. Data that another process needs at the moment stays, and the result reports it; a
    repeated call finishes the erasure. Raises InvalidInput for the condition; Refused where rows are under a legal
    hold, where a savepoint or a tag has them unless `delete_savepoints`, and where no row would be left of a table that
    is protected from deletion unless `allow_destroy`; Conflict where others change the table continuously.
    """
    table = table.refreshed()
    values = values_of(table, where)
    on_progress(Progress("reading all versions", 0, None, "versions"))
    session = session or _local_session
    run_tasks = tasks_by(engine, session, on_progress, "reading files")
    plan = plan_erasure(table, where, values, run_tasks)
    refuse_savepoints_of(plan, table.address, allowed=delete_savepoints)
    rows = _delete(table, where, on_progress, run_tasks, allow_destroy=allow_destroy)
    reached("services.erasure.deleted")
    table = again(table)
    rewritten = rewrite_files(table, plan.scans[0].files, on_progress, engine, session)
    reached("services.erasure.rewritten")
    indexes, foreign = _rebuild_indexes(again(table), on_progress)
    reached("services.erasure.indexed")
    on_progress(Progress("removing versions that hold the rows", 0, None, "versions"))
    table, before = _fenced(again(table), where, values, run_tasks)
    table = _release(table, before)
    reached("services.erasure.released")
    history = before.stored_rows > 0 and forget_keys(table, frozenset(values.keys))
    reached("services.erasure.forgotten")
    versions = _remove_versions(table, before)
    reached("services.erasure.versions")
    datasets = _remove_datasets(table, before)
    reached("services.erasure.datasets")
    _remove_job_files(table)
    reached("services.erasure.jobs")
    table.store.keep_record(table.entry.table_id)
    left, searched = proven(again(table), where, values, on_progress, run_tasks)
    return ErasureResult(
        table=table.entry.full_name,
        rows=rows,
        versions=versions,
        savepoints=tuple(sorted({*plan.savepoints, *before.savepoints})),
        tags=tuple(sorted({*plan.tags, *before.tags})),
        datasets=datasets,
        rewritten_files=rewritten,
        indexes=indexes,
        history=history,
        versions_read=sum(len(each.versions) for each in left.scans),
        rows_left=left.stored_rows,
        files_searched=searched.files,
        values=searched.values,
        files_with_values=searched.found,
        unreached=tuple(dict.fromkeys((*left.unreached, *foreign, *searched.notes))),
    )


def refuse_savepoints_of(plan: ErasurePlan, address: str, *, allowed: bool) -> None:
    """Raises Refused, naming them, for savepoints and tags that hold the rows."""
    if allowed or not (plan.savepoints or plan.tags):
        return
    held = [describe_savepoints(plan.savepoints)] if plan.savepoints else []
    held += [f"tag {name} of another program" for name in plan.tags]
    verb = "holds" if len(plan.savepoints) + len(plan.tags) == 1 else "hold"
    raise Refused(
        f"{' and '.join(held)} {verb} rows to be erased, and nothing was changed",
        where=address,
        remedy=f"let them be removed too with {OPTION}",
    )


def _local_session() -> SparkSession:
    from deployer.compute.spark.local import LocalCluster, job_session

    return job_session(LocalCluster)


def _delete(table: OpenTable, where: str, on_progress: OnProgress, run_tasks: RunTasks, *, allow_destroy: bool) -> int:
    """Deletes the rows. The commit does not store the condition, which may contain values of the rows."""
    files = Deletions(table.location)

    def plan(now: OpenTable, dataset: LanceDataset) -> RowPlan:
        refuse_held(now, where, "erased", partial(count_rows, now, dataset, run_tasks=run_tasks))
        done = run_tasks(dataset, tasks_of(now, dataset, where, in_parts=True))
        if error := first_error(done):
            raise error
        found = {number: rows for part in done for number, rows in part.offsets.items()}
        on_progress(Progress("deleting", 0, sum(map(len, found.values()))))
        return deletion(now, dataset, found, files, dry_run=False, why="true")

    return RowJob("erase", plan, files, may_empty=allow_destroy).run(table).rows


def _rebuild_indexes(table: OpenTable, on_progress: OnProgress) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Builds all indexes again, because their files contain values; returns their names, and notes about indexes that
    cannot be built."""
    remembered = remembered_indexes(table.state.properties)
    observed = observed_indexes(open_dataset(table.location))
    built = []
    for name, each in sorted(remembered.items()):
        if name in observed:
            build_or_empty(table.store, table.root, table.entry.table_id, each.index, on_progress)
            reached("services.erasure.index")
            built.append(name)
    dataset = open_dataset(table.location)
    others = sorted({index.name for index in dataset.describe_indices()} - {*built} - {*remembered})
    notes = tuple(
        f"index {name} was built by another program: build it again there, and run this again"
        for name in others
        if not name.startswith("__lance_")
    )
    return tuple(built), notes


def _fenced(table: OpenTable, where: str, values: Values, run_tasks: RunTasks) -> tuple[OpenTable, ErasurePlan]:
    """Returns the table at a version without the rows, so that all versions with the rows can be removed, and the plan
    of these."""
    for _ in _BACKOFF.attempts(ATTEMPTS):
        plan = plan_erasure(table, where, values, run_tasks)
        dataset = table.dataset()
        if dataset.version not in plan.scans[0].holding:
            return table, plan
        commits = TableCommits(table.store, table.root, table.entry)
        metadata = CommitMetadata(uuid.uuid4().hex, FENCE, 0)
        commits.send(
            commits.prepare(table.state, dataset, Fence(), [metadata])
        )  # a commit that Lance did not take is sent again
        table = table.refreshed()
    raise Conflict(
        "other processes commit to the table faster than the rows are erased; the rows are deleted, and earlier "
        "versions have them",
        where=table.address,
        remedy="run it again",
    )


def _release(table: OpenTable, plan: ErasurePlan) -> OpenTable:
    """Removes savepoints and tags that hold the rows, and expired savepoints."""
    table.store.commit(table.entry.table_id, [SavepointsExpired(round(time.time() * 1000))])
    for name in plan.savepoints:
        remove_savepoint(table.store, [table.entry.table_id], name)
    settle_tags(table)
    dataset = open_dataset(table.location)
    for name in plan.tags:
        delete_tag(dataset, name)
    return again(table)


def _remove_versions(table: OpenTable, plan: ErasurePlan) -> int:
    """Removes unneeded versions that hold the rows, with all files that only they have."""
    return remove_numbered(table, plan.versions)


def _remove_job_files(table: OpenTable) -> None:
    """Removes checkpoints of jobs that no run works on, and recorded failed rows: both may have values of the rows."""
    in_use = {run.job for run in table.state.runs.values() if run.is_open}
    for kind in (WORK, ERRORS):
        for job_id in job_files(table.root, table.state.table_id, kind):
            if kind == ERRORS or job_id not in in_use:
                remove_job_folder(table.root, table.state.table_id, job_id, kind)


def _remove_datasets(table: OpenTable, plan: ErasurePlan) -> tuple[str, ...]:
    gone = []
    needed: Sequence[str] = plan.datasets
    for each in former_datasets(table.state):
        if each.status == "retired" and str(each.location) in needed and not each.needed_at(-1):
            remove_dataset(table.store, table.root, table.entry.table_id, each.location)
            reached("services.erasure.dataset")
            table.store.commit(table.entry.table_id, [DatasetRemoved(each.number)])
            gone.append(dataset_uri(table.root, each.location))
    return tuple(gone)
