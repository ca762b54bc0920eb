"""The plan of CLUSTER for a table: pure, from its files to tasks, each of which arranges the rows of some of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from deployer.datasets.ordering.clustering import Bounds
from deployer.platform.files.json_values import JSON
from deployer.runs.records import runs_of
from deployer.runs.rewriting.pieces import joined_across, reach_of
from deployer.runs.rewriting.tasks import SMALL, Piece, Sizes, Task, chunks, files_of
from deployer.services.kinds.cluster.layout import Arrangement
from deployer.services.kinds.cluster.shuffle_task import HELD_BYTES
from deployer.state.model.entities import File, Partition, TableState

WHOLE = "whole"  #: name of the figure after a run
LEAVES_KEPT = 200  #: at most this many leaves are named in a run's record
ACROSS_BYTES = 512_000_000  #: bytes of files across several leaves, which a task holds in memory

#: `same`: the new files would have the ranges of the old ones; `unknown`: this is known only after writing
Outlook = Literal["better", "same", "unknown"]


@dataclass(frozen=True, slots=True)
class Selection:
    """The files to arrange: with `only`, all of these; otherwise those that are not marked `name` yet."""

    name: str
    only: frozenset[int] | None = None

    def __call__(self, piece: Piece) -> bool:
        if self.only is not None:
            return piece.file.fragment_id in self.only
        return piece.file.clustering != self.name


def plan_clusters(
    pieces: Sequence[Piece],
    leaves: Sequence[Partition],
    chosen: Selection,
    sizes: Sizes,
    portion_bytes: int,
    place: Callable[[Piece], Any],
) -> tuple[Task, ...]:
    """Plans tasks of at most `portion_bytes` for each leaf; `leaves` are in the order of their keys.

    Where files of a leaf are to be arranged, its small arranged files are included, so that their number does not grow.
    Files in no leaf, or across several, are split into their leaves. A leaf that is too large for one task is split by
    files in the order of `place`, so that near rows stay together.
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
    """Returns the leaf that has the task's files and no others; None where there is none."""
    if len(task.leaves) > 1:
        return None
    [leaf] = task.leaves
    own = {file.fragment_id for file in state.files.for_partition(leaf)}
    return leaf if own == set(task.fragments) else None


def _is_small(piece: Piece, sizes: Sizes) -> bool:
    return sizes.weight(piece.file.rows, piece.live_bytes) < SMALL


def outlook(
    task: Task, files: Sequence[File], bounds: Sequence[Bounds | None], arrangement: Arrangement, sizes: Sizes
) -> Outlook:
    """Classifies the effect of a task.

    `files` are its recorded files, with known `bounds`. Three cases are `same`: as many files as there would be new
    ones, which already follow each other by the columns; a single file; and files whose rows are one point of the
    columns' space.
    """
    if task.deleted or len(task.leaves) > 1 or len(files) < len(task.fragments) or not all(each.rows for each in files):
        return "better"
    if arrangement.keeps_order and not all(each.sorted for each in files):
        return "better"
    count = files_of(task.rows, task.bytes, sizes)
    if len(files) == count == 1:
        return "same"
    known = [each for each in bounds if each is not None]
    is_known = len(known) == len(files)
    even = sorted(each.rows for each in files) == sorted(
        task.rows // count + (number < task.rows % count) for number in range(count)
    )
    if len(files) == count and arrangement.is_sort and (not is_known or _follow_each_other(known)):
        return "same" if is_known else "unknown"
    if even:
        return "same" if is_known and _are_one_point(known) else "unknown"
    return "unknown" if task.bytes > HELD_BYTES else "better"  # shuffled files have other sizes


def _follow_each_other(bounds: Sequence[Bounds]) -> bool:
    """Returns whether no two files have a common value of the first column."""
    return all(before[1][0] < after[0][0] for before, after in pairwise(sorted(bounds)))


def _are_one_point(bounds: Sequence[Bounds]) -> bool:
    return all(low == high and (low, high) == bounds[0] for low, high in bounds)


def whole_leaves(state: TableState, arrangement: Arrangement, sizes: Sizes) -> frozenset[str]:
    """Returns the leaves that an earlier run with the same arrangement and sizes arranged at once.

    While their files are unchanged, the same run would not change them. A run's record has these leaves by a digest of
    their files, so that a run that arranges everything again can leave them out.
    """
    for run in runs_of(state, "CLUSTER"):
        found = run.figures.after.get(WHOLE)
        if isinstance(found, dict):
            leaves = found.get("leaves")
            if found.get("by") != _by(arrangement, sizes) or not isinstance(leaves, dict):
                return frozenset()
            return frozenset(
                name for name, digest in leaves.items() if digest == _digest(state, name, arrangement.name)
            )
    return frozenset()


def recorded(state: TableState, arrangement: Arrangement, sizes: Sizes, leaves: Collection[str]) -> dict[str, JSON]:
    """Returns the entry of a run record for leaves that the run arranged at once, or found so."""
    digests = {name: _digest(state, name, arrangement.name) for name in sorted(leaves)}
    kept = {name: digest for name, digest in digests.items() if digest}
    named: Mapping[str, JSON] = dict(list(kept.items())[:LEAVES_KEPT])
    return {WHOLE: {"by": _by(arrangement, sizes), "leaves": dict(named)}}


def _by(arrangement: Arrangement, sizes: Sizes) -> str:
    return f"{arrangement.name} {sizes.file_bytes} {sizes.file_rows}"


def _digest(state: TableState, leaf: str, name: str) -> str:
    """Returns a digest of the leaf's files from CLUSTER's records; empty where a file is not arranged as `name`."""
    files = sorted(state.files.for_partition(leaf), key=lambda file: file.fragment_id)
    if not files or any(file.clustering != name for file in files):
        return ""
    return hashlib.blake2b(b"".join(_parts(state, files)), digest_size=8).hexdigest()


def _parts(state: TableState, files: Iterable[File]) -> Iterable[bytes]:
    yield str(state.dataset).encode()
    for file in files:
        yield repr((file.fragment_id, file.rows, file.cluster_min, file.cluster_max)).encode()
