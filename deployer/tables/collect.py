"""Removes from a table's storage what nothing needs: files that no version has, commits that were never made, datasets
that a rewrite or an emptying replaced.

Lance's own `cleanup_old_versions` removes versions and what only they hold, and files that no version has once they are
seven days old. It knows neither the table's log nor its replaced datasets. Here a version goes only when that is asked
for, since `query --at` needs it; one that has a tag or that a savepoint is of stays always, as its dataset does.
Savepoints whose time is over need nothing, and are removed first.

A load writes its files before it commits them, and who is stopped for days may still commit. So nothing is removed that
is younger than the grace period, which has to be longer than the longest load; a load whose files are gone all the same
is told so before it commits (`tables/commit.py`).
"""

from __future__ import annotations

import datetime as dt
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.errors import Conflict, Refused
from deployer.live.lance_io import open_dataset
from deployer.live.lance_storage import objects_at
from deployer.state.failpoints import reached
from deployer.state.model import TableEntry, TableState
from deployer.state.objects import Described
from deployer.state.requirements import JobNotDone
from deployer.state.service_updates import SavepointsExpired
from deployer.state.store import StateStore
from deployer.state.updates import CommitAbandoned
from deployer.tables.dataset import OpenTable, open_entry
from deployer.tables.deletion import stored
from deployer.tables.progress import OnProgress, Progress, untold
from deployer.tables.rewrite_cleanup import kept_ms, remove_old_datasets
from deployer.tables.storage import dataset_uri

if TYPE_CHECKING:
    import lance

GRACE = dt.timedelta(days=7)
_FOLDERS = ("data", "_deletions", "_indices")


@dataclass(frozen=True, slots=True)
class Collected:
    """What was removed, or would be: files and their bytes, whatever they belonged to; how many versions; jobs whose
    commits were given up; datasets that had been replaced; savepoints whose time was over. `young` are files that no
    version has and that are too young; `kept` are replaced datasets that stay, with why. `why_not` says why files were
    not looked at."""

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


def collect_garbage(
    store: StateStore,
    root: str,
    table_id: str,
    *,
    grace: dt.timedelta = GRACE,
    versions_older_than: dt.timedelta | None = None,
    dry_run: bool = False,
    on_progress: OnProgress = untold,
    now: float | None = None,
) -> Collected:
    """Removes what nothing needs of one table and is older than `grace`; each step can be repeated after a crash.

    With `versions_older_than`, which is not below `grace`, versions of that age go too, but for the newest, those with
    a tag and those of savepoints. `now` is in seconds since 1970.
    """
    entry = store.instance().tables[table_id]
    if versions_older_than is not None and versions_older_than < grace:
        raise Refused(
            "versions are kept for the grace period at least", remedy="give a longer time, or a shorter grace"
        )
    at = time.time() if now is None else now
    before = at - grace.total_seconds()
    table = open_entry(store, root, entry)
    expired = _expired(table, round(at * 1000), dry_run=dry_run)
    jobs = _abandon(table, before, dry_run=dry_run)
    found = replace(_replaced(table, at, before, dry_run=dry_run), jobs=jobs, savepoints=expired)
    if versions_older_than is not None:
        found = _with_versions(table, found, versions_older_than, dry_run=dry_run)
    if objects_at(table.location).list("tree"):
        return replace(
            found, why_not="it has branches, whose files lie among its own: use Lance's cleanup_old_versions"
        )
    on_progress(Progress("looking for files that no version has", 0, None, "files"))
    old, young = _unneeded(table.location, before)
    if not dry_run:
        _remove(table.location, old)
    size = sum(each.bytes for unit in old for each in unit.files)
    return replace(
        found,
        files=found.files + sum(len(unit.files) for unit in old),
        bytes=found.bytes + size,
        young=young,
    )


def _expired(table: OpenTable, at_ms: int, *, dry_run: bool) -> tuple[str, ...]:
    """Removes savepoints whose time is over."""
    over = sorted(
        name
        for name, each in table.state.savepoints.items()
        if each.expires_at is not None and each.expires_at <= at_ms
    )
    if over and not dry_run:
        table.store.commit(table.state.table_id, [SavepointsExpired(at_ms)])
    return tuple(over)


def _abandon(table: OpenTable, before: float, *, dry_run: bool) -> tuple[str, ...]:
    """Gives up commits that were begun before and never reached Lance."""
    jobs = sorted(job for job, intent in table.state.intents.items() if intent.started_at < before * 1000)
    done = []
    for job in jobs:
        if not dry_run:
            try:
                table.store.commit(table.state.table_id, [CommitAbandoned(job)], [JobNotDone(job)])
            except Conflict:  # it was done meanwhile
                continue
            reached("tables.collect.abandoned")
        done.append(job)
    return tuple(done)


