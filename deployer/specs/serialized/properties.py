"""The form in which the state keeps a table's declaration.

The form has the table's properties and, beside them, its owner, split points, limit of rows in a leaf, unique keys,
retention, legal holds, retention of changes and embedding function, and the query of a view.
"""

from __future__ import annotations

from deployer.specs.declarations.embeddings import embedding_to_json
from deployer.specs.model import TableSpec
from deployer.specs.serialized.retention import holds_to_json, retention_to_json
from deployer.specs.serialized.specs import key_to_json, storage_in_full
from deployer.specs.types.view import view_to_stored
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
from deployer.state.model.entities import TableProperties


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
