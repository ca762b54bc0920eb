"""CLEAN: removes old versions of a table by age and number, and unneeded files."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.datasets.dataset import versions_written
from deployer.datasets.storage.places import dataset_uri
from deployer.platform.files.json_values import JSON
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.text.formatting import count, size
from deployer.platform.text.units import describe_duration, parse_duration
from deployer.services.definition import ServiceDefinition, Work, options_of
from deployer.specs.schema.services import all_options, declared_options
from deployer.state.model.services import Figures, FinalStatus
from deployer.tables.admin.deletion import stored
from deployer.tables.maintenance.collect.garbage import GRACE, GarbageReport, collect
from deployer.tables.maintenance.collect.versions import OldVersions
from deployer.tables.open_table import OpenTable, ReadTable, open_entry


@dataclass(frozen=True, slots=True)
class CleanOptions:
    """The options of CLEAN. It removes versions older than `older_than`, except the newest `keep_versions`."""

    older_than: dt.timedelta = dt.timedelta(days=7)
    keep_versions: int = 1
    dry_run: bool = False

    @staticmethod
    def of(declared: Mapping[str, Any]) -> CleanOptions:
        """Reads options as specs write them; omitted ones have their defaults."""
        options = all_options("CLEAN", declared_options("CLEAN", declared))
        age = parse_duration(options["older_than"])
        return CleanOptions(age, options["keep_versions"], options["dry_run"])


@dataclass(frozen=True, slots=True)
class StorageUse:
    """The storage that a table uses: versions of its dataset, and files with their bytes, retired datasets included."""

    versions: int
    files: int
    bytes: int

    @staticmethod
    def of(table: OpenTable) -> StorageUse:
        places = {each.location for each in table.state.datasets if each.status == "retired"}
        found = [stored(dataset_uri(table.root, place)) for place in sorted({table.entry.location} | places)]
        return StorageUse(
            len(versions_written(table.location)), sum(files for _, files in found), sum(size for size, _ in found)
        )

    def as_json(self) -> dict[str, JSON]:
        return {"versions": self.versions, "files": self.files, "bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class CleanResult:
    """The result of a run. SKIPPED: there was nothing to remove. In a dry run, `removed` counts what a run would
    remove."""

    table: str
    run_id: str
    status: FinalStatus
    why: str
    dry_run: bool
    before: StorageUse
    after: StorageUse
    removed: GarbageReport
    lance_version: int
    seconds: float

    @property
    def figures(self) -> Figures:
        """The figures of the run record."""
        version = self.lance_version
        return Figures(
            lance_version_before=version,
            lance_version_after=version,
            before=self.before.as_json(),
            after=self.after.as_json(),
        )


def clean(
    table: OpenTable,
    options: CleanOptions,
    on_progress: OnProgress = no_progress,
    run_id: str = "",
    now: float | None = None,
    grace: dt.timedelta = GRACE,
) -> CleanResult:
    """Removes old versions and unneeded files of one table.

    A stopped run has removed a part of them. Files that no version has are removed when they are older than `grace`,
    whatever the options: a load may still commit younger ones. `now` is in seconds since 1970.
    """
    started = time.monotonic()
    on_progress(Progress("listing versions and files", 0, None, "files"))
    before = StorageUse.of(table)
    versions = OldVersions(options.older_than, options.keep_versions, run_id)
    removed = collect(table, grace=grace, versions=versions, dry_run=options.dry_run, on_progress=on_progress, now=now)
    after = before if options.dry_run else StorageUse.of(open_entry(table.store, table.root, table.entry))
    nothing = not (removed.files or removed.versions or removed.jobs or removed.datasets or removed.savepoints)
    if nothing:
        why = (
            f"{count(before.versions, 'version')}: none is older than {describe_duration(options.older_than)}, "
            f"beyond the newest {options.keep_versions:,} and without a savepoint, tag, branch or running work, "
            "and no file is left that no version needs"
        )
    elif options.dry_run:
        what = count(removed.versions, "version"), count(removed.files, "other file"), size(removed.bytes)
        why = f"dry run: would remove {what[0]} and {what[1]}, {what[2]}"
    else:
        why = ""
    return CleanResult(
        table=table.entry.full_name,
        run_id=run_id,
        status="SKIPPED" if nothing else "SUCCEEDED",
        why=why,
        dry_run=options.dry_run,
        before=before,
        after=after,
        removed=removed,
        lance_version=table.state.lance_version,
        seconds=time.monotonic() - started,
    )


def _work(work: Work[CleanOptions]) -> CleanResult:
    return clean(work.table, work.options, work.on_progress, work.run_id, work.now)


def _forecast(table: ReadTable) -> str:
    options = CleanOptions.of(options_of(table.state, CLEAN.kind))
    versions = OldVersions(options.older_than, options.keep_versions)
    gone = collect(table, grace=GRACE, versions=versions, dry_run=True)
    if not (gone.files or gone.versions or gone.jobs or gone.datasets or gone.savepoints):
        return "nothing: no version is old enough, and no file is left that no version needs"
    what = [count(gone.versions, "version")] if gone.versions else []
    what += [count(gone.files, "file") + " that no version has"] if gone.files else []
    what += [count(len(gone.datasets), "replaced dataset")] if gone.datasets else []
    what += [count(len(gone.savepoints), "expired savepoint")] if gone.savepoints else []
    what += [count(len(gone.jobs), "unfinished commit")] if gone.jobs else []
    would = "only reports that it would remove" if options.dry_run else "removes"
    return f"{would} {', '.join(what)}: {size(gone.bytes)}"


CLEAN = ServiceDefinition("CLEAN", CleanOptions.of, _work, lambda: CleanResult, _forecast)
clean_table = CLEAN.run
