"""Deleting a table, and saying how much goes with it."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.datasets.storage.options import objects_at
from deployer.datasets.storage.places import dataset_uri
from deployer.datasets.storage.removal import locations_of, require_removable
from deployer.errors import Corrupt, NotFound
from deployer.state.model.entities import TableEntry
from deployer.state.model.location import Location
from deployer.state.store import StateStore
from deployer.tables.admin.tables import delete_table
from deployer.tables.inspect.protection import savepoints_of


@dataclass(frozen=True, slots=True)
class StoredDataset:
    """A dataset of a table, with the bytes and files that it has on storage."""

    location: Location
    bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """Rows that the table held, and the bytes and files on storage of all its datasets, with all their versions.

    `rows` is None where the table's log cannot be read. `savepoints` are the names of those that go with it, the newest
    first.
    """

    table: str
    rows: int | None
    bytes: int
    files: int
    datasets: tuple[StoredDataset, ...] = ()
    savepoints: tuple[str, ...] = ()


def to_delete(store: StateStore, root: str, entry: TableEntry) -> Deleted:
    """What goes with the table, before anything does. Raises as `removal.require_removable` for what cannot go."""
    try:
        rows: int | None = store.table(entry.table_id).files.rows
    except NotFound:  # its log is removed already
        rows = None if entry.status == "active" else 0
    except Corrupt:
        rows = None
    found = []
    for location in locations_of(store, root, entry):
        require_removable(store, root, entry.table_id, location, with_table=True)
        found.append(StoredDataset(location, *stored(dataset_uri(root, location))))
    return Deleted(
        entry.full_name,
        rows,
        sum(each.bytes for each in found),
        sum(each.files for each in found),
        tuple(found),
        savepoints_of(store, entry),
    )


def delete_counted(
    store: StateStore, root: str, entry: TableEntry, *, allow_destroy: bool, delete_savepoints: bool = False
) -> Deleted:
    """Deletes the table's data and metadata; goes on where a deletion that was cut off stopped.

    Raises Refused when it has savepoints, unless `delete_savepoints`, and when it holds rows and is protected, unless
    `allow_destroy`.
    """
    found = to_delete(store, root, entry)
    delete_table(store, root, entry.table_id, allow_destroy=allow_destroy, delete_savepoints=delete_savepoints)
    return found


def stored(location: str) -> tuple[int, int]:
    """Bytes and number of the files below a location, a path or URI."""
    found = objects_at(location).described("")
    return sum(each.bytes for each in found), len(found)
