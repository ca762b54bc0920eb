"""Operations on the partition tree: building it from split points, checking it and splitting a leaf."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from deployer.state.model.entities import Partition


def partition_tree(split_points: Sequence[bytes], new_id: Callable[[], str]) -> tuple[Partition, ...]:
    """Returns the nodes of a balanced binary tree, root first, whose leaves are separated at `split_points`.

    The split points are encoded key prefixes. Raises ValueError when they do not ascend strictly, or when one is empty,
    because every key is at or above an empty one.
    """
    if any(low >= high for low, high in pairwise((b"", *split_points))):
        raise ValueError("split points must ascend, and none may be empty")
    nodes: list[Partition] = []

    def grow(points: Sequence[bytes], parent: str | None, lower: bytes, upper: bytes | None) -> str:
        own_id = new_id()
        at = len(nodes)
        nodes.append(Partition(own_id, parent, lower, upper))
        if points:
            middle = len(points) // 2
            left = grow(points[:middle], own_id, lower, points[middle])
            right = grow(points[middle + 1 :], own_id, points[middle], upper)
            nodes[at] = replace(nodes[at], children=(left, right), split_point=points[middle])
        return own_id

    grow(split_points, None, b"", None)
    return tuple(nodes)


def root_of(partitions: Mapping[str, Partition]) -> Partition:
    """Returns the partition of all keys. Raises ValueError when there is not exactly one."""
    roots = [partition for partition in partitions.values() if partition.parent is None]
    if len(roots) != 1:
        raise ValueError(f"a partition tree has one root, not {len(roots)}")
    return roots[0]


def split(
    partitions: Mapping[str, Partition], partition_id: str, split_point: bytes, left_id: str, right_id: str
) -> Mapping[str, Partition]:
    """Returns the partitions that splitting a leaf changes and adds. Raises ValueError when this split is not
    possible."""
    leaf = partitions.get(partition_id)
    if leaf is None:
        raise ValueError(f"partition {partition_id} does not exist")
    if not leaf.is_leaf:
        raise ValueError(f"partition {partition_id} was split already into {' and '.join(leaf.children)}")
    if split_point <= leaf.lower or (leaf.upper is not None and split_point >= leaf.upper):
        raise ValueError(f"the split point is not inside partition {partition_id}")
    for new_id in (left_id, right_id):
        if new_id in partitions or left_id == right_id:
            raise ValueError(f"partition {new_id} exists already")
    return {
        partition_id: replace(leaf, children=(left_id, right_id), split_point=split_point),
        left_id: Partition(left_id, partition_id, leaf.lower, split_point),
        right_id: Partition(right_id, partition_id, split_point, leaf.upper),
    }


def check_tree(partitions: Mapping[str, Partition]) -> None:
    """Raises ValueError unless the partitions are one complete tree, in which the ranges of each node's two children
    make up the node's range exactly."""
    root = root_of(partitions)
    if root.lower != b"" or root.upper is not None:
        raise ValueError(f"partition {root.partition_id} is the root and must hold all keys")
    reached = 0
    below = [root]
    while below:
        node = below.pop()
        reached += 1
        if node.is_leaf:
            if node.split_point is not None:
                raise ValueError(f"partition {node.partition_id} has a split point and no children")
            continue
        children = [partitions.get(child) for child in node.children]
        expected = [
            (node.partition_id, node.lower, node.split_point),
            (node.partition_id, node.split_point, node.upper),
        ]
        if [child and (child.parent, child.lower, child.upper) for child in children] != expected:
            raise ValueError(f"the children of partition {node.partition_id} do not part its range")
        below += [child for child in children if child is not None]
    if reached != len(partitions):
        raise ValueError("some partitions are not below the root")
