"""Removes a dataset of a table: the only way in which data is removed.

Any program may have written a dataset's place in the state, so the place is checked again when the dataset is removed:
it is a place that this table can have, the table does not need the dataset, and no other table has data at, below or
above that place.
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

    Where its log cannot be read, these are the datasets beside the current one that carry the table's id.
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
    """Removes the files of one dataset of a table; does nothing when they do not exist.

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

    The current dataset of an active table may only be removed `with_table`. `unfinished`: a rewrite must have made the
    dataset. Reads the instance, and only the logs of other tables that may have a dataset there.
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
    """Returns why another table needs the data at that location; None when no table needs it."""
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
    """Returns the entries for which `needed_by` may have a reason, without parsing names again. An `up` of a thousand
    new tables checks each of them against all others."""
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
    """Returns the forms by which a table's current location, and the base of all its locations, are compared."""
    return current.comparable, current.base(table_id).casefold()


def _overlap(one: Location, other: Location) -> bool:
    a, b = one.comparable, other.comparable
    return a.startswith(b) or b.startswith(a)
