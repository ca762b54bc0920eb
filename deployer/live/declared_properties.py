"""The record of a table's declaration in the state: its properties, and beside them its owner, split points, limit of
leaves, unique keys, retention, legal holds, kept changes, embedding function and, of a view, its query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deployer.errors import CommitTimedOut, Conflict
from deployer.specs.declarations.embeddings import embedding_to_json
from deployer.specs.model import TableSpec
from deployer.specs.serialized.retention import holds_to_json, retention_to_json
from deployer.specs.serialized.specs import key_to_json, storage_in_full
from deployer.specs.types.view import view_to_stored
from deployer.state.log.updates import SetTableProperties, TableUpdate
from deployer.state.model.declared_properties import (
    EMBEDDING,
    HOLDS,
    MAX_ROWS_PER_LEAF,
    OWNER,
    RETAIN_CHANGES,
    RETENTION,
    SPLIT_POINTS,
    UNIQUE,
    VIEW,
)
from deployer.state.model.entities import JSON, TableProperties
from deployer.state.store import StateStore
from deployer.state.transactions.tables import to_redeclare

ATTEMPTS = 20  #: how often it is tried again because others change the table's properties


def declared_properties(spec: TableSpec, owner: str) -> TableProperties:
    """Returns the properties of a new table that `owner` manages."""
    return TableProperties(
        row_keys=spec.row_keys,
        sort_keys=spec.sort_keys,
        online=spec.online,
        deletion_protection=spec.deletion_protection,
        description=spec.description,
        storage=storage_in_full(spec.storage),
        tags=dict(spec.tags),
        declared={
            OWNER: owner,
            SPLIT_POINTS: [key_to_json(point) for point in spec.split_points],
            **({} if spec.max_rows_per_leaf is None else {MAX_ROWS_PER_LEAF: spec.max_rows_per_leaf}),
            **({UNIQUE: True} if spec.unique else {}),
            **({EMBEDDING: embedding_to_json(spec.embedding)} if spec.embedding else {}),
            **({} if spec.retention is None else {RETENTION: retention_to_json(spec.retention)}),
            **({HOLDS: holds_to_json(spec.holds)} if spec.holds else {}),
            **({} if spec.retain_changes is None else {RETAIN_CHANGES: spec.retain_changes}),
            **({} if spec.view is None else {VIEW: view_to_stored(spec.view)}),
        },
    )


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
    raise CommitTimedOut("other writers keep changing the table's properties", where=f"table {table_id}")
