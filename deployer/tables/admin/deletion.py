"""Deletes tables, and reports the deleted data. Every step can be repeated after a crash."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.datasets.storage.job_folders import remove_file_lists, remove_job_folders
from deployer.datasets.storage.options import objects_at
from deployer.datasets.storage.places import dataset_uri
from deployer.datasets.storage.removal import locations_of, remove_dataset, require_removable
from deployer.errors import Corrupt, NotFound, Refused
from deployer.platform.storage.envelope import FORGED
from deployer.platform.system.failpoints import reached
from deployer.specs.model import TableSpec
from deployer.state.log.updates import RemoveTable, SetTableStatus
from deployer.state.model.entities import INSTANCE_LOG, TableEntry
from deployer.state.model.location import Location
from deployer.state.store import StateStore
from deployer.tables.inspect.protection import (
    held_by_unfinished,
    protected_content,
    refuse_held_table,
    refuse_savepoints,
    require_as_planned,
    savepoints_of,
)
from deployer.tables.inspect.recorded import recorded_table


@dataclass(frozen=True, slots=True)
class StoredDataset:
    """A dataset of a table, with the bytes and files that it has on storage."""

    location: Location
    bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class DeletionSummary:
    """Rows that the table held, and the bytes and files on storage of all its datasets, with all their versions.

    `rows` is None where the table's log cannot be read. `savepoints` are the names of deleted savepoints, the newest
    first.
    """

    table: str
    rows: int | None
    bytes: int
    files: int
    datasets: tuple[StoredDataset, ...] = ()
    savepoints: tuple[str, ...] = ()


def to_delete(store: StateStore, root: str, entry: TableEntry) -> DeletionSummary:
    """Returns what a deletion removes, before it begins. Raises as `removal.require_removable` for data that cannot be
    removed."""
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
    return DeletionSummary(
        entry.full_name,
        rows,
        sum(each.bytes for each in found),
        sum(each.files for each in found),
        tuple(found),
        savepoints_of(store, entry),
    )


def delete_counted(
    store: StateStore, root: str, entry: TableEntry, *, allow_destroy: bool, delete_savepoints: bool = False
) -> DeletionSummary:
    """Deletes the table's data and metadata; resumes an interrupted deletion.

    Raises Refused when it has savepoints, unless `delete_savepoints`, and when it holds rows and is protected, unless
    `allow_destroy`.
    """
    found = to_delete(store, root, entry)
    delete_table(store, root, entry.table_id, allow_destroy=allow_destroy, delete_savepoints=delete_savepoints)
    return found


def delete_table(
    store: StateStore,
    root: str,
    table_id: str,
    *,
    allow_destroy: bool,
    delete_savepoints: bool = False,
    planned_with: TableSpec | None = None,
) -> None:
    """Deletes the table's data and its state; does nothing when it does not exist.

    `planned_with` is the table that a plan was made from: raises Conflict when its declaration has changed since.
    Raises Refused when rows of it are under a legal hold, when it has savepoints, unless `delete_savepoints`, and when
    it has rows and is protected, unless `allow_destroy`. Protection is checked even where a deletion began before,
    because any program may have written that state. Nothing is changed unless all of its datasets can be removed. For a
    table whose dataset or log cannot be read, all known data is deleted, at least its entry.
    """
    entry = store.instance().tables.get(table_id)
    if entry is None:
        return
    if planned_with is not None and entry.status == "active":
        require_as_planned(planned_with, recorded_table(store, root, entry).spec)
    refuse_held_table(store, entry)
    if not delete_savepoints:
        refuse_savepoints(store, entry)
    if not allow_destroy and (held := protected_content(store, root, entry)):
        if entry.status == "active":
            remedy = f"allow it with --allow-destroy {entry.address}, or set deletion_protection: false"
            raise Refused(f"the table holds {held} and is protected from deletion", where=entry.address, remedy=remedy)
        raise Refused(
            f"its deletion was begun and it holds {held}",
            where=entry.address,
            remedy=f"finish it with --allow-destroy {entry.address}",
        )
    _remove(store, root, entry)


def remove_unfinished(store: StateStore, root: str, entry: TableEntry) -> None:
    """Removes what an interrupted creation left behind: a dataset without rows. Raises Corrupt for more."""
    if held := held_by_unfinished(store, root, entry):
        raise Corrupt(
            f"the table is being created, and it holds {held}, so nothing of it is removed",
            where=f"{entry.address} ({dataset_uri(root, entry.location)})",
            remedy=FORGED,
        )
    remove_dataset(store, root, entry.table_id, entry.location)


def stored(location: str) -> tuple[int, int]:
    """Returns bytes and number of the files below a location, a path or URI."""
    found = objects_at(location).described("")
    return sum(each.bytes for each in found), len(found)


def _remove(store: StateStore, root: str, entry: TableEntry) -> None:
    locations = locations_of(store, root, entry)
    if entry.status != "deleting":
        for location in locations:
            require_removable(store, root, entry.table_id, location, with_table=True)
        store.commit(INSTANCE_LOG, [SetTableStatus(entry.table_id, "deleting")])
    reached("tables.delete.marked")
    for location in locations:
        remove_dataset(store, root, entry.table_id, location)
    remove_job_folders(root, entry.table_id)
    remove_file_lists(root, entry.table_id)
    reached("tables.delete.removed")
    store.remove_table_log(entry.table_id)
    reached("tables.delete.forgotten")
    store.commit(INSTANCE_LOG, [RemoveTable(entry.table_id)])
