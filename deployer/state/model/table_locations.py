"""The locations that the tables of an instance may have: no two share data, and the datasets of one lie together.

Each function returns what is wrong, and None when nothing is. The reducer asks them of each entry, a snapshot's
reader of the whole state, and every process that opens a table or removes its data checks them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from deployer.state.model.entities import Dataset, TableEntry, TableState
from deployer.state.model.location import Location, first_clash, is_within, new_location


def fault_between(entries: Iterable[TableEntry]) -> str | None:
    """Two tables at one location, or one inside of the other."""
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
    """Returns whether another of the entries has the location of this one, or lies inside of it or around."""
    own = f"{entry.location}/"
    others = [f"{each.location}/" for each in entries if each is not entry]
    return any(other.startswith(own) or own.startswith(other) for other in others)


def fault_of_entry(entry: TableEntry) -> str | None:
    """Returns a dataset whose number does not fit its place, or a table that is being created in the place of other
    data."""
    if fault := _fault_of_number(entry.dataset, entry.location):
        return f"table {entry.full_name}: {fault}"
    made = new_location(entry.database, entry.name, entry.table_id)
    if entry.status == "creating" and entry.location != made:
        return f"table {entry.full_name} is being created at {entry.location}, and its own place is {made}"
    return None


def fault_of_move(entry: TableEntry, location: Location) -> str | None:
    """Returns a dataset that replaces the table's current one and is not one of its own."""
    id, now = entry.table_id, entry.location
    if location.base(id) == now.base(id) and (location.carries(id) or not (now.carries(id) and now.number is None)):
        return None  # without its id only where the table was imported
    return f"table {entry.full_name} at {entry.location} cannot have a dataset at {location}"


def fault_of_datasets(table_id: str, datasets: Sequence[Dataset]) -> str | None:
    """Datasets that one table cannot have had: their places differ by more than their number."""
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
    """Returns what the table's own log says of its datasets against what the instance says of the table."""
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
    """Returns a dataset that is not the first of its table, and that no rewrite made at that place."""
    if number < 1:
        return f"{number} is not the number of a dataset: they are numbered from 1"
    if number > 1 and location.number != number:
        return f"dataset {number} cannot be at {location}, which does not end with -g{number}.lance"
    return None


def _overlap(location: Location, entry: TableEntry, state: TableState) -> bool:
    """Returns whether another dataset of the table lies at the current one's place; only where both logs are of one
    moment."""
    if entry.dataset != state.dataset:
        return False
    return is_within(location, entry.location) or is_within(entry.location, location)
