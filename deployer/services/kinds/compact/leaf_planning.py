"""The files that COMPACT rewrites in a table whose rows are in order within each leaf.

The strategies choose files by size, in tiers or in levels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from deployer.runs.rewriting.pieces import joined_across, reach_of
from deployer.runs.rewriting.tasks import SMALL, Piece, Sizes, Task, chunks, is_due, is_small
from deployer.state.model.entities import Partition

UNSORTED_BYTES = 256_000_000  #: the largest size of unsorted files in one task, which holds them in memory
TIER_FACTOR = 4  #: files of one tier differ in weight by at most this factor
TIER_FILES = 4  #: the least number of files of a tier that are merged, unless `min_files` is larger


def plan_by_leaf(pieces: Sequence[Piece], leaves: Sequence[Partition], sizes: Sizes) -> tuple[Task, ...]:
    """Plans tasks for a table whose rows are in order within each leaf. `leaves` are in the order of their keys.

    Files that lie in no leaf or in several are rewritten together with the small files of the leaves that they reach.
    """
    places = {leaf.partition_id: i for i, leaf in enumerate(leaves)}
    held: list[list[Piece]] = [[] for _ in leaves]
    across: list[tuple[int, int, Piece]] = []
    for piece in pieces:
        place = places.get(piece.file.partition or "")
        if place is None:
            across.append((*reach_of(piece.file, leaves), piece))
        else:
            held[place].append(piece)
    tasks: list[Task] = []
    reached: set[int] = set()
    for first, last, group in joined_across(across):
        reached.update(range(first, last + 1))
        names = [leaf.partition_id for leaf in leaves[first : last + 1]]
        beside = [piece for place in range(first, last + 1) for piece in held[place] if _is_wanted(piece, sizes)]
        unsorted = sum(piece.file.bytes for piece in group + beside if not piece.file.sorted)
        if unsorted <= UNSORTED_BYTES and sum(piece.file.bytes for piece in group + beside) <= sizes.task_bytes:
            tasks.append(Task.of(group + beside, names, "not in one leaf"))
        else:  # too large for one task; the small files that these tasks write to the leaves are merged later
            tasks += [
                Task.of(part, names, "not in one leaf") for part in chunks(group, min(UNSORTED_BYTES, sizes.task_bytes))
            ]
    for place, leaf in enumerate(leaves):
        if place not in reached:
            tasks += _plan_leaf(held[place], leaf.partition_id, sizes)
    return tuple(tasks)


def _plan_leaf(pieces: Sequence[Piece], leaf: str, sizes: Sizes) -> list[Task]:
    if sizes.strategy == "leveled" and all(piece.file.min_key is not None for piece in pieces):
        return _leveled(pieces, leaf, sizes)
    small = [piece for piece in pieces if is_small(piece, sizes)]
    if sizes.strategy == "tiered":
        small = _tiered(small, sizes)
    elif len(small) < sizes.min_files:
        small = []
    chosen = {piece.file.fragment_id for piece in small}
    alone = [piece for piece in pieces if _must(piece, sizes) and piece.file.fragment_id not in chosen]
    parts = chunks(sorted(small, key=_by_key), sizes.task_bytes)  # if there are several, each has neighbours by key
    tasks = [Task.of(part, [leaf], "small files") for part in parts if len(part) > 1 or _must(part[0], sizes)]
    return tasks + [Task.of([piece], [leaf], _why(piece)) for piece in alone]


def _tiered(small: Sequence[Piece], sizes: Sizes) -> list[Piece]:
    """Returns the small files to merge: those of the smallest full tiers, and of each tier that the merged file would
    make full."""
    enough = max(sizes.min_files, TIER_FILES)
    tiers: dict[int, list[Piece]] = {}
    for piece in small:
        tiers.setdefault(_tier(sizes.weight(piece.file.rows, piece.live_bytes)), []).append(piece)
    merged: list[Piece] = []
    for tier in range(min(tiers, default=0), 0):
        own = tiers.get(tier, [])
        result = _tier(sizes.weight(sum(p.file.rows for p in merged), sum(p.live_bytes for p in merged)))
        if len(own) + (1 if merged and result == tier else 0) >= enough:
            merged += own
    return merged


def _tier(weight: float) -> int:
    """Returns the tier of a weight: 0 from half a weight, −1 from a fourth of that, −2 from a fourth of that again."""
    if weight >= SMALL:
        return 0
    return max(-16, math.ceil(math.log(max(weight, 1e-12) / SMALL, TIER_FACTOR) - 1e-9) - 1)


def _leveled(pieces: Sequence[Piece], leaf: str, sizes: Sizes) -> list[Task]:
    """Returns tasks that turn overlapping files, and small neighbours, into files that follow each other by key."""
    runs: list[list[list[Piece]]] = [[]]
    for cluster in _clusters(pieces):
        if len(cluster) > 1 or _is_wanted(cluster[0], sizes):
            runs[-1].append(cluster)
        elif runs[-1]:
            runs.append([])
    tasks = []
    for run in runs:
        for files in chunks([piece for cluster in run for piece in cluster], sizes.task_bytes):
            enough = len(files) >= sizes.min_files or any(_must(piece, sizes) for piece in files)
            tasks += [Task.of(files, [leaf], "files that overlap or are small")] if enough else []
    return tasks


def _clusters(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Returns groups of files that overlap, ordered by key. Two files do not overlap if one begins with the last key
    of the other."""
    found: list[list[Piece]] = []
    highest = b""
    for piece in sorted(pieces, key=_by_key):
        low, high = piece.file.min_key or b"", piece.file.max_key or b""
        if found and low < highest:
            found[-1].append(piece)
        else:
            found.append([piece])
        highest = max(highest, high)
    return found


def _by_key(piece: Piece) -> tuple[bytes, bytes, int]:
    return piece.file.min_key or b"", piece.file.max_key or b"", piece.file.fragment_id


def _must(piece: Piece, sizes: Sizes) -> bool:
    """Returns whether a file is rewritten whatever its size. An unsorted file is, so that others can be merged with
    it."""
    return is_due(piece, sizes) or not piece.file.sorted


def _is_wanted(piece: Piece, sizes: Sizes) -> bool:
    return is_small(piece, sizes) or _must(piece, sizes)


def _why(piece: Piece) -> str:
    return "deleted rows" if piece.deleted else "not sorted"
