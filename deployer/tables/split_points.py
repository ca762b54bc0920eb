"""Declared split points as the state store's encoded key prefixes."""

from __future__ import annotations

from deployer.specs.model import TableSpec
from deployer.specs.types import format_type
from deployer.state.keys import encode_key


def encoded_split_points(spec: TableSpec) -> tuple[bytes, ...]:
    """One encoded prefix of the row-key tuple a split point, in ascending order."""
    types = {column.name: column.type for column in spec.columns}
    kinds = [format_type(types[name]) for name in spec.row_keys]
    return tuple(encode_key(kinds[: len(point)], point) for point in spec.split_points)
