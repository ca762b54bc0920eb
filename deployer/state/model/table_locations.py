"""Checks of the locations of tables: no two tables share data, and all datasets of a table are in one place.

Each function that checks returns the fault as text, and None if there is no fault. The reducer checks each entry, and
a reader of a snapshot checks the whole state. Every process that opens a table or removes its data checks them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deployer.state.model.entities import Dataset, TableEntry, TableState
from deployer.state.model.location import Location, first_clash, is_within, new_location


def fault_between(entries: Iterable[TableEntry]) -> str | None:
    """Returns the fault of two tables that have the same location, or of which one lies inside the other."""
    by_location: dict[str, TableEntry] = {}
    for entry in entries:
        if (other := by_location.setdefault(entry.location, entry)) is not entry:
            return f"tables {other.full_name} and {entry.full_name} have the same location {entry.location}"
    clash = first_clash(by_location)
    if clash is None:
        return None
    outer, inner = (by_location[each] for each in clash)
    return (
        f"the location of table {inner.full_name}, {inner.location}, lies inside that of table {outer.full_name}, "
        f"{outer.location}"
    )


def is_shared(entry: TableEntry, entries: Iterable[TableEntry]) -> bool:
    """Returns whether another of the entries has the location of this entry, lies inside it, or contains it."""
    own = f"{entry.location}/"
    others = [f"{each.location}/" for each in entries if each is not entry]
    return any(other.startswith(own) or own.startswith(other) for other in others)


def fault_of_entry(entry: TableEntry) -> str | None:
    """Returns the fault of a table whose dataset's number does not fit the location, or that is being created at a
    location that is not its own."""
    if fault := _fault_of_number(entry.dataset, entry.location):
        return f"table {entry.full_name}: {fault}"
    made = new_location(entry.database, entry.name, entry.table_id)
    if entry.status == "creating" and entry.location != made:
        return f"table {entry.full_name} is being created at {entry.location}, and its own place is {made}"
    return None


def fault_of_move(entry: TableEntry, location: Location) -> str | None:
    """Returns the fault of a `location` at which the table cannot have a dataset."""
    id, now = entry.table_id, entry.location
    if location.base(id) == now.base(id) and (location.carries(id) or not (now.carries(id) and now.number is None)):
        return None  # only the datasets of an imported table may have locations without the table's id
    return f"table {entry.full_name} at {entry.location} cannot have a dataset at {location}"


def fault_of_datasets(table_id: str, datasets: Sequence[Dataset]) -> str | None:
    """Returns the fault of datasets that one table cannot have had, such as locations that differ by more than the
    number of the dataset."""
    numbers = [each.number for each in datasets]
    if numbers != sorted(set(numbers)) or (numbers and numbers[0] < 1):
        return f"the numbers of its datasets are {', '.join(map(str, numbers[:20]))}, and must ascend from 1"
    if sum(each.status == "current" for each in datasets) > 1:
        return "it has several current datasets"
    for each in datasets:
        if fault := _fault_of_number(each.number, each.location):
            return fault
        if each.location.base(table_id) != datasets[0].location.base(table_id):
            return f"one table cannot have datasets at {datasets[0].location} and at {each.location}"
    kept = [each.location for each in datasets if each.status != "removed"]
    if twice := next((each for each in kept if kept.count(each) > 1), None):
        return f"two of its datasets are at {twice}"
    return None


def fault_of_pair(entry: TableEntry, state: TableState) -> str | None:
    """Returns the fault if the table's own log and the instance contradict each other about the table's datasets."""
    if not state.datasets:
        return None
    for each in state.datasets:
        if (wrong := fault_of_move(entry, each.location)) is not None:
            return wrong
        if each.status == "current" and each.number == entry.dataset and each.location != entry.location:
            return f"its log has dataset {each.number} at {each.location}, and the instance at {entry.location}"
        if each.status != "current" and each.number == entry.dataset == state.dataset:
            return f"its dataset {each.number} is {each.status}, and the instance has it as the current one"
        if each.number != state.dataset and each.status != "removed" and _overlap(each.location, entry, state):
            return f"its dataset {each.number}, which is {each.status}, is at the place of its current one"
    return None


def _fault_of_number(number: int, location: Location) -> str | None:
    """Returns the fault of a dataset number that is invalid or that the location does not end with. The first dataset
    may be at any location."""
    if number < 1:
        return f"{number} is not the number of a dataset: they are numbered from 1"
    if number > 1 and location.number != number:
        return f"dataset {number} cannot be at {location}, which does not end with -g{number}.lance"
    return None


def _overlap(location: Location, entry: TableEntry, state: TableState) -> bool:
    """Returns whether `location` is that of the table's current dataset, lies inside it or contains it.

    Returns False if the entry and the state are of different moments, because their current datasets differ.
    """
    if entry.dataset != state.dataset:
        return False
    return is_within(location, entry.location) or is_within(entry.location, location)
