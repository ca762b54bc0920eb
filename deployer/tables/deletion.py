"""Deleting a table, and saying how much went with it."""

from __future__ import annotations

from dataclasses import dataclass

from deployer.errors import NotFound
from deployer.live.lance_storage import objects_at
from deployer.state.model import TableEntry
from deployer.state.store import StateStore
from deployer.tables.admin import delete_table
from deployer.tables.storage import dataset_uri


@dataclass(frozen=True, slots=True)
class Deleted:
    """Rows that the table held, and the bytes and files on storage of all its datasets, with all their versions."""

    table: str
    rows: int
    bytes: int
    files: int


def delete_counted(store: StateStore, root: str, entry: TableEntry, *, allow_destroy: bool) -> Deleted:
    """Deletes the table's data and metadata; goes on where a deletion that was cut off stopped.

    Raises Refused when it holds rows and is protected, unless `allow_destroy`.
    """
    try:
        state = store.table(entry.table_id)
    except NotFound:  # its log is removed already
        rows, places = 0, {entry.location}
    else:
        rows = state.files.rows
        places = {entry.location} | {each.location for each in state.datasets if each.status != "removed"}
    found = [stored(dataset_uri(root, place)) for place in places]
    delete_table(store, root, entry.table_id, allow_destroy=allow_destroy)
    return Deleted(entry.full_name, rows, sum(size for size, _ in found), sum(count for _, count in found))


def stored(location: str) -> tuple[int, int]:
    """Bytes and number of the files below a location, a path or URI."""
    found = objects_at(location).described("")
    return sum(each.bytes for each in found), len(found)
