"""Deleting a table, and saying how much went with it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from deployer.errors import NotFound
from deployer.live.lance_storage import objects_at
from deployer.state.model import TableEntry
from deployer.state.store import StateStore
from deployer.tables.admin import delete_table
from deployer.tables.storage import dataset_uri


@dataclass(frozen=True, slots=True)
class Deleted:
    """Rows that the table held, and the bytes and files on storage of all its datasets, with all their versions.

    In a bucket, bytes are those of the newest version alone.
    """

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
        rows, recorded, places = 0, 0, {entry.location}
    else:
        rows = state.files.rows
        places = {entry.location} | {each.location for each in state.datasets if each.status != "removed"}
        recorded = state.files.bytes
    found = [stored(dataset_uri(root, place)) for place in places]
    delete_table(store, root, entry.table_id, allow_destroy=allow_destroy)
    size = recorded if "://" in root else sum(size for size, _ in found)
    return Deleted(entry.full_name, rows, size, sum(count for _, count in found))


def stored(location: str) -> tuple[int, int]:
    """Bytes and number of the files below a folder; of a bucket, their number alone."""
    if "://" in location:
        return 0, len(objects_at(location).list(""))
    size = count = 0
    for folder, _, names in os.walk(location):
        for name in names:
            try:
                size += (Path(folder) / name).stat().st_size
                count += 1
            except FileNotFoundError:
                continue
    return size, count
