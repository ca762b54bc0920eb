"""Reading for long while CLEAN runs: a lease on the version that is read, which is a savepoint that expires."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from deployer.errors import Conflict, NotFound
from deployer.platform.system.clock import Clock
from deployer.services.savepoints.savepoints import remove_savepoint
from deployer.state.log.service_updates import PastVersion, SavepointsExpired, SavepointTaken
from deployer.state.log.updates import TableUpdate
from deployer.state.model.entities import TableState
from deployer.state.model.services import CHANGES_LEASE, LEASE, SHARED_LEASE, Savepoint
from deployer.state.transactions.services import to_take_savepoint
from deployer.tables.open_table import OpenTable, open_to_change
from deployer.tables.read.table import Table

HOLD = dt.timedelta(hours=1)


@contextmanager
def leased(root: str, name: str, hold_for: dt.timedelta = HOLD) -> Iterator[Table]:
    """Yields the table `database.name` opened for reading at its newest version, which no CLEAN removes within the
    block, for `hold_for` at most: a reader that dies holds it no longer than that.

    Raises as `open_table` does. Taking the lease is a commit to the table's log, so the reader needs the
    right to write there. The lease is of that version alone, so the table is not to be refreshed.
    """
    table = open_to_change(root, name)
    try:
        held, lease = _take(table, hold_for)
        try:
            yield Table(held)
        finally:
            with suppress(Conflict, NotFound):  # its time was over and it was removed, or the whole table
                remove_savepoint(held.store, [held.entry.table_id], lease)
    finally:
        table.store.close()


def hold_shared(opened: OpenTable, hold_for: dt.timedelta = HOLD) -> OpenTable:
    """Holds the newest version of the table, which no CLEAN removes for `hold_for` at least, and twice that at most.

    For readers that cannot tell when they end. Those of one version share a lease: nothing is written while there is
    one that lasts long enough. Nothing has to be released; leases that are over go when the next one is taken.
    """
    if _is_held(opened.state, opened.state.dataset, opened.state.lance_version, hold_for):
        return opened
    return _take(opened, 2 * hold_for, SHARED_LEASE)[0]


def hold_past(opened: OpenTable, of: PastVersion, hold_for: dt.timedelta = HOLD) -> None:
    """Extends a shared lease on an earlier version, or takes one, as `hold_shared` does on the newest.

    A CLEAN that began before may still remove the version: it is to be opened afterwards.
    """
    if not _is_held(opened.state, of.dataset, of.lance_version, hold_for):
        lease = f"{SHARED_LEASE}{uuid.uuid4().hex}"
        opened.store.commit(
            opened.entry.table_id, _updates(opened.state, lease, 2 * hold_for, of), to_take_savepoint(lease)
        )


def changes_are_held(state: TableState, dataset: int, lance_version: int, hold_for: dt.timedelta = HOLD) -> bool:
    """Returns whether a lease keeps the version, and all after it, for so long."""
    until = Clock().now() + _milliseconds(hold_for)
    return any(
        (each.dataset, each.lance_version <= lance_version) == (dataset, True)
        and each.name.startswith(CHANGES_LEASE)
        and each.expires_at is not None
        and each.expires_at >= until
        for each in state.savepoints.values()
    )


def hold_changes(opened: OpenTable, of: PastVersion, hold_for: dt.timedelta = HOLD) -> None:
    """Takes a shared lease on a version and all after it, for readers of changes, as `hold_shared` does on one."""
    lease = f"{CHANGES_LEASE}{uuid.uuid4().hex}"
    opened.store.commit(
        opened.entry.table_id, _updates(opened.state, lease, 2 * hold_for, of), to_take_savepoint(lease)
    )


def _is_held(state: TableState, dataset: int, lance_version: int, hold_for: dt.timedelta) -> bool:
    until = Clock().now() + _milliseconds(hold_for)
    return any(
        (each.dataset, each.lance_version) == (dataset, lance_version)
        and each.name.startswith(SHARED_LEASE)
        and each.expires_at is not None
        and each.expires_at >= until
        for each in state.savepoints.values()
    )


def _take(opened: OpenTable, hold_for: dt.timedelta, prefix: str = LEASE) -> tuple[OpenTable, str]:
    """Takes a lease; returns the table as it was when the lease began, which may be after it was opened."""
    store, table_id = opened.store, opened.entry.table_id
    while True:
        lease = f"{prefix}{uuid.uuid4().hex}"
        state = store.commit(table_id, _updates(opened.state, lease, hold_for), to_take_savepoint(lease))
        entry = store.instance().tables[table_id]
        if entry.dataset == state.dataset:
            return OpenTable(store, opened.root, entry, state), lease
        remove_savepoint(store, [table_id], lease)  # a rewrite put another dataset in its place in between


def _updates(state: TableState, lease: str, hold_for: dt.timedelta, of: PastVersion | None = None) -> list[TableUpdate]:
    now = Clock().now()
    taken = SavepointTaken(lease, now + _milliseconds(hold_for), "a reader's lease", of)
    over = any(_is_over(each, now) for each in state.savepoints.values())
    return [SavepointsExpired(now), taken] if over else [taken]


def _is_over(savepoint: Savepoint, now: int) -> bool:
    is_shared = savepoint.name.startswith(SHARED_LEASE)
    return is_shared and savepoint.expires_at is not None and savepoint.expires_at <= now


def _milliseconds(time: dt.timedelta) -> int:
    return round(time.total_seconds() * 1000)
