"""What CLUSTER rewrites, from files alone."""

from __future__ import annotations

from typing import Any

from deployer.runs.rewriting.tasks import Piece, Sizes, Task
from deployer.services.kinds.cluster.planning import Selection, plan_clusters
from deployer.state.model.entities import File, Partition

LEAVES = [Partition("p0", None, b"", b"m"), Partition("p1", None, b"m", None)]
SIZES = Sizes(file_bytes=100, file_rows=1000)


def piece(
    number: int, leaf: str | None, size: int = 80, by: str = "", keys: tuple[bytes, bytes] = (b"a", b"z")
) -> Piece:
    return Piece(File(number, leaf, size, size, *keys, clustering=by))


def plan(pieces: list[Piece], only: set[int] | None = None, portion: int = 1000, **more: Any) -> list[Task]:
    chosen = Selection("zorder:1,2", None if only is None else frozenset(only))
    return list(
        plan_clusters(pieces, LEAVES, chosen, SIZES, portion, more.get("place", lambda each: each.file.max_key))
    )


def test_what_is_clustered_by_these_columns_is_left_alone() -> None:
    pieces = [piece(1, "p0", by="zorder:1,2"), piece(2, "p1", 10, by="zorder:1,2")]
    assert plan(pieces) == []


def test_a_leaf_with_something_new_takes_its_small_files_too() -> None:
    pieces = [
        piece(1, "p0", 80, by="zorder:1,2"),
        piece(2, "p0", 10, by="zorder:1,2"),
        piece(3, "p0"),
        piece(4, "p1", 10, by="zorder:1,2"),
    ]
    [task] = plan(pieces)
    assert (set(task.fragments), task.leaves, task.rows) == ({2, 3}, ("p0",), 90)


def test_another_curve_or_other_columns_are_not_clustered() -> None:
    found = plan([piece(1, "p0", by="hilbert:1,2"), piece(2, "p0", by="zorder:2,1"), piece(3, "p0", by="zorder:1,2")])
    assert [set(task.fragments) for task in found] == [{1, 2}]


def test_a_whole_rewrite_takes_what_there_was_and_nothing_that_it_wrote() -> None:
    pieces = [piece(1, "p0", by="zorder:1,2"), piece(2, "p1"), piece(3, "p1", by="zorder:1,2")]
    assert [task.fragments for task in plan(pieces, only={1, 2})] == [(1,), (2,)]


def test_files_across_leaves_are_parted_into_those_that_they_reach() -> None:
    found = plan([piece(1, None, keys=(b"b", b"x")), piece(2, "p0"), piece(3, "old", keys=(b"n", b"o"))])
    assert [(task.fragments, task.leaves) for task in found] == [((1, 3), ("p0", "p1")), ((2,), ("p0",))]


def test_a_leaf_that_is_too_much_at_once_is_taken_by_place() -> None:
    keys = [(b"a", bytes([at])) for at in (9, 1, 8, 2)]
    found = plan([piece(i, "p0", 100, keys=each) for i, each in enumerate(keys)], portion=200)
    assert [task.fragments for task in found] == [(1, 3), (2, 0)]
