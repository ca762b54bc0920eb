"""The partition tree."""

from __future__ import annotations

from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.state.model.entities import Partition, TableState
from deployer.state.model.partitions import check_tree, partition_tree

from .samples import leaf_for


def _tree(points: list[bytes]) -> dict[str, Partition]:
    ids = count()
    return {node.partition_id: node for node in partition_tree(points, lambda: f"p{next(ids)}")}


POINTS = st.lists(st.binary(min_size=1, max_size=2), unique=True, max_size=20).map(sorted)


@given(POINTS, st.binary(max_size=3))
def test_leaves_part_all_keys_at_the_split_points(points: list[bytes], key: bytes) -> None:
    tree = _tree(points)
    check_tree(tree)
    leaves = TableState(partitions=tree).leaves()
    assert [leaf.lower for leaf in leaves] == [b"", *points]
    assert [leaf.upper for leaf in leaves] == [*points, None]
    assert all(left.upper == right.lower for left, right in pairwise(leaves))
    assert [leaf for leaf in leaves if leaf.holds(key)] == [leaf_for(tree, key)]


@pytest.mark.parametrize("points", [[b""], [b"b", b"a"], [b"a", b"a"]], ids=["empty", "descending", "twice"])
def test_split_points_ascend(points: list[bytes]) -> None:
    with pytest.raises(ValueError, match="must ascend"):
        _tree(points)


LEFT, RIGHT = Partition("l", "r", b"", b"m"), Partition("g", "r", b"m", None)
ROOT = Partition("r", None, b"", None, ("l", "g"), b"m")
BROKEN = [
    ("two roots", [ROOT, LEFT, RIGHT, Partition("x", None)], "one root, not 2"),
    ("a child missing", [ROOT, LEFT], "children of partition r do not part"),
    ("a gap", [ROOT, LEFT, Partition("g", "r", b"n", None)], "children of partition r do not part"),
    ("one child", [Partition("r", None, b"", None, ("l",), b"m"), LEFT], "children of partition r do not part"),
    ("unreachable", [ROOT, LEFT, RIGHT, Partition("x", "l")], "not below the root"),
    ("a split leaf", [Partition("r", None, split_point=b"m")], "has a split point and no children"),
    ("a bounded root", [Partition("r", None, b"", b"z")], "must hold all keys"),
]


@pytest.mark.parametrize(("nodes", "words"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_a_broken_tree_is_noticed(nodes: list[Partition], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_tree({node.partition_id: node for node in nodes})
