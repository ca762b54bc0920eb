"""Reading for long while CLEAN runs: a lease on the version that is read, which is a savepoint that expires."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from deployer.errors import Conflict, NotFound
from deployer.platform.system.clock import Clock
from deployer.services.savepoints.savepoints import remove_savepoint
from deployer.state.log.service_updates import SavepointTaken
from deployer.state.transactions.services import to_take_savepoint
from deployer.tables.open_table import OpenTable, open_to_change
from deployer.tables.read.table import Table

PREFIX = "reader-"  #: of the names of the savepoints
HOLD = dt.timedelta(hours=1)


@contextmanager
def leased(root: str, name: str, hold_for: dt.timedelta = HOLD) -> Iterator[Table]:
    """The table `database.name` opened for reading at its newest version, which no CLEAN removes within the block, for
    `hold_for` at most: a reader that dies holds it no longer than that.

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


def _take(opened: OpenTable, hold_for: dt.timedelta) -> tuple[OpenTable, str]:
    """The table as it was when the lease began, which may be after it was opened."""
    store, table_id = opened.store, opened.entry.table_id
    while True:
        lease = f"{PREFIX}{uuid.uuid4().hex}"
        until = Clock().now() + round(hold_for.total_seconds() * 1000)
        taken = SavepointTaken(lease, until, "a reader's lease")
        state = store.commit(table_id, [taken], to_take_savepoint(lease))
        entry = store.instance().tables[table_id]
        if entry.dataset == state.dataset:
            return OpenTable(store, opened.root, entry, state), lease
        remove_savepoint(store, [table_id], lease)  # a rewrite put another dataset in its place in between
