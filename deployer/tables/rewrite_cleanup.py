"""Removes datasets that rewrites left: retired ones when their time is over, and unfinished ones."""

from __future__ import annotations

import time
from dataclasses import dataclass

from deployer.errors import Conflict, NotFound
from deployer.live.lance_io import latest_version, open_dataset
from deployer.live.unrecorded import marks_since
from deployer.specs.durations import hours_of
from deployer.specs.model import Storage
from deployer.state.failpoints import reached
from deployer.state.model import Dataset, TableEntry, TableState
from deployer.state.reader import StateReader
from deployer.state.store import StateStore, to_write
from deployer.state.updates import DatasetRemoved
from deployer.tables.storage import dataset_uri, remove_dataset


@dataclass(frozen=True, slots=True)
class OldDataset:
    """What became of one old dataset of a table; `why` it was kept, empty when it was removed.

    `given_up`: it was never the table's, but that of a rewrite that was cut off and is not wanted any more.
    """

    table: str
    location: str
    why: str = ""
    given_up: bool = False


def remove_old_datasets(
    store: StateReader,
    root: str,
    now_ms: int | None = None,
    only: str = "",
    begun_before: int | None = None,
    dry_run: bool = False,
) -> list[OldDataset]:
    """Removes what no longer has to be kept of all tables; can be repeated after a crash.

    A retired dataset stays for the time that its table declares, and while a savepoint is of it. One that somebody else
    than deployer has committed to since it was retired is named at once, and stays: what was committed is in no table.
    Rewrites that nobody runs are given up, where they began before `begun_before` (ms) if that is given. `only`: of the
    table of that id alone. `dry_run`: says what would be done.
    """
    now = int(time.time() * 1000) if now_ms is None else now_ms
    entries = {i: entry for i, entry in store.instance().tables.items() if entry.status == "active"}
    entries = {i: entry for i, entry in entries.items() if only in ("", i)}
    found: list[OldDataset] = []
    for table_id, state in store.each_table(tuple(entries))[0].items():  # one that cannot be read is left alone
        kept = kept_ms(state)
        for each in state.datasets:
            if each.status == "retired" and (late := _came_late(store, root, entries[table_id], each)):
                found.append(late)
            elif each.status == "retired" and now - each.since >= kept:
                name = entries[table_id].full_name
                needing = ", ".join(_savepoints_of(state, each.number, now if dry_run else None))
                removed = (
                    OldDataset(name, each.location, f"savepoints need it: {needing}" if needing else "")
                    if dry_run or needing
                    else _remove_retired(to_write(store), root, entries[table_id], each)
                )
                found.append(removed)
            elif each.status == "writing" and begun_before is not None and each.since >= begun_before:
                continue
            elif each.status == "writing" and (dry_run or _is_left(to_write(store), root, table_id, each)):
                found.append(OldDataset(entries[table_id].full_name, each.location, given_up=True))
    return found


def _savepoints_of(state: TableState, dataset: int, at: int | None) -> list[str]:
    """The savepoints that are of that dataset; at a time (ms), without those whose own time is over then."""
    there = (each for each in state.savepoints.values() if each.dataset == dataset)
    return sorted(each.name for each in there if at is None or each.expires_at is None or each.expires_at > at)


def kept_ms(state: TableState) -> int:
    """How long a table's retired datasets are kept, in milliseconds."""
    return hours_of(str(state.properties.storage.get("keep_replaced_for", Storage().keep_replaced_for))) * 3_600_000


def give_up(store: StateStore, root: str, table_id: str, number: int, location: str) -> None:
    """Removes the dataset of a rewrite that its caller holds, and says so in the log."""
    remove_dataset(root, location)
    reached("tables.rewrite.given-up")
    store.commit(table_id, [DatasetRemoved(number)])


def _is_left(store: StateStore, root: str, table_id: str, dataset: Dataset) -> bool:
    """Gives the rewrite up; False when it is being worked on or was finished meanwhile."""
    from deployer.tables.rewrite_progress import Progress  # it loads Arrow, which most runs can do without

    try:
        with Progress(dataset_uri(root, dataset.location)).held():
            now = {each.number: each.status for each in store.table(table_id).datasets}
            if now[dataset.number] != "writing":
                return False
            give_up(store, root, table_id, dataset.number, dataset.location)
    except Conflict:
        return False
    return True


def _came_late(store: StateReader, root: str, entry: TableEntry, dataset: Dataset) -> OldDataset | None:
    """Names a dataset that others committed to when the table had another already, and what to do."""
    location, last = dataset_uri(root, dataset.location), dataset.lance_version
    late = _foreign_versions(location, last)
    if not late:
        return None
    versions = "1 version" if late == 1 else f"{late} versions"
    return OldDataset(
        entry.full_name,
        dataset.location,
        f"others than deployer committed {versions} to it after version {last}, when the table had other data already, "
        f"and what they wrote is in no table. Tell them to write to {dataset_uri(root, entry.location)}, load what "
        f"they added into {entry.full_name} (docs/changes.md, Rows that came too late), and delete {location}",
    )


def _remove_retired(store: StateStore, root: str, entry: TableEntry, dataset: Dataset) -> OldDataset:
    remove_dataset(root, dataset.location)
    reached("tables.rewrite.old-removed")
    store.commit(entry.table_id, [DatasetRemoved(dataset.number)])
    return OldDataset(entry.full_name, dataset.location)


def _foreign_versions(location: str, last: int) -> int:
    """How many versions above the last recorded one were not committed by a job, whose rows were never acknowledged."""
    try:
        if latest_version(location) <= last:
            return 0
        dataset = open_dataset(location)
    except NotFound:
        return 0
    return int(dataset.version) - last - len(marks_since(dataset, last))
