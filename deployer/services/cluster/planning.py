"""What CLUSTER does to a table: pure, from its files to tasks, each of which arranges the rows of some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from deployer.services.compact.leaf_planning import chunks, joined_across, reach_of
from deployer.services.rewriting.tasks import SMALL, Piece, Sizes, Task
from deployer.state.model.entities import Partition, TableState

ACROSS_BYTES = 512_000_000  #: of files that lie in several leaves, which a task holds in memory


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which files are arranged: with `only`, all of these; else those that are not marked `name` yet."""

    name: str
    only: frozenset[int] | None = None

    def __call__(self, piece: Piece) -> bool:
        if self.only is not None:
            return piece.file.fragment_id in self.only
        return piece.file.clustering != self.name


def plan_clusters(
    pieces: Sequence[Piece],
    leaves: Sequence[Partition],
    chosen: Chosen,
    sizes: Sizes,
    portion_bytes: int,
    place: Callable[[Piece], Any],
) -> tuple[Task, ...]:
    """Tasks of at most `portion_bytes`, a leaf each; `leaves` in the order of their keys.

    Where something of a leaf is to be arranged, its small files that are already are arranged with it, so that they do
    not become many. Files that lie in no leaf, or across several, are parted into those that they reach. A leaf that is
    too much at once is taken file by file in the order of `place`, so that what lies near comes together.
    """
    names = {leaf.partition_id: i for i, leaf in enumerate(leaves)}
    held: list[list[Piece]] = [[] for _ in leaves]
    across: list[tuple[int, int, Piece]] = []
    for piece in pieces:
        number = names.get(piece.file.partition or "")
        if number is not None:
            held[number].append(piece)
        elif chosen(piece):
            across.append((*reach_of(piece.file, leaves), piece))
    tasks: list[Task] = []
    for first, last, group in joined_across(across):
        reached = [leaf.partition_id for leaf in leaves[first : last + 1]]
        tasks += [Task.of(part, reached, "not in one leaf") for part in chunks(group, ACROSS_BYTES)]
    for own, leaf in zip(held, leaves, strict=True):
        todo = [piece for piece in own if chosen(piece)]
        if not todo:
            continue
        if chosen.only is None:
            todo += [piece for piece in own if not chosen(piece) and _is_small(piece, sizes)]
        if sum(piece.file.bytes for piece in todo) > portion_bytes:
            todo.sort(key=place)
        tasks += [Task.of(part, [leaf.partition_id], "not clustered") for part in chunks(todo, portion_bytes)]
    return tuple(tasks)


def covered_leaf(state: TableState, task: Task) -> str | None:
    """The leaf that has the task's files and no others; None where there is none."""
    if len(task.leaves) > 1:
        return None
    [leaf] = task.leaves
    own = {file.fragment_id for file in state.files.for_partition(leaf)}
    return leaf if own == set(task.fragments) else None


def _is_small(piece: Piece, sizes: Sizes) -> bool:
    return sizes.weight(piece.file.rows, piece.live_bytes) < SMALL
