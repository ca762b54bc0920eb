"""Removes unneeded data from a table's storage.

This data is files that no version has, intents of commits that were never made, and datasets that a rewrite or a
truncation replaced.

Lance's own `cleanup_old_versions` removes versions with their own files, and files without a version when they are
seven days old. It does not consider the table's log or its replaced datasets. This module removes a version only on
request, because `query --at` needs it; a version with a tag or a savepoint always stays, as does its dataset. Expired
savepoints are removed first.

A load writes its files before it commits them, and a process that is stopped for days may still commit. Therefore only
data that is older than the grace period is removed, and this period must be longer than the longest load. A load whose
files are missing fails before it commits (`tables/ingest/commit/append.py`).
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, replace

from deployer.datasets.errors import lance_errors
from deployer.datasets.files.unreferenced_files import remove, unneeded
from deployer.datasets.storage.job_folders import ERRORS, WORK, job_files, remove_job_folder
from deployer.datasets.storage.options import objects_at
from deployer.datasets.storage.places import dataset_uri, require_no_links
from deployer.errors import Conflict, Refused
from deployer.live.former_datasets import former_datasets
from deployer.platform.storage.objects import ObjectInfo
from deployer.platform.system.failpoints import reached
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.state.log.requirements import JobNotDone
from deployer.state.log.service_updates import SavepointsExpired
from deployer.state.log.updates import CommitAbandoned
from deployer.state.store import StateStore
from deployer.tables.admin.deletion import stored
from deployer.tables.evolution.rewrite.cleanup import is_due, remove_old_datasets
from deployer.tables.inspect.savepoint_tags import settle_tags
from deployer.tables.maintenance.collect.versions import OldVersions, remove_versions
from deployer.tables.open_table import ReadTable, open_entry, to_change

GRACE = dt.timedelta(days=7)
ERRORS_KEPT = dt.timedelta(days=90)  #: the shortest time for which the failed rows of a job are kept


@dataclass(frozen=True, slots=True)
class GarbageReport:
    """The removed items, or those that a dry run would remove.

    `files` and `bytes` count all removed files. `versions` is the number of removed versions. `jobs` has the jobs whose
    commits were abandoned, `datasets` the replaced datasets, and `savepoints` the expired savepoints. `young` counts
    the data files without a version that are younger than the grace period. `kept` has the replaced datasets that stay,
    with the reasons. `why_not` says why files were not examined. `dataset_bytes` has the size of each of the
    `datasets`.
    """

    table: str
    files: int = 0
    bytes: int = 0
    versions: int = 0
    jobs: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    savepoints: tuple[str, ...] = ()
    young: int = 0
    kept: tuple[str, ...] = ()
    why_not: str = ""
    numbers: tuple[int, ...] = ()  #: the numbers of the removed versions
    dataset_bytes: tuple[int, ...] = ()


def collect_garbage(
    store: StateStore,
    root: str,
    table_id: str,
    *,
    grace: dt.timedelta = GRACE,
    versions_older_than: dt.timedelta | None = None,
    dry_run: bool = False,
    on_progress: OnProgress = no_progress,
    now: float | None = None,
) -> GarbageReport:
    """Removes unneeded data of one table that is older than `grace`; each step can be repeated after a crash.

    With `versions_older_than`, older versions are removed too, except the newest version and needed ones (see
    `deployer.tables.maintenance.collect.versions`). `now` is in seconds since 1970. Raises Refused where
    `versions_older_than` is less than `grace`.
    """
    entry = store.instance().tables[table_id]
    if versions_older_than is not None and versions_older_than < grace:
        raise Refused(
            "versions are kept for the grace period at least", remedy="give a longer time, or a shorter grace"
        )
    versions = None if versions_older_than is None else OldVersions(versions_older_than)
    return collect(
        open_entry(store, root, entry),
        grace=grace,
        versions=versions,
        dry_run=dry_run,
        on_progress=on_progress,
        now=now,
    )


def collect(
    table: ReadTable,
    *,
    grace: dt.timedelta = GRACE,
    versions: OldVersions | None = None,
    dry_run: bool = False,
    on_progress: OnProgress = no_progress,
    now: float | None = None,
) -> GarbageReport:
    """Removes unneeded data of an open table, like `collect_garbage`. The table must be open for writing unless
    `dry_run`. `versions` says which versions are removed too, even if they are younger than `grace`."""
    require_no_links(table.root, table.entry.location)
    with lance_errors(table.location):
        return _collect(table, grace, versions, time.time() if now is None else now, dry_run, on_progress)


def _collect(
    table: ReadTable,
    grace: dt.timedelta,
    versions: OldVersions | None,
    at: float,
    dry_run: bool,
    on_progress: OnProgress,
) -> GarbageReport:
    before = at - grace.total_seconds()
    expired = _expired(table, round(at * 1000), dry_run=dry_run)
    jobs = _abandon(table, before, dry_run=dry_run)
    found = replace(_replaced(table, at, before, dry_run=dry_run), jobs=jobs, savepoints=expired)
    left = _job_files(table, before, at, dry_run=dry_run)
    found = replace(found, files=found.files + len(left), bytes=found.bytes + sum(each.bytes for each in left))
    if versions is not None:
        on_progress(Progress("removing old versions", 0, None, "versions"))
        gone = remove_versions(table.refreshed(), versions, at, expired, jobs, dry_run=dry_run)
        found = replace(found, versions=gone.versions, numbers=gone.numbers, bytes=found.bytes + gone.bytes)
    if objects_at(table.location).list("tree"):
        return replace(
            found, why_not="it has branches, whose files lie among its own: use Lance's cleanup_old_versions"
        )
    on_progress(Progress("looking for files that no version has", 0, None, "files"))
    old, young = unneeded(table.location, before)
    if not dry_run:
        remove(table.location, old)
    size = sum(each.bytes for unit in old for each in unit.files)
    return replace(
        found,
        files=found.files + sum(len(unit.files) for unit in old),
        bytes=found.bytes + size,
        young=young,
    )


def _expired(table: ReadTable, at_ms: int, *, dry_run: bool) -> tuple[str, ...]:
    """Removes expired savepoints and tags without a savepoint. Returns the names of the savepoints."""
    over = sorted(
        name
        for name, each in table.state.savepoints.items()
        if each.expires_at is not None and each.expires_at <= at_ms
    )
    if not dry_run:
        if over:
            to_change(table).store.commit(table.state.table_id, [SavepointsExpired(at_ms)])
        settle_tags(to_change(table))
    return tuple(over)


def _abandon(table: ReadTable, before: float, *, dry_run: bool) -> tuple[str, ...]:
    """Abandons commits that began before `before` and never reached Lance. Returns their jobs."""
    jobs = sorted(job for job, intent in table.state.intents.items() if intent.started_at < before * 1000)
    done = []
    for job in jobs:
        if not dry_run:
            try:
                to_change(table).store.commit(table.state.table_id, [CommitAbandoned(job)], [JobNotDone(job)])
            except Conflict:  # the job was committed meanwhile
                continue
            reached("tables.collect.abandoned")
        done.append(job)
    return tuple(done)


def _job_files(table: ReadTable, before: float, now: float, *, dry_run: bool) -> list[ObjectInfo]:
    """Removes checkpoints of jobs without an open run, and failed rows that old jobs recorded. Returns the files."""
    in_use = {run.job for run in table.state.runs.values() if run.is_open}
    gone = list[ObjectInfo]()
    for kind, kept in ((WORK, 0.0), (ERRORS, ERRORS_KEPT.total_seconds())):
        for job_id, files in job_files(table.root, table.state.table_id, kind).items():
            newest = max(each.changed for each in files)
            if job_id not in in_use and newest < before and newest < now - kept:
                gone += files
                if not dry_run:
                    remove_job_folder(table.root, table.state.table_id, job_id, kind)
    return gone


def _replaced(table: ReadTable, at: float, before: float, *, dry_run: bool) -> GarbageReport:
    """Removes replaced datasets whose time is over, and datasets of rewrites that were interrupted before `before`."""
    entry = table.entry
    due = {
        each.location: stored(dataset_uri(table.root, each.location))
        for each in former_datasets(table.state)
        if is_due(each, round(at * 1000), round(before * 1000))
    }
    removed = remove_old_datasets(
        table.store,
        table.root,
        round(at * 1000),
        only={entry.table_id},
        begun_before=round(before * 1000),
        dry_run=dry_run,
    )
    gone = [each.location for each in removed if not each.why]
    sizes = [due.get(each, (0, 0)) for each in gone]
    return GarbageReport(
        entry.full_name,
        sum(files for _, files in sizes),
        sum(size for size, _ in sizes),
        datasets=tuple(gone),
        kept=tuple(f"{each.location}: {each.why}" for each in removed if each.why),
        dataset_bytes=tuple(size for size, _ in sizes),
    )
