"""Maintains a catalog's own tables: compacts fragments, adds missing rows to indexes, and removes old versions.

Recordings never change. Each change is a commit to the log; a change that loses a race against another commit is
abandoned.
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, replace

from deployer.catalog.datasets.model.record import FOLDER, DatasetRecord, RowVersion, folder_of, record_of
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.search.searches import Searches
from deployer.datasets.dataset import versions_written
from deployer.datasets.files.named_rows import compacted, remove_folder, remove_versions, unindexed_rows
from deployer.datasets.storage.options import objects_at
from deployer.errors import InvalidInput, NotFound
from deployer.platform.system.failpoints import reached
from deployer.state.store import Time

RECENT = dt.timedelta(hours=1)  #: how long a reader or a writer may still use a version that no log names
STALLED = dt.timedelta(minutes=1)  #: longest time from the writing of a version until the log names it
TABLES = ("layers", "chunks", "tasks")


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The work to do. Versions that are older than `clean_before` are removed; None removes none."""

    compact: bool = False
    optimize_indexes: bool = False
    retrain_indexes: bool = False
    clean_before: dt.datetime | None = None
    allow_recent: bool = False


EVERYTHING = Maintenance(compact=True, optimize_indexes=True)


def maintain(datasets: Datasets, searches: Searches, dataset_id: str, wanted: Maintenance) -> list[str]:
    """Does the `wanted` work for one dataset; returns a sentence for each thing that was done.

    Raises NotFound for an unknown dataset, and InvalidInput for a `clean_before` that is too recent.
    """
    record = datasets.by_id(dataset_id)
    older_than = require_age(datasets, wanted)
    done = list[str]()
    if wanted.compact:
        done += _compacted(datasets, record)
    if wanted.optimize_indexes or wanted.retrain_indexes:
        for search in datasets.by_id(dataset_id).searches:
            place = searches.place(dataset_id, search)
            if wanted.retrain_indexes or unindexed_rows(place, search.rows.named):
                searches.rebuild(dataset_id, search)
                done.append(f"The index of {search.entity}:{search.component} was built again.")
    if older_than is not None:
        freed = _cleaned(datasets, searches, dataset_id, older_than, wanted.allow_recent)
        done.append(f"{freed:,} bytes of old versions were removed.")
    return done


def remove_leftovers(
    datasets: Datasets, searches: Searches, grace: dt.timedelta = RECENT, *, dry_run: bool = False
) -> list[str]:
    """Removes folders that no log names and that no process has written to for `grace`. Returns the folders.

    These are folders of deleted datasets and of replaced indexes. Killed processes left them, or only a deleted
    savepoint named them. A dry run removes nothing.
    """
    records = [*datasets.all(), *datasets.saved()]
    known = {each.dataset_id for each in records}
    named = {searches.place(each.dataset_id, search) for each in records for search in each.searches}
    catalog = f"{datasets.root.rstrip('/')}/{FOLDER}"
    found = set[str]()
    for path in objects_at(catalog).list(""):
        parts = path.split("/")
        if parts[0] not in known:
            found.add(f"{catalog}/{parts[0]}/{parts[1]}")
        elif len(parts) > 2 and parts[1] == "search" and f"{catalog}/{'/'.join(parts[:3])}" not in named:
            found.add(f"{catalog}/{'/'.join(parts[:3])}")
    now = datasets.clock.now() / 1000
    old = [each for each in sorted(found) if _written(each) < now - grace.total_seconds()]
    if not dry_run:
        for each in old:
            remove_folder(each)
        for log in datasets.lost_logs():
            datasets.store.remove_log(log)
    return old


def _written(location: str) -> float:
    """Returns when a dataset was last written to, in seconds since 1970."""
    return max(versions_written(location).values(), default=0.0)


def require_age(datasets: Datasets, wanted: Maintenance) -> dt.timedelta | None:
    """Returns the age from which versions are removed; None where no versions are removed. Raises InvalidInput for an
    age of less than an hour, unless `allow_recent`."""
    if wanted.clean_before is None:
        return None
    now = dt.datetime.fromtimestamp(datasets.clock.now() / 1000, dt.UTC)
    age = now - wanted.clean_before
    if age < RECENT and not wanted.allow_recent:
        raise InvalidInput(
            f"cleanup_before is less than {RECENT.total_seconds() / 3600:g} hour ago; newer versions may be in use",
            remedy="choose an earlier time, or set unsafe_allow_recent_cleanup",
        )
    return max(age, dt.timedelta())


def _compacted(datasets: Datasets, record: DatasetRecord) -> list[str]:
    folder = folder_of(datasets.root, record.dataset_id)

    def version(name: str, before: RowVersion) -> RowVersion:
        after = compacted(f"{folder}/{name}.lance", before.named)
        return RowVersion(after.version, after.rows)

    layers, chunks, tasks = (version(name, getattr(record, name)) for name in TABLES)
    after = replace(record, layers=layers, chunks=chunks, tasks=tasks)
    if after == record:
        return []
    reached("catalog:before-naming-compacted")
    if not datasets.is_replaced(record, after):
        return ["The dataset was changed meanwhile, so its tables were not compacted."]
    changed = [name for name in TABLES if getattr(after, name) != getattr(record, name)]
    return [f"Compacted tables: {', '.join(changed)}."]


def _named_before(datasets: Datasets, dataset_id: str, age: dt.timedelta) -> list[DatasetRecord]:
    """Returns the dataset's record in the log `age` ago, or nothing where the dataset did not exist.

    A reader may still use the versions that this record names. All versions that the log named later are younger.
    """
    then = Time(datasets.clock.now() - round(age.total_seconds() * 1000))
    try:
        found = record_of(datasets.store.instance(at=then), dataset_id)
    except NotFound:  # the instance did not exist
        return []
    return [] if found is None else [found]


def _cleaned(
    datasets: Datasets, searches: Searches, dataset_id: str, older_than: dt.timedelta, unverified: bool
) -> int:
    """Removes versions older than `older_than`, and returns the number of freed bytes.

    Versions that the log or a savepoint names stay. Versions that are written after the log and the savepoints are read
    stay too, because the log or a new savepoint may name them. Versions that the log named within the last hour stay
    for readers, unless `unverified`.
    """
    since = time.monotonic()
    record = datasets.by_id(dataset_id)
    known = list(datasets.saved())
    if not unverified:
        older_than += STALLED
        known += _named_before(datasets, dataset_id, RECENT)

    def places(of: DatasetRecord) -> dict[str, RowVersion]:
        folder = folder_of(datasets.root, of.dataset_id)
        tables: dict[str, RowVersion] = {f"{folder}/{name}.lance": getattr(of, name) for name in TABLES}
        return tables | {searches.place(of.dataset_id, each): each.rows for each in of.searches}

    saved = [places(each) for each in known if each.dataset_id == record.dataset_id]
    freed = 0
    for place, rows in places(record).items():
        kept = [each[place].named for each in saved if place in each]
        age = max(older_than, dt.timedelta(seconds=time.monotonic() - since))
        freed += remove_versions(place, rows.named, age, saved=kept, unverified=unverified)
    return freed
