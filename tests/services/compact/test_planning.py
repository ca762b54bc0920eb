"""What COMPACT plans: each file in one task at most, nothing left to do once the tasks are done, order kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.runs.rewriting.tasks import (
    Piece,
    Sizes,
    Strategy,
    Task,
    files_of,
    in_batches,
)
from deployer.services.kinds.compact.leaf_planning import plan_by_leaf
from deployer.services.kinds.compact.planning import plan_in_order
from deployer.state.model.entities import File, Partition

LEAVES = (
    Partition("a", "root", b"", b"\x40"),
    Partition("b", "root", b"\x40", b"\x80"),
    Partition("c", "root", b"\x80", None),
)
SIZES = Sizes(1000, 100, 2, 0.1, 100_000)
STRATEGIES: tuple[Strategy, ...] = ("size", "tiered", "leveled")


def leaf_of(key: int) -> str | None:
    return "abcc"[key // 64]


def keyed(
    number: int, low: int, high: int, rows: int = 10, size: int = 100, deleted: int = 0, *, ok: bool = True
) -> Piece:
    name = leaf_of(low) if leaf_of(low) == leaf_of(high) else None
    return Piece(File(number, name, rows, size, bytes([low]), bytes([high]), sorted=ok), deleted)


def plain(number: int, rows: int = 10, size: int = 100, deleted: int = 0, kind: str = "") -> Piece:
    return Piece(File(number, "root", rows, size), deleted, kind)


def planned(pieces: Sequence[Piece], sizes: Sizes = SIZES) -> tuple[Task, ...]:
    return plan_by_leaf(pieces, LEAVES, sizes)


def fragments(tasks: Sequence[Task]) -> list[tuple[int, ...]]:
    return [task.fragments for task in tasks]


CASES: dict[str, tuple[list[Piece], list[tuple[int, ...]]]] = {
    "small files of one leaf": ([keyed(0, 1, 9), keyed(1, 2, 5), keyed(2, 3, 9)], [(0, 1, 2)]),
    "one small file": ([keyed(0, 1, 9)], []),
    "a large one is left": ([keyed(0, 1, 9), keyed(1, 2, 5), keyed(2, 3, 9, size=900)], [(0, 1)]),
    "each leaf by itself": ([keyed(0, 1, 9), keyed(1, 70, 90), keyed(2, 3, 9), keyed(3, 71, 99)], [(0, 2), (1, 3)]),
    "many rows are large too": ([keyed(0, 1, 9), keyed(1, 2, 5, rows=90)], []),
    "deleted rows": ([keyed(0, 1, 9, size=900, rows=60, deleted=20)], [(0,)]),
    "few deleted rows": ([keyed(0, 1, 9, size=900, rows=95, deleted=5)], []),
    "not sorted": ([keyed(0, 1, 9, size=900, ok=False)], [(0,)]),
    "across leaves, with what is small there": (
        [keyed(0, 1, 9), keyed(1, 2, 70, ok=False), keyed(2, 70, 71, size=900), keyed(3, 130, 140)],
        [(1, 0)],
    ),
    "nothing": ([], []),
}


@pytest.mark.parametrize("name", CASES)
def test_tasks_of_a_table_with_keys(name: str) -> None:
    pieces, expected = CASES[name]
    assert fragments(planned(pieces)) == expected


def test_a_file_across_leaves_may_go_to_all_that_it_reaches() -> None:
    [task] = planned([keyed(1, 2, 70)])
    assert task.leaves == ("a", "b")
    unknown = Piece(File(2, None, 10, 10))
    assert planned([unknown])[0].leaves == ("a", "b", "c")


def test_fewer_small_files_than_asked_for_are_left() -> None:
    pieces = [keyed(i, 1, 9) for i in range(3)]
    assert not planned(pieces, replace(SIZES, min_files=4))
    assert planned(pieces, replace(SIZES, min_files=3))


def test_tiers_are_merged_once_they_are_full_and_cascade() -> None:
    sizes = replace(SIZES, strategy="tiered")
    tiny, middle = [keyed(i, 1, 9, rows=1, size=10) for i in range(4)], [keyed(10 + i, 1, 9, size=35) for i in range(3)]
    assert not planned(tiny[:3] + middle, sizes)
    assert fragments(planned(tiny, sizes)) == [(0, 1, 2, 3)]
    assert sorted(planned([*tiny, *middle], sizes)[0].fragments) == [0, 1, 2, 3, 10, 11, 12]


def test_levels_take_the_large_files_that_overlap() -> None:
    pieces = [keyed(0, 1, 9, size=900), keyed(1, 20, 30, size=900), keyed(2, 25, 26), keyed(3, 5, 6)]
    assert fragments(planned(pieces, replace(SIZES, strategy="leveled"))) == [(0, 3, 1, 2)]
    apart = [keyed(0, 1, 9, size=900), keyed(1, 9, 30, size=900)]
    assert not planned(apart, replace(SIZES, strategy="leveled"))


def test_without_keys_neighbours_are_joined() -> None:
    pieces = [plain(0), plain(1), plain(2, size=900), plain(3), plain(4), plain(5)]
    assert fragments(plan_in_order(pieces, "root", SIZES)) == [(0, 1), (3, 4, 5)]
    assert not plan_in_order([plain(0), plain(1, size=900), plain(2)], "root", SIZES)


def test_without_keys_each_task_makes_one_file() -> None:
    tasks = plan_in_order([plain(i, size=300) for i in range(7)], "root", SIZES)
    assert fragments(tasks) == [(0, 1, 2), (3, 4, 5)]


def test_without_keys_what_follows_is_freed_of_deleted_rows_as_it_cannot_be_moved() -> None:
    pieces = [plain(0), plain(1), plain(2, size=900, rows=95, deleted=1), plain(3, size=900)]
    assert fragments(plan_in_order(pieces, "root", SIZES)) == [(0, 1), (2,)]
    assert not plan_in_order(pieces[2:], "root", SIZES)


def test_fragments_of_other_indexes_are_not_joined() -> None:
    pieces = [plain(0, kind="x"), plain(1, kind="x"), plain(2), plain(3)]
    assert fragments(plan_in_order(pieces, "root", SIZES)) == [(0, 1), (2, 3)]


rows_and_size = st.tuples(st.integers(1, 250), st.integers(1, 2500))
sizes_of = st.builds(
    Sizes,
    st.just(1000),
    st.just(100),
    st.integers(2, 5),
    st.sampled_from((0.0, 0.1, 0.9)),
    st.just(1_000_000),
    st.sampled_from(STRATEGIES),
)


@st.composite
def keyed_pieces(draw: st.DrawFn) -> list[Piece]:
    found = []
    for number in range(draw(st.integers(0, 14))):
        rows, size = draw(rows_and_size)
        low = draw(st.integers(0, 255))
        high = draw(st.integers(low, 255))
        deleted = draw(st.sampled_from((0, 0, 1, 50)))
        found.append(keyed(number, low, high, rows, size, deleted, ok=draw(st.booleans())))
    return found


@st.composite
def plain_pieces(draw: st.DrawFn) -> list[Piece]:
    return [
        plain(number, *draw(rows_and_size), deleted=draw(st.sampled_from((0, 0, 1, 50))))
        for number in range(draw(st.integers(0, 20)))
    ]


def apply_by_leaf(pieces: Sequence[Piece], tasks: Sequence[Task], sizes: Sizes) -> list[Piece]:
    """The files that there are once the tasks are done, if bytes go with rows and keys lie evenly."""
    known = {piece.file.fragment_id: piece for piece in pieces}
    number = 100
    for task in tasks:
        gone = [known.pop(each) for each in task.fragments]
        rows_in: Counter[str] = Counter()
        reach: dict[str, tuple[int, int]] = {}
        for piece in gone:
            low, high = (piece.file.min_key or b"\0")[0], (piece.file.max_key or b"\xff")[0]
            parts = {leaf_of(key) for key in range(low, high + 1)} - {None}
            for name in sorted(str(part) for part in parts):
                rows_in[name] += max(1, piece.file.rows // len(parts))
                own = [key for key in range(low, high + 1) if leaf_of(key) == name]
                before = reach.get(name, (own[0], own[-1]))
                reach[name] = min(before[0], own[0]), max(before[1], own[-1])
        for name, rows in rows_in.items():
            assert name in task.leaves
            size = task.bytes * rows // max(1, sum(rows_in.values()))
            count = files_of(rows, size, sizes)
            low, high = reach[name]
            for i in range(count):
                ends = [low + (high - low) * j // count for j in (i, i + 1)]
                file = File(number, name, rows // count, size // count, bytes(ends[:1]), bytes(ends[1:]), sorted=True)
                known[number] = Piece(file)
                number += 1
    return list(known.values())


@given(keyed_pieces(), sizes_of)
def test_with_keys_nothing_is_left_to_do_when_all_is_done(pieces: list[Piece], sizes: Sizes) -> None:
    tasks = planned(pieces, sizes)
    named = [number for task in tasks for number in task.fragments]
    assert len(named) == len(set(named))
    after = apply_by_leaf(pieces, tasks, sizes)
    if sizes.strategy == "leveled" and any(len(task.leaves) > 1 for task in tasks):
        after = apply_by_leaf(after, planned(after, sizes), sizes)  # what was placed may overlap large files
    assert planned(after, sizes) == ()
    for piece in after:
        assert piece.file.partition is not None and piece.file.sorted
        assert piece.deleted_share <= sizes.max_deleted_share


def apply_in_order(pieces: Sequence[Piece], tasks: Sequence[Task]) -> list[Piece]:
    first = {task.fragments[0]: task for task in tasks}
    inside = {number for task in tasks for number in task.fragments[1:]}
    after = []
    for piece in pieces:
        number = piece.file.fragment_id
        if task := first.get(number):
            after.append(Piece(File(number, "root", task.rows, task.bytes)))
        elif number not in inside:
            after.append(piece)
    return after


@given(plain_pieces(), sizes_of)
def test_without_keys_nothing_is_left_to_do_and_order_is_kept(pieces: list[Piece], sizes: Sizes) -> None:
    tasks = plan_in_order(pieces, "root", sizes)
    places = {piece.file.fragment_id: i for i, piece in enumerate(pieces)}
    for task in tasks:
        own = [places[number] for number in task.fragments]
        assert own == list(range(own[0], own[0] + len(own)))
    starts = [places[task.fragments[0]] for task in tasks]
    assert starts == sorted(starts)
    after = apply_in_order(pieces, tasks)
    assert plan_in_order(after, "root", sizes) == ()
    assert sum(piece.file.rows for piece in after) == sum(piece.file.rows for piece in pieces)
    if tasks:
        moved = [p for p in after if places[p.file.fragment_id] > starts[0]]
        assert not [piece for piece in moved if piece.deleted]


@given(plain_pieces(), st.integers(1, 3000))
def test_portions_are_all_tasks_in_their_order(pieces: list[Piece], portion: int) -> None:
    tasks = plan_in_order(pieces, "root", SIZES)
    portions = in_batches(tasks, portion)
    assert [task for each in portions for task in each] == list(tasks)
    assert all(len(each) == 1 or sum(task.bytes for task in each) <= portion for each in portions)
