"""Declared split points as the state store's encoded key prefixes."""

from __future__ import annotations

from deployer.specs.keys import key_kind
from deployer.specs.model import TableSpec
from deployer.state.keys import encode_key


def encoded_split_points(spec: TableSpec) -> tuple[bytes, ...]:
    """One encoded prefix of the row-key tuple a split point, in ascending order."""
    columns = {column.name: column for column in spec.columns}
    kinds = [key_kind(columns[name]) for name in spec.row_keys]
    return tuple(encode_key(kinds[: len(point)], point) for point in spec.split_points)
