"""Maintenance of a table in one call: COMPACT, indexes and CLEAN, as runs of these services."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

from deployer.errors import InvalidInput
from deployer.platform.system.progress import OnProgress
from deployer.runs.runner import RunRequest, as_run
from deployer.services.definition import options_of
from deployer.services.kinds.clean import CLEAN, CleanOptions, CleanResult, clean
from deployer.services.kinds.compact import compact_table
from deployer.services.kinds.compact.results import CompactResult
from deployer.tables.layout.indexes.build import CaughtUp, catch_up
from deployer.tables.maintenance.collect.garbage import GRACE
from deployer.tables.maintenance.collect.versions import OldVersions, kept_versions
from deployer.tables.open_table import OpenTable


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A version that a clean-up kept, and the reason: its age, or a user of the version."""

    version: int
    why: str


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """The result of a clean-up: the number of removed versions, and the bytes of all removed files.

    `kept` has the remaining versions before the newest. `kept_files` counts the remaining files that no version has;
    `why_files` says why they stay: they are young, or may belong to work in progress.
    """

    old_versions: int
    bytes_removed: int
    kept: tuple[KeptVersion, ...]
    kept_files: int
    why_files: str
    run: CleanResult


@dataclass(frozen=True, slots=True)
class OptimizeResult:
    """The results of the runs of COMPACT and CLEAN, and of bringing indexes up to date in between."""

    compacted: CompactResult
    indexes: CaughtUp
    cleaned: CleanupResult


def optimize(
    table: OpenTable, cleanup_older_than: dt.timedelta | None = None, *, delete_unverified: bool = False
) -> OptimizeResult:
    """Runs COMPACT with the options of the table's own service, brings indexes up to date, and runs `cleanup`.

    Raises InvalidInput for an age that is not a time from 0, and Conflict while a run of these services, or one that
    excludes them, is running.
    """
    _check_age(table, "cleanup_older_than", cleanup_older_than)
    compacted = compact_table(table.root, table.entry.full_name)
    indexes = catch_up(table.store, table.root, table.entry.table_id)
    cleaned = cleanup(table.refreshed(), cleanup_older_than, delete_unverified=delete_unverified)
    return OptimizeResult(compacted, indexes, cleaned)


def cleanup(
    table: OpenTable, older_than: dt.timedelta | None = None, *, delete_unverified: bool = False
) -> CleanupResult:
    """Runs CLEAN, which removes versions older than `older_than`, except the newest and those that are needed.

    If `older_than` is None, the table's own CLEAN decides, or 7 days. Files that no version has are removed once they
    are 7 days old. With `delete_unverified`, younger ones are removed too, unless work is known to be in progress. A
    load that has written files and not begun its commit then fails, but no acknowledged data is lost. Raises the same
    errors as `optimize`.
    """
    _check_age(table, "older_than", older_than)
    options = CleanOptions.of(options_of(table.state, CLEAN.kind))
    options = replace(options, dry_run=False, older_than=options.older_than if older_than is None else older_than)
    busy = _work_in_progress(table) if delete_unverified else ""
    grace = dt.timedelta(0) if delete_unverified and not busy else GRACE

    def work(run_id: str, on_progress: OnProgress) -> CleanResult:
        return clean(table.refreshed(), options, on_progress, run_id, grace=grace)

    done = as_run(table.store, table.entry.table_id, CLEAN.kind, RunRequest(), work)
    after = table.refreshed()
    kept = kept_versions(after, OldVersions(options.older_than, options.keep_versions))
    why = busy or (f"younger than {GRACE.days} days" if done.removed.young else "")
    return CleanupResult(
        done.removed.versions,
        done.removed.bytes,
        tuple(KeptVersion(version, reason) for version, reason in kept.items()),
        done.removed.young,
        why,
        done,
    )


def _check_age(table: OpenTable, name: str, age: object) -> None:
    if age is None or (isinstance(age, dt.timedelta) and age >= dt.timedelta(0)):
        return
    raise InvalidInput(
        f"`{name}` is {age!r}, which is not an age of versions",
        where=table.address,
        remedy="give a datetime.timedelta from 0, such as timedelta(days=7)",
    )


def _work_in_progress(table: OpenTable) -> str:
    """Returns a description of the work that may have files without a version; empty where none is known."""
    state = table.state
    found = [f"commit of job {job}" for job in state.intents]
    found += [f"run {run.run_id} of {run.service}" for run in state.runs.values() if run.is_open]
    found += [f"rewrite to {each.location}" for each in state.datasets if each.status == "writing"]
    return f"in progress: {', '.join(found)}" if found else ""
