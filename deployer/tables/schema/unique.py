"""Declares a table's row keys unique, or not: counted on all rows first, while no load commits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.recovery.rollforward import current
from deployer.errors import Conflict
from deployer.state.log.updates import CommitAbandoned, SetTableProperties
from deployer.state.model.declared_properties import UNIQUE
from deployer.state.transactions.tables import to_make_unique
from deployer.tables.ingest.commit.unique_keys import PATIENCE, dead_loads, stuck
from deployer.tables.schema.check import refuse_what_fails

if TYPE_CHECKING:
    from deployer.plan.changes import SetUnique
    from deployer.state.store import StateStore


def declare_unique(store: StateStore, root: str, table_id: str, change: SetUnique) -> None:
    """Makes the row keys unique from now on. Raises Refused when rows have the keys of others, Conflict when other
    loads do not end."""
    until, lost = time.monotonic() + PATIENCE, 0
    while True:
        entry, state = current(store, root, store.instance().tables[table_id], store.table(table_id))
        refuse_what_fails(open_dataset(dataset_location(root, entry), state.lance_version), change)
        declared = SetTableProperties({"declared": {**state.properties.declared, UNIQUE: True}})
        dead = dead_loads(state, time.time_ns() // 1_000_000)
        required = to_make_unique(state.properties.generation, state.lance_version, state.dataset, dead)
        try:
            store.commit(table_id, [*map(CommitAbandoned, dead), declared], required)
        except Conflict as conflict:
            if time.monotonic() > until:
                raise stuck(store.table(table_id), "", conflict, change.address) from conflict
        else:
            return
        lost += 1
        store.pause(lost)
