"""Removes datasets that rewrites left: expired retired ones, and unfinished ones."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from deployer.datasets.dataset import latest_version, open_dataset
from deployer.datasets.lance_transactions import metadata_since
from deployer.datasets.storage.places import dataset_uri
from deployer.datasets.storage.removal import remove_dataset, require_removable
from deployer.errors import Conflict, Corrupt, DeployerError, NotFound
from deployer.live.former_datasets import FormerDataset, former_datasets
from deployer.platform.storage.envelope import FORGED
from deployer.platform.system.failpoints import reached
from deployer.state.log.updates import DatasetRemoved
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.model.location import Location
from deployer.state.model.table_locations import fault_of_pair
from deployer.state.reader import StateReader
from deployer.state.store import StateStore, to_write


@dataclass(frozen=True, slots=True)
class OldDataset:
    """The actual or planned outcome for one old dataset of a table.

    `why` is the reason why it is kept, empty when it is removed. `given_up`: it never belonged to the table, but to an
    interrupted rewrite that is no longer needed.
    """

    table: str
    location: Location
    why: str = ""
    given_up: bool = False


def remove_old_datasets(
    store: StateReader,
    root: str,
    now_ms: int | None = None,
    only: Collection[str] | None = None,
    begun_before: int | None = None,
    dry_run: bool = False,
    foreseen: Collection[tuple[str, int]] | None = None,
) -> list[OldDataset]:
    """Removes unneeded old datasets of all tables; can be repeated after a crash.

    A retired dataset stays for the time that its table declares, and as long as it has a savepoint. A retired dataset
    with later commits of other programs is reported and stays, because no table has those commits. Rewrites that no
    process runs are abandoned, if they began before `begun_before` (ms, if given). `only`: the tables with these ids.
    `dry_run`: only reports. `foreseen`: only these datasets are removed, by table id and the dataset's number. A
    dataset that cannot be removed is kept, with the reason.
    """
    now = int(time.time() * 1000) if now_ms is None else now_ms
    entries = {i: entry for i, entry in store.instance().tables.items() if entry.status == "active"}
    if only is not None:
        entries = {i: entry for i, entry in entries.items() if i in only}
    found: list[OldDataset] = []
    for table_id, state in store.each_table(tuple(entries))[0].items():  # one that cannot be read is left alone
        entry = entries[table_id]
        try:
            found += _of_table(store, root, entry, state, now, begun_before, dry_run, foreseen)
        except DeployerError as error:  # of what the table declares, or of its dataset
            found.append(OldDataset(entry.full_name, entry.location, f"its old datasets are left alone: {error.what}"))
    return found


def _of_table(
    store: StateReader,
    root: str,
    entry: TableEntry,
    state: TableState,
    now: int,
    begun_before: int | None,
    dry_run: bool,
    foreseen: Collection[tuple[str, int]] | None,
) -> Iterator[OldDataset]:
    former = former_datasets(state)
    if former and entry.dataset == state.dataset and (wrong := fault_of_pair(entry, state)):
        raise Corrupt(wrong, where=entry.address, remedy=FORGED)
    for each in former:
        wanted = foreseen is None or (entry.table_id, each.number) in foreseen
        if each.status == "retired" and (late := came_late(root, entry.location, entry.full_name, each)):
            yield OldDataset(entry.full_name, each.location, late)
        elif not wanted or not is_due(each, now, begun_before):
            continue
        elif each.status == "retired" and (names := each.needed_at(now if dry_run else -1)):
            yield OldDataset(entry.full_name, each.location, f"savepoints need it: {', '.join(names)}")
        else:
            gone = OldDataset(entry.full_name, each.location, given_up=each.status == "writing")
            try:
                if dry_run:
                    require_removable(store, root, entry.table_id, each.location)
                elif not _removed(to_write(store), root, entry, each):
                    continue
            except DeployerError as error:
                gone = replace(gone, why=error.what)
            yield gone


def is_due(dataset: FormerDataset, now: int, begun_before: int | None = None) -> bool:
    """Returns whether a dataset is old enough to be removed at `now` (ms)."""
    if dataset.status == "retired":
        return now >= dataset.kept_until
    return begun_before is None or dataset.since < begun_before


def came_late(root: str, current: Location, table: str, dataset: FormerDataset) -> str | None:
    """Returns the message that others committed to a retired dataset when the table already had another, and the
    remedy."""
    location, last = dataset_uri(root, dataset.location), dataset.lance_version
    late = _foreign_versions(location, last)
    if not late:
        return None
    versions = "1 version" if late == 1 else f"{late} versions"
    return (
        f"programs other than deployer committed {versions} to it after version {last}, when the table had "
        f"other data already, and what they wrote is in no table. Let them write to {dataset_uri(root, current)}, load "
        f"what they added into {table} (docs/changes.md, Writes to a replaced dataset), and delete {location}"
    )


def give_up(store: StateStore, root: str, table_id: str, number: int, location: Location) -> None:
    """Removes the dataset of a rewrite that its caller holds, and records that in the log."""
    remove_dataset(store, root, table_id, location, unfinished=True)
    reached("tables.rewrite.given-up")
    store.commit(table_id, [DatasetRemoved(number)])


def _removed(store: StateStore, root: str, entry: TableEntry, dataset: FormerDataset) -> bool:
    """Removes the dataset; returns False when a process runs the rewrite or finished it meanwhile."""
    if dataset.status == "retired":
        remove_dataset(store, root, entry.table_id, dataset.location)
        reached("tables.rewrite.old-removed")
        store.commit(entry.table_id, [DatasetRemoved(dataset.number)])
        return True
    from deployer.tables.evolution.rewrite.progress import Progress  # it loads Arrow, which most runs do not need

    require_removable(store, root, entry.table_id, dataset.location, unfinished=True)  # its lock makes a folder there
    try:
        with Progress(dataset_uri(root, dataset.location)).held():
            now = {each.number: each.status for each in store.table(entry.table_id).datasets}
            if now[dataset.number] != "writing":
                return False
            give_up(store, root, entry.table_id, dataset.number, dataset.location)
    except Conflict:
        return False
    return True


def _foreign_versions(location: str, last: int) -> int:
    """Returns the number of versions above the last recorded one that other programs committed. Commits of jobs do not
    count: their rows were never acknowledged."""
    try:
        if latest_version(location) <= last:
            return 0
        dataset = open_dataset(location)
    except NotFound:
        return 0
    return int(dataset.version) - last - len(metadata_since(dataset, last))
