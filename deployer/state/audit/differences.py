"""Lists faults within a state and between two states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from deployer.state.model.entities import Files, InstanceState, Partition, State, TableState
from deployer.state.model.partitions import check_tree
from deployer.state.model.services import EXCLUDES
from deployer.state.model.table_locations import fault_between, fault_of_datasets

_SHOWN = 3  #: maximum number of differences that are named for one part

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference or damage.

    `where` names the stored object, `what` the fault. `lasting`: the data itself is damaged, which no change of the
    state can repair.
    """

    where: str
    what: str
    lasting: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def state_differences(held: State, folded: State) -> list[str]:
    """Returns the differences between a stored state and the state that the log makes, one line for each part.

    The list is empty when the states are equal.
    """
    lines = []
    for each in fields(folded):
        name = each.name
        one, other = getattr(held, name), getattr(folded, name)
        if one == other:
            continue
        if isinstance(one, Files) and isinstance(other, Files):
            one, other = ({file.fragment_id: file for file in files} for files in (one, other))
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if dict(one) != dict(other):
                lines.append(f"{name}: {_mapping_difference(one, other)}")
            continue
        shown = (_plain(one), _plain(other))
        lines.append(f"{name} is {shown[0]}, but {shown[1]} by the log" if all(shown) else f"{name} differs")
    return lines


def _mapping_difference(held: Mapping[K, object], folded: Mapping[K, object]) -> str:
    parts = []
    for change, keys in (
        ("only in the stored state:", [key for key in held if key not in folded]),
        ("only in the log:", [key for key in folded if key not in held]),
        ("different:", [key for key in held if key in folded and held[key] != folded[key]]),
    ):
        if keys:
            more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
            parts.append(f"{change} {', '.join(map(str, keys[:_SHOWN]))}{more}")
    return "; ".join(parts)


def _plain(value: object) -> str:
    text = str(value) if isinstance(value, int | str) else ""
    return text if len(text) < 100 else ""


def inner_differences(state: State, where: str) -> Iterator[Difference]:
    """Yields the violations of rules that hold within every state."""
    if not state.version:
        return
    if isinstance(state, InstanceState):
        names = Counter(entry.full_name for entry in state.tables.values())
        for each in sorted(name for name, count in names.items() if count > 1):
            yield Difference(where, f"several tables have the name {each}")
        if wrong := fault_between(state.tables.values()):
            yield Difference(where, wrong)
        return
    yield from _table(state, where)


def _table(state: TableState, where: str) -> Iterator[Difference]:
    try:
        check_tree(state.partitions)
    except ValueError as error:
        yield Difference(where, f"its partitions do not cover the keys: {error}")
    for name, partition in state.partitions.items():
        if name != partition.partition_id:
            yield Difference(where, f"partition {partition.partition_id} is recorded as {name}")
    if wrong := fault_of_datasets(state.table_id, state.datasets):
        yield Difference(where, wrong)
    for job_id in state.jobs:
        if job_id in state.intents:
            yield Difference(where, f"job {job_id} is done, and its commit is unfinished")
        if state.jobs[job_id].lance_version > state.lance_version and not state.datasets:
            yield Difference(where, f"job {job_id} is of a dataset version above the newest recorded")
    yield from (Difference(where, what) for what in _services(state))
    for file in state.files:
        if file.partition is None:
            continue
        found = state.partitions.get(file.partition)
        if found is None:
            yield Difference(
                where, f"fragment {file.fragment_id} is in partition {file.partition}, which does not exist"
            )
        elif not _lies_within(found, file.min_key, file.max_key):
            yield Difference(where, f"fragment {file.fragment_id} has keys outside of its partition {file.partition}")


def _services(state: TableState) -> Iterator[str]:
    for kind in EXCLUDES:
        still_open = sorted(run.run_id for run in state.runs.values() if run.service == kind and run.is_open)
        if len(still_open) > 1:
            yield f"several runs of {kind} are queued or running: {', '.join(still_open)}"
    removed = {each.number for each in state.datasets if each.status == "removed"}
    for savepoint in state.savepoints.values():
        if savepoint.dataset in removed:
            yield f"savepoint {savepoint.name} is of dataset {savepoint.dataset}, which was removed"
        if savepoint.state_version > state.version:
            yield f"savepoint {savepoint.name} is of a version above the newest of the log"


def _lies_within(partition: Partition, low: bytes | None, high: bytes | None) -> bool:
    if low is None or high is None:
        return True
    return low <= high and partition.holds(low) and partition.holds(high)
