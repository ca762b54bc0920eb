"""Removes a dataset of a table: the only way in which data is removed.

Any program may have written a dataset's place in the state, so that is checked again when the dataset is removed: it is
a place that this table can have, the table does not need it, and no other table's data is there, inside of it or
around.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from deployer.datasets.storage.places import dataset_uri, datasets_beside, erase_dataset, has_notes, require_erasable
from deployer.errors import Corrupt, DeployerError, NotFound, Refused
from deployer.platform.storage.envelope import FORGED
from deployer.state.model.entities import Dataset, TableEntry
from deployer.state.model.location import Location
from deployer.state.model.table_locations import fault_of_entry, fault_of_move
from deployer.state.reader import StateReader
from deployer.state.store import StateStore


def locations_of(store: StateReader, root: str, entry: TableEntry) -> tuple[Location, ...]:
    """Returns the places of all datasets of a table that are not removed yet, the current one first.

    Where its log cannot be read they are those that lie beside the current one and carry the table's id.
    """
    try:
        datasets: tuple[Dataset, ...] = store.table(entry.table_id).datasets
    except (Corrupt, NotFound):  # damaged; or never written, or removed already
        beside = datasets_beside(root, entry.location, entry.table_id)
        return (entry.location, *(each for each in beside if each != entry.location))
    return (entry.location, *(each.location for each in datasets if each.status in ("retired", "writing")))


def remove_dataset(
    store: StateStore, root: str, table_id: str, location: Location, *, unfinished: bool = False
) -> None:
    """Removes the files of one dataset of a table; nothing to do when they are gone.

    Raises as `require_removable` does and, for links and content that does not belong to a dataset, as
    `storage.erase_dataset`.
    """
    require_removable(store, root, table_id, location, unfinished=unfinished)
    erase_dataset(root, location)


def require_removable(
    store: StateReader,
    root: str,
    table_id: str,
    location: Location,
    *,
    unfinished: bool = False,
    with_table: bool = False,
) -> None:
    """Raises Corrupt or Refused unless the dataset at `location` may be removed for that table.

    It is never the current one of an active table, unless that goes `with_table`; an `unfinished` one is one that a
    rewrite made. Reads the instance, and the logs of those other tables alone that may have a dataset there.
    """
    entries = store.instance().tables
    entry = entries.get(table_id)
    where = dataset_uri(root, location)
    if entry is None:
        raise Refused(
            f"there is no table {table_id}, so nothing of it is removed", where=where, remedy="check the state again"
        )
    if wrong := fault_of_move(entry, Location(location)) or fault_of_entry(entry):
        raise Corrupt(f"{wrong}, so it is not removed", where=where, remedy=FORGED)
    if "://" in root and not location.carries(entry.table_id):
        raise Corrupt(
            f"it does not carry the id of table {entry.full_name}, as datasets in a bucket do, so it is not removed",
            where=where,
            remedy=FORGED,
        )
    if unfinished and not location.carries(entry.table_id) and not has_notes(root, location):
        raise Corrupt(
            f"no rewrite of table {entry.full_name} made it, so it is not removed", where=where, remedy=FORGED
        )
    if entry.status == "active" and not with_table and _overlap(location, entry.location):
        raise Corrupt(
            f"it is the current data of table {entry.full_name}, so it is not removed", where=where, remedy=FORGED
        )
    require_erasable(root, location)
    for other in _near(entries.values(), location):
        if other.table_id != entry.table_id and (needed := needed_by(store, other, location)):
            raise Corrupt(f"{needed}, so it is not removed", where=where, remedy=FORGED)


def needed_by(store: StateReader, other: TableEntry, location: Location) -> str | None:
    """Returns why another table needs what is at that location; None when it does not."""
    if _overlap(location, other.location):
        return f"the data of table {other.full_name} is there"
    base, place = other.location.base(other.table_id).casefold(), location.comparable
    beside = place.startswith(base) and place[len(base)] in "-./"
    if not beside and not base.startswith(place):
        return None  # all datasets of a table have its base
    try:
        datasets: tuple[Dataset, ...] = store.table(other.table_id).datasets
    except NotFound:  # it is being created or deleted, and has no log
        return None
    except DeployerError as error:
        return f"the log of table {other.full_name}, which may need it, cannot be read ({error.what})"
    kept = (each for each in datasets if each.status != "removed" and _overlap(location, each.location))
    return next((f"dataset {each.number} of table {other.full_name} is there" for each in kept), None)


def _near(entries: Iterable[TableEntry], location: Location) -> list[TableEntry]:
    """Returns the entries for which `needed_by` may have a reason, without taking names apart again: an `up` of a
    thousand new tables asks of each whether one of the others needs its place."""
    place = location.comparable
    return [
        each
        for each in entries
        if place.startswith(forms := _forms(each.location, each.table_id))
        or forms[0].startswith(place)
        or forms[1].startswith(place)
    ]


@lru_cache(maxsize=65_536)
def _forms(current: Location, table_id: str) -> tuple[str, str]:
    """Returns what a table's current location, and what all its locations begin with, are compared by."""
    return current.comparable, current.base(table_id).casefold()


def _overlap(one: Location, other: Location) -> bool:
    a, b = one.comparable, other.comparable
    return a.startswith(b) or b.startswith(a)
