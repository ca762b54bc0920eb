"""Declared split points as the state store's encoded key prefixes, and the partition tree that they declare."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from deployer.specs.model import TableSpec
from deployer.specs.values.keys import key_kind
from deployer.state.model.entities import Partition
from deployer.state.model.keys import encode_key
from deployer.state.model.partitions import partition_tree


def encoded_split_points(spec: TableSpec) -> tuple[bytes, ...]:
    """Returns an encoded prefix of the row-key tuple for each split point, in ascending order."""
    columns = {column.name: column for column in spec.columns}
    kinds = [key_kind(columns[name]) for name in spec.row_keys]
    return tuple(encode_key(kinds[: len(point)], point) for point in spec.split_points)


def declared_partitions(spec: TableSpec) -> tuple[Partition, ...]:
    """Returns a new tree of the declared leaves, root first; ids are random."""
    return _tree(encoded_split_points(spec))


def one_leaf() -> tuple[Partition, ...]:
    """Returns a new tree of one leaf, whose id is random."""
    return _tree(())


def _tree(points: Sequence[bytes]) -> tuple[Partition, ...]:
    return partition_tree(points, lambda: uuid.uuid4().hex[:12])
