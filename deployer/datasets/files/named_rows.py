"""Rows in Lance datasets whose versions a log names, such as the catalog's own tables.

A version that no log names is not read. A writer adds rows to exactly the version that the log names, whatever a crash
or another writer left after it. Others read the new version once the log names it.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deployer.datasets.dataset import open_dataset
from deployer.datasets.errors import as_deployer_error, is_of_lance, storage_errors
from deployer.datasets.storage.options import objects_at, storage_options
from deployer.datasets.storage.refs import delete_tag, set_tags, tags_of
from deployer.errors import Conflict, NotFound
from deployer.platform.system.retry import Backoff

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

FRAGMENTS = 64  #: fragments of a version from which on adding rows writes all rows again, as one fragment
_ATTEMPTS = 40
_LOST_RACE = Backoff(first=0.02, longest=1.0)  #: an attempt opens the dataset, restores it and appends
_NAMED = "named"  #: the tag of the version that the log names, which Lance then keeps
_SAVED = "saved-"  #: prefix of the tags of versions that savepoints name; the version follows


@dataclass(frozen=True, slots=True)
class NamedVersion:
    """A version of a dataset and its number of rows. Version 0 means that the dataset does not exist yet."""

    version: int = 0
    rows: int = 0


def add_rows(location: str, named: NamedVersion, rows: pa.Table, *, in_place: bool = False) -> NamedVersion:
    """Adds rows behind those of the named version, and returns the new version.

    Raises Conflict where others write continuously. No other process changes the new version; only the caller's log may
    name it. `in_place` keeps the existing rows where they are, and so keeps the dataset's indexes.
    """
    if not rows.num_rows and named.version:
        return named
    for _ in _LOST_RACE.attempts(_ATTEMPTS):
        written = _written(location, named, rows, in_place)
        if written is not None:
            return NamedVersion(written, named.rows + rows.num_rows)
    raise Conflict("other writers keep changing it", where=location, remedy="try again when there are fewer writers")


def read_rows(location: str, named: NamedVersion, after: int = 0) -> pa.Table | None:
    """Returns the rows of the named version without the first `after`, in the order in which they were added; None
    where there is no version."""
    if not named.version:
        return None
    dataset = open_dataset(location, named.version)
    try:
        return dataset.to_table(offset=after) if after else dataset.to_table()
    except BaseException as failure:
        if not is_of_lance(failure):
            raise
        raise as_deployer_error(failure, location) from failure


def remove_folder(location: str) -> None:
    """Removes a folder of such datasets. Does nothing where the folder does not exist."""
    if "://" in location:
        objects = objects_at(location)
        objects.delete(objects.list(""))
    else:
        shutil.rmtree(Path(location), ignore_errors=True)


def _written(location: str, named: NamedVersion, rows: pa.Table, in_place: bool) -> int | None:
    """Returns the version that was written; None where another writer committed first."""
    if not named.version:
        return _write(location, rows, "overwrite" if _is_there(location) else "create")
    dataset = open_dataset(location, named.version)
    if not in_place and len(dataset.get_fragments()) >= FRAGMENTS:
        import pyarrow as pa

        return _write(location, pa.concat_tables([dataset.to_table(), rows]), "overwrite")
    base = named.version
    if dataset.latest_version != base:  # left by a crash, or by a writer that lost its race
        dataset.restore()
        base = dataset.version
    written = _write(location, rows, "append")
    return written if written == base + 1 else None


def _write(location: str, rows: pa.Table, mode: str) -> int | None:
    import lance

    try:
        written: lance.LanceDataset = lance.write_dataset(
            rows, location, mode=mode, storage_options=storage_options(location)
        )
    except BaseException as failure:
        if not is_of_lance(failure):
            raise
        if "already exists" in str(failure).lower() or "conflict" in str(failure).lower():
            return None
        raise as_deployer_error(failure, location) from failure
    return int(written.version)


def _is_there(location: str) -> bool:
    try:
        open_dataset(location)
    except NotFound:
        return False
    return True


def compacted(location: str, named: NamedVersion) -> NamedVersion:
    """Returns a version with the same rows in one fragment; the same version where it has no more than one."""
    if not named.version:
        return named
    dataset = open_dataset(location, named.version)
    if len(dataset.get_fragments()) < 2:
        return named
    written = _write(location, dataset.to_table(), "overwrite")
    return named if written is None else NamedVersion(written, named.rows)


def unindexed_rows(location: str, named: NamedVersion) -> int:
    """Returns how many rows of the version came after its index was built; 0 where it has no index."""
    dataset = open_dataset(location, named.version)
    counts = [int(dataset.stats.index_stats(each.name)["num_unindexed_rows"]) for each in dataset.describe_indices()]
    return max(counts, default=0)


def remove_versions(
    location: str,
    named: NamedVersion,
    older_than: dt.timedelta,
    *,
    saved: Iterable[NamedVersion] = (),
    unverified: bool = False,
) -> int:
    """Removes the older versions except the named, the saved and the newest one; returns the freed bytes.

    `unverified` also removes files of writers that may still be writing, whatever their age.
    """
    wanted = {f"{_SAVED}{each.version}": each.version for each in saved if each.version}
    if named.version:
        wanted[_NAMED] = named.version
    if not wanted:
        return 0
    dataset = open_dataset(location)
    with storage_errors(location):
        set_tags(dataset, wanted)
        there = tags_of(dataset)
        if any(there.get(tag) != version for tag, version in wanted.items()):
            return 0  # other programs make tags here, so Lance itself would not protect the versions
        for tag in there.keys() - wanted.keys():
            if tag.startswith(_SAVED):
                delete_tag(dataset, tag)
        done = dataset.cleanup_old_versions(
            older_than, delete_unverified=unverified, error_if_tagged_old_versions=False
        )
    return int(done.bytes_removed)
