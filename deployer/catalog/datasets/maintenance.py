"""Maintenance of a catalog's own tables: fewer fragments, indexes that have all rows, and no old versions.

Recordings are never touched. Each change is a commit to the log, and is given up where another came between.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace

from deployer.catalog.datasets.model.record import FOLDER, DatasetRecord, RowVersion, folder_of
from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.search.searches import Searches
from deployer.datasets.dataset import versions_written
from deployer.datasets.files.named_rows import compacted, remove_folder, remove_versions, unindexed_rows
from deployer.datasets.storage.options import objects_at
from deployer.errors import InvalidInput
from deployer.platform.system.failpoints import reached

RECENT = dt.timedelta(hours=1)  #: in which a reader, or a writer, may still use a version that no log names
TABLES = ("layers", "chunks", "tasks")


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What is to be done. `clean_before`: versions from before that time are removed."""

    compact: bool = False
    optimize_indexes: bool = False
    retrain_indexes: bool = False
    clean_before: dt.datetime | None = None
    allow_recent: bool = False


EVERYTHING = Maintenance(compact=True, optimize_indexes=True)


def maintain(datasets: Datasets, searches: Searches, dataset_id: str, wanted: Maintenance) -> list[str]:
    """Does what is wanted for one dataset; returns what was done, a sentence each.

    Raises NotFound for the dataset; InvalidInput for a time of cleaning that is too recent.
    """
    record = datasets.by_id(dataset_id)
    older_than = _age(datasets, wanted)
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
        freed = _cleaned(datasets, searches, datasets.by_id(dataset_id), older_than, wanted.allow_recent)
        done.append(f"{freed:,} bytes of old versions were removed.")
    return done


def remove_leftovers(datasets: Datasets, searches: Searches) -> list[str]:
    """Removes what no log names and no process has written to for a while: folders of deleted datasets and replaced
    indexes that killed processes left."""
    known = {each.dataset_id: each for each in datasets.all()}
    named = {searches.place(each.dataset_id, search) for each in known.values() for search in each.searches}
    catalog = f"{datasets.root.rstrip('/')}/{FOLDER}"
    found = set[str]()
    for path in objects_at(catalog).list(""):
        parts = path.split("/")
        if parts[0] not in known:
            found.add(f"{catalog}/{parts[0]}/{parts[1]}")
        elif len(parts) > 2 and parts[1] == "search" and f"{catalog}/{'/'.join(parts[:3])}" not in named:
            found.add(f"{catalog}/{'/'.join(parts[:3])}")
    now = datasets.clock.now() / 1000
    old = [each for each in sorted(found) if _written(each) < now - RECENT.total_seconds()]
    for each in old:
        remove_folder(each)
    return [f"{each} was removed: no log names it." for each in old]


def _written(location: str) -> float:
    """Returns when a dataset was last written to, in seconds since 1970."""
    return max(versions_written(location).values(), default=0.0)


def _age(datasets: Datasets, wanted: Maintenance) -> dt.timedelta | None:
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
        return ["The dataset was changed meanwhile, and its tables were not compacted."]
    changed = [name for name in TABLES if getattr(after, name) != getattr(record, name)]
    return [f"The tables {', '.join(changed)} were compacted."]


def _cleaned(
    datasets: Datasets, searches: Searches, record: DatasetRecord, older_than: dt.timedelta, unverified: bool
) -> int:
    folder = folder_of(datasets.root, record.dataset_id)
    places: list[tuple[str, RowVersion]] = [(f"{folder}/{name}.lance", getattr(record, name)) for name in TABLES]
    places += [(searches.place(record.dataset_id, each), each.rows) for each in record.searches]
    return sum(remove_versions(place, rows.named, older_than, unverified=unverified) for place, rows in places)
