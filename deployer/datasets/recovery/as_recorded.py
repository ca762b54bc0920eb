"""A table's state as it would be recorded, for readers: what Lance has and the log lacks is added to the state in
memory, and nothing is written. `rollforward` does the same and records it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from deployer.datasets.dataset import dataset_location, newest_manifest, open_dataset, version_of
from deployer.datasets.errors import lance_errors
from deployer.datasets.lance_transactions import metadata_since
from deployer.datasets.recovery.doubled_jobs import doubled_fragments
from deployer.datasets.recovery.past_version import applied
from deployer.datasets.recovery.restored import UndoneRestore, ValidRestore, WaitingRestore, judged_restore
from deployer.datasets.recovery.unrecorded import lacks_intents, missing_updates
from deployer.errors import CommitTimedOut, Corrupt, NotFound
from deployer.platform.storage.envelope import FORGED
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.model.table_locations import fault_of_pair

if TYPE_CHECKING:
    import lance

    from deployer.state.reader import StateReader

ATTEMPTS = 20  #: how often the entry and the state are read again because other processes keep changing the table


@dataclass(frozen=True, slots=True)
class CurrentState:
    """An entry and the state that belongs to it. `without` are fragments of the state's version that a job committed
    twice: the next writer removes them, and their rows do not count. `recorded`: the log has all of the state. Then
    `manifest` is the name of the newest manifest, which belongs to the state's version."""

    entry: TableEntry
    state: TableState
    without: frozenset[int] = frozenset()
    recorded: bool = True
    manifest: str = ""


def as_recorded(store: StateReader, root: str, entry: TableEntry, state: TableState) -> CurrentState:
    """Returns the newest entry and its state, with everything that Lance has.

    Raises Corrupt and NotFound for a dataset that cannot be read.
    """
    is_newest = False
    for _ in range(ATTEMPTS):
        if entry.dataset != state.dataset:  # read before and after a rewrite's commit
            entry, state = read_again(store, entry, state)
            continue
        if wrong := fault_of_pair(entry, state):
            raise Corrupt(wrong, where=entry.address, remedy=FORGED)
        location = dataset_location(root, entry)
        before = state
        try:
            with lance_errors(location):
                manifest = _newest_manifest(location, entry, state)
                if version_of(manifest) == state.lance_version:
                    return CurrentState(entry, state, manifest=manifest)
                if is_newest:
                    dataset = open_dataset(location)
                    if lacks_intents(metadata_since(dataset, state.lance_version), state):
                        entry, state = read_again(store, entry, state)
                    if state.version == before.version:
                        return _with_unrecorded(store, dataset, CurrentState(entry, state))
                    continue
        except Corrupt:  # unless another process recorded the versions and then removed them
            entry, state = read_again(store, entry, state)
            if state.version == before.version:
                raise
            continue
        entry, state = read_again(store, entry, state)  # another process may have recorded it
        is_newest = state.version == before.version or is_newest
    raise CommitTimedOut(
        "other processes rewrite the table faster than it can be read",
        where=f"table/{entry.full_name}",
        attempts=ATTEMPTS,
    )


def newest_version(location: str, entry: TableEntry, state: TableState) -> int:
    """Returns the newest version of the table's dataset. Raises Corrupt for a dataset that is older than the recorded
    state."""
    return version_of(_newest_manifest(location, entry, state))


def _newest_manifest(location: str, entry: TableEntry, state: TableState) -> str:
    manifest = newest_manifest(location)
    newest = version_of(manifest)
    if newest < state.lance_version:
        raise Corrupt(
            f"the dataset is at version {newest}, but version {state.lance_version} was recorded",
            where=f"table/{entry.full_name} ({location})",
            remedy="an older copy replaced it; put the newest copy back",
        )
    return manifest


def read_again(store: StateReader, entry: TableEntry, state: TableState) -> tuple[TableEntry, TableState]:
    """Returns the current entry and state. Raises NotFound for a table that was removed meanwhile."""
    found = store.instance().tables.get(entry.table_id)
    if found is None:
        raise NotFound("the table was removed meanwhile", where=f"table/{entry.full_name}")
    return found, store.table(state.table_id)


def _with_unrecorded(store: StateReader, dataset: lance.LanceDataset, seen: CurrentState) -> CurrentState:
    """Returns the state with the content of the opened version of the dataset."""
    state = seen.state
    doubled = doubled_fragments(dataset, state)
    while dataset.version > state.lance_version:
        match judged_restore(store, dataset, state):
            case ValidRestore(update):
                state = applied(state, [update])
            case UndoneRestore(version):
                dataset = dataset.checkout_version(version - 1)
            case WaitingRestore():  # the table is as before until all tables of the restore are recorded
                break
            case None:
                state = applied(state, missing_updates(dataset, state, doubled, only_changed=True))
    return CurrentState(seen.entry, state, doubled, recorded=False)