def _replaced(table: OpenTable, at: float, before: float, *, dry_run: bool) -> Collected:
    """Datasets that were replaced and whose time is over, and of rewrites that were cut off before."""
    entry, state = table.entry, table.state
    due = {location: stored(dataset_uri(table.root, location)) for location in _due(state, at, before)}
    removed = remove_old_datasets(
        table.store,
        table.root,
        round(at * 1000),
        only=entry.table_id,
        begun_before=round(before * 1000),
        dry_run=dry_run,
    )
    gone = [each.location for each in removed if not each.why]
    return Collected(
        entry.full_name,
        sum(due.get(each, (0, 0))[1] for each in gone),
        sum(due.get(each, (0, 0))[0] for each in gone),
        datasets=tuple(gone),
        kept=tuple(f"{each.location}: {each.why}" for each in removed if each.why),
    )


def _due(state: TableState, at: float, before: float) -> Iterator[str]:
    for each in state.datasets:
        if each.status == "retired" and at * 1000 - each.since >= kept_ms(state):
            yield each.location
        if each.status == "writing" and each.since < before * 1000:
            yield each.location


def _with_versions(table: OpenTable, found: Collected, older_than: dt.timedelta, *, dry_run: bool) -> Collected:
    dataset = open_dataset(table.location)
    limit = dt.datetime.now() - older_than  # noqa: DTZ005 -- Lance gives times without a zone, in that of the machine
    state = table.state
    kept = {int(tag["version"]) for tag in dataset.tags.list().values()}
    kept |= {
        each.lance_version
        for each in state.savepoints.values()
        if each.dataset == state.dataset and each.name not in found.savepoints
    }
    # A savepoint that this state does not have yet is of its newest version or of a newer one.
    old = [
        int(each["version"])
        for each in dataset.versions()
        if each["timestamp"] < limit and each["version"] < state.lance_version and each["version"] not in kept
    ]
    if not old or dry_run:
        return replace(found, versions=len(old))
    stats = dataset.cleanup_old_versions(versions=old, error_if_tagged_old_versions=False)
    reached("tables.collect.versions")
    return replace(found, versions=int(stats.old_versions), bytes=found.bytes + int(stats.bytes_removed))


@dataclass(slots=True)
class _Unit:
    """What belongs to versions as a whole, or to none: a data file with its blobs, a deletion file, an index."""

    name: str
    files: list[Described]

    @property
    def changed(self) -> float:
        return max(each.changed for each in self.files)


def _unneeded(location: str, before: float) -> tuple[list[_Unit], int]:
    """Units that no version has and that are older; and how many are younger."""
    units = _units(location)
    needed = _needed_by(open_dataset(location))
    if units.keys() - needed:  # only then are other versions looked at, of which there may be thousands
        newest = open_dataset(location)
        for version in newest.versions():
            needed |= _needed_by(newest.checkout_version(version["version"]))
    left = [unit for name, unit in sorted(units.items()) if name not in needed]
    old = [unit for unit in left if unit.changed < before]
    return old, len(left) - len(old)


def _units(location: str) -> dict[str, _Unit]:
    found: dict[str, _Unit] = {}
    objects = objects_at(location)
    for folder in _FOLDERS:
        for each in objects.described(folder):
            item, below, _ = each.path.removeprefix(f"{folder}/").partition("/")
            name = f"data/{item}.lance" if folder == "data" and below else f"{folder}/{item}"
            found.setdefault(name, _Unit(name, [])).files.append(each)
    return found


def _needed_by(dataset: lance.LanceDataset) -> set[str]:
    needed = set()
    for fragment in dataset.get_fragments():
        metadata = fragment.metadata
        needed |= {f"data/{file.path}" for file in metadata.files}
        if metadata.deletion_file is not None:
            needed.add(metadata.deletion_file.path(metadata.id))
    return needed | {f"_indices/{part.uuid}" for index in dataset.describe_indices() for part in index.segments}


def _remove(location: str, units: list[_Unit]) -> None:
    objects = objects_at(location)
    for unit in units:
        objects.delete([each.path for each in unit.files])
        if "://" not in location:
            for folder in sorted({(Path(location) / each.path).parent for each in unit.files}, reverse=True):
                if folder.parent != Path(location):  # of an index, or of a file's blobs: nobody else's
                    shutil.rmtree(folder, ignore_errors=True)
        reached("tables.collect.removed")


def collect_all(
    store: StateStore,
    root: str,
    entries: list[TableEntry],
    *,
    grace: dt.timedelta = GRACE,
    versions_older_than: dt.timedelta | None = None,
    dry_run: bool = False,
    on_progress: OnProgress = untold,
) -> list[Collected]:
    """`collect_garbage` of several tables, by name."""
    return [
        collect_garbage(
            store,
            root,
            entry.table_id,
            grace=grace,
            versions_older_than=versions_older_than,
            dry_run=dry_run,
            on_progress=on_progress,
        )
        for entry in sorted(entries, key=lambda entry: entry.full_name)
    ]
