"""What is remembered of a table beside its properties: owner, split points, limit of leaves, unique keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deployer.errors import CommitTimedOut, Conflict
from deployer.state.conflicts import to_redeclare
from deployer.state.model import JSON
from deployer.state.store import StateStore
from deployer.state.updates import SetTableProperties, TableUpdate

ATTEMPTS = 20  #: how often it is tried again because others change the table's properties


def declare(
    store: StateStore, table_id: str, changes: Mapping[str, JSON], with_updates: Sequence[TableUpdate] = ()
) -> None:
    """Sets these (None removes one) and leaves what others set, in one commit with `with_updates`."""
    for _ in range(ATTEMPTS):
        properties = store.table(table_id).properties
        merged = {**properties.declared, **changes}
        kept = {name: value for name, value in merged.items() if value is not None}
        try:
            store.commit(
                table_id,
                [SetTableProperties({"declared": kept}), *with_updates],
                to_redeclare(properties.generation),
            )
            return
        except Conflict:
            if store.table(table_id).properties.generation == properties.generation:
                raise
    raise CommitTimedOut("others change the table's properties again and again", where=f"table {table_id}")
