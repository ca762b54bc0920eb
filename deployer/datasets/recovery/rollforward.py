"""Brings a table's log up to its dataset: commits to Lance that are not recorded are recorded now.

`unrecorded` finds the updates to record, and writes nothing; `as_recorded` is for readers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.errors import OF_LANCE, as_deployer_error
from deployer.datasets.lance_transactions import RemoveFragments, commit_now, metadata_since
from deployer.datasets.recovery.as_recorded import newest_version, read_again
from deployer.datasets.recovery.doubled_jobs import doubled_fragments
from deployer.datasets.recovery.restored import roll_restore
from deployer.datasets.recovery.restored_together import begun_together, is_restoring, settle_together
from deployer.datasets.recovery.unrecorded import lacks_intents, missing_updates
from deployer.errors import CommitTimedOut, Conflict, Corrupt
from deployer.platform.storage.envelope import FORGED
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.model.table_locations import fault_of_pair
from deployer.state.transactions.tables import to_record

if TYPE_CHECKING:
    from deployer.state.store import StateStore

ATTEMPTS = 20  #: how often a roll-forward starts again because others keep committing


def refresh(store: StateStore, root: str, table_id: str) -> TableState:
    """Returns the table's newest state, after recording what Lance has and the log lacks.

    When nothing changed, this lists one folder and writes nothing. If another process is working on a restore of
    several tables, the table keeps its state from before.
    """
    return current(store, root, store.instance().tables[table_id], store.table(table_id))[1]


def current(store: StateStore, root: str, entry: TableEntry, state: TableState) -> tuple[TableEntry, TableState]:
    """Returns the newest entry and its state, rolled forward. A rewrite gives the table another dataset.

    Versions start at 1 in each dataset, so a state is never compared with another dataset than its own.
    """
    unreadable_at = -1
    for attempt in range(ATTEMPTS):
        if entry.dataset != state.dataset:  # read before and after a rewrite's commit
            entry, state = read_again(store, entry, state)
            continue
        if wrong := fault_of_pair(entry, state):
            raise Corrupt(wrong, where=entry.address, remedy=FORGED)
        location = dataset_location(root, entry)
        newest = newest_version(location, entry, state)
        if newest == state.lance_version and not is_restoring(state):
            return entry, state
        try:
            entry, state, is_settled = _roll_forward(store, root, entry, state, location)
            if is_settled:
                return entry, state
        except Conflict:
            if attempt:  # the first decision used an old state
                store.pause(attempt)
            entry, state = read_again(store, entry, state)
        except (
            OF_LANCE
        ) as failure:  # the files of versions that others recorded after the state was read, and then removed
            if unreadable_at == state.version:
                raise as_deployer_error(failure, location) from failure
            unreadable_at = state.version
            entry, state = read_again(store, entry, state)
    raise CommitTimedOut(
        "other processes commit to the table faster than it can be read",
        where=f"table/{entry.full_name}",
        attempts=ATTEMPTS,
    )


def _roll_forward(
    store: StateStore, root: str, entry: TableEntry, state: TableState, location: str
) -> tuple[TableEntry, TableState, bool]:
    """Takes the next step of a roll-forward: settles restores of several tables, removes the rows of a job that was
    committed twice, records a restore of this table, or records all other commits.

    Returns the pair afterwards, and whether it is the newest.
    """
    if together := begun_together(state):
        if "pending" in {settle_together(store, root, *each) for each in together}:
            return entry, state, True
        entry, newest = read_again(store, entry, state)
        if newest.version != state.version:
            return entry, newest, False
    dataset = open_dataset(location)
    if doubled := doubled_fragments(dataset, state):
        commit_now(location, dataset, RemoveFragments(sorted(doubled), "rows of a job that had been committed before"))
        return entry, state, False
    if (restored := roll_restore(store, dataset, state)) is not None:
        return entry, restored, False
    infos = metadata_since(dataset, state.lance_version)
    if lacks_intents(infos, state):
        entry, newest = read_again(store, entry, state)
        if newest.version != state.version:
            return entry, newest, False
    unchanged = to_record(state.lance_version, state.dataset)
    updates = missing_updates(dataset, state, infos=infos, only_changed=True)
    return entry, store.commit(state.table_id, updates, unchanged), True
