"""Read leases: they keep a version from CLEAN while a process reads it. A lease is a savepoint that expires."""

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
    """Yields the table `database.name`, open for reading at its newest version.

    CLEAN does not remove the version within the block, for at most `hold_for`; the lease of a dead reader ends then
    too. Raises the errors of `open_table`. The lease is a commit to the table's log, so the reader needs the permission
    to write there. The lease keeps only this version, so do not refresh the table.
    """
    table = open_to_change(root, name)
    try:
        held, lease = _take(table, hold_for)
        try:
            yield Table(held)
        finally:
            with suppress(Conflict, NotFound):  # the lease expired and was removed, or the table was deleted
                remove_savepoint(held.store, [held.entry.table_id], lease)
    finally:
        table.store.close()


def hold_shared(opened: OpenTable, hold_for: dt.timedelta = HOLD) -> OpenTable:
    """Keeps the newest version of the table from CLEAN, for at least `hold_for` and at most twice that.

    It is for readers that cannot report their end. Readers of one version share a lease: nothing is written while a
    lease lasts long enough. A shared lease need not be released; the next one that is taken removes expired leases.
    """
    if _is_held(opened.state, opened.state.dataset, opened.state.lance_version, hold_for):
        return opened
    return _take(opened, 2 * hold_for, SHARED_LEASE)[0]


def hold_past(opened: OpenTable, of: PastVersion, hold_for: dt.timedelta = HOLD) -> None:
    """Takes a shared lease on an earlier version, as `hold_shared` does on the newest, unless one lasts long enough.

    A CLEAN that began before may still remove the version, so open the version after this call.
    """
    if not _is_held(opened.state, of.dataset, of.lance_version, hold_for):
        lease = f"{SHARED_LEASE}{uuid.uuid4().hex}"
        opened.store.commit(
            opened.entry.table_id, _updates(opened.state, lease, 2 * hold_for, of), to_take_savepoint(lease)
        )


def changes_are_held(state: TableState, dataset: int, lance_version: int, hold_for: dt.timedelta = HOLD) -> bool:
    """Returns whether a lease keeps the version, and all later ones, for at least `hold_for`."""
    until = Clock().now() + _milliseconds(hold_for)
    return any(
        (each.dataset, each.lance_version <= lance_version) == (dataset, True)
        and each.name.startswith(CHANGES_LEASE)
        and each.expires_at is not None
        and each.expires_at >= until
        for each in state.savepoints.values()
    )


def hold_changes(opened: OpenTable, of: PastVersion, hold_for: dt.timedelta = HOLD) -> None:
    """Takes a shared lease on a version and all later ones, for readers of changes."""
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
    """Takes a lease and returns the table in its state at the start of the lease, which may be newer than `opened`."""
    store, table_id = opened.store, opened.entry.table_id
    while True:
        lease = f"{prefix}{uuid.uuid4().hex}"
        state = store.commit(table_id, _updates(opened.state, lease, hold_for), to_take_savepoint(lease))
        entry = store.instance().tables[table_id]
        if entry.dataset == state.dataset:
            return OpenTable(store, opened.root, entry, state), lease
        remove_savepoint(store, [table_id], lease)  # a rewrite has replaced the dataset in between


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
