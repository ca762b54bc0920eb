"""A table as it is live, after recording what Lance has and the log lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.datasets.recovery.rollforward import current
from deployer.live.model import LiveTable
from deployer.live.reader import live_table
from deployer.state.model.entities import TableEntry

if TYPE_CHECKING:
    from deployer.state.store import StateStore


def recorded_table(store: StateStore, root: str, entry: TableEntry) -> LiveTable:
    """Returns the live table of an active entry, after recording what Lance has and the log lacks."""
    return live_table(*current(store, root, entry, store.table(entry.table_id)))
