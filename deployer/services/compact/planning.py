"""What COMPACT does to a table: pure, from its files to tasks, each of which rewrites some of them.

A file's size is its *weight*: the larger of its bytes and its live rows, each as a share of what a file is to have. A
file below half a weight is small. Outputs of a task are even, so at least half a weight each unless there is one alone:
what was compacted needs nothing until more is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from deployer.state.model import File, Partition

Strategy = Literal["size", "tiered", "leveled"]

SMALL = 0.5  #: of a weight
UNSORTED_BYTES = 256_000_000  #: of files that are not in order, which a task holds in memory
TIER_FACTOR = 4  #: files of one tier differ in weight by at most that factor
TIER_FILES = 4  #: so many of a tier are merged, unless more are asked for

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What decides: `file_bytes` and `file_rows` are what a file is to have, `task_bytes` what a task is to read."""

    file_bytes: int = 256_000_000
    file_rows: int = 1_048_576
    min_files: int = 2
    max_deleted_share: float = 0.1
    task_bytes: int = 1_000_000_000
    strategy: Strategy = "size"

    def weight(self, rows: int, size: int) -> float:
        return max(size / self.file_bytes, rows / self.file_rows)


@dataclass(frozen=True, slots=True)
class Piece:
    """A file and what the dataset says of it: `deleted` rows are still in it, and not counted by `file.rows`.

    Only pieces of the same `kind` may be joined: see `pieces`.
    """

    file: File
    deleted: int = 0
    kind: str = ""

    @property
    def live_bytes(self) -> int:
        """Its bytes without those of deleted rows, as far as rows are alike."""
        return self.file.bytes * self.file.rows // max(1, self.file.rows + self.deleted)

    @property
    def deleted_share(self) -> float:
        return self.deleted / max(1, self.file.rows + self.deleted)


@dataclass(frozen=True, slots=True)
class Task:
    """Fragments that become others, in the order of the dataset; `leaves` are where their rows may go.

    One leaf: all rows stay in it. Several, for tables with keys: each row goes to the one that holds its key.
    """

    fragments: tuple[int, ...]
    leaves: tuple[str, ...]
    rows: int
    bytes: int
    deleted: int
    why: str

    @staticmethod
    def of(pieces: Sequence[Piece], leaves: Sequence[str], why: str) -> Task:
        return Task(
            tuple(each.file.fragment_id for each in pieces),
            tuple(leaves),
            sum(each.file.rows for each in pieces),
            sum(each.live_bytes for each in pieces),
            sum(each.deleted for each in pieces),
            why,
        )


def files_of(rows: int, size: int, sizes: Sizes) -> int:
    """How many files so many rows become."""
    return max(1, math.ceil(sizes.weight(rows, size) - 1e-9)) if rows else 0


def plan_in_order(pieces: Sequence[Piece], leaf: str, sizes: Sizes) -> tuple[Task, ...]:
    """Tasks for a table without order of its own: neighbours are joined, so that rows stay where they were.

    `pieces` are all of the table's in the order of the dataset. Each task makes one file.
    """
    wanted = [_is_small(piece, sizes) or _is_due(piece, sizes) for piece in pieces]
    runs = [run for run in _runs(pieces, wanted) if len(run) >= sizes.min_files or any(_is_due(p, sizes) for p in run)]
    first = min((run[0].file.fragment_id for run in runs), default=None)
    if first is None:
        return ()
    # What follows gets new numbers, so that it still follows. A file that rows were deleted of cannot: it is rewritten.
    place = next(i for i, piece in enumerate(pieces) if piece.file.fragment_id == first)
    due = [_is_due(piece, sizes) or (i > place and piece.deleted > 0) for i, piece in enumerate(pieces)]
    wanted = [want or must for want, must in zip(wanted, due, strict=True)]
    musts = {piece.file.fragment_id for piece, must in zip(pieces, due, strict=True) if must}
    tasks = []
    for run in _runs(pieces, wanted):
        must = [piece for piece in run if piece.file.fragment_id in musts]
        if len(run) < sizes.min_files and not must:
            continue
        for part in _filled(run, sizes):
            deleted = sum(piece.deleted for piece in part)
            if len(part) > 1 or part[0].file.fragment_id in musts:
                tasks.append(Task.of(part, [leaf], "deleted rows" if deleted and len(part) == 1 else "small files"))
    return tuple(tasks)


def plan_by_leaf(pieces: Sequence[Piece], leaves: Sequence[Partition], sizes: Sizes) -> tuple[Task, ...]:
    """Tasks for a table whose rows are in order within each leaf; `leaves` in the order of their keys.

    Files that lie in no leaf, or across several, are rewritten together with what is small in the leaves they reach.
    """
    places = {leaf.partition_id: i for i, leaf in enumerate(leaves)}
    held: list[list[Piece]] = [[] for _ in leaves]
    across: list[tuple[int, int, Piece]] = []
    for piece in pieces:
        place = places.get(piece.file.partition or "")
        if place is None:
            across.append((*_reach(piece.file, leaves), piece))
        else:
            held[place].append(piece)
    tasks: list[Task] = []
    reached: set[int] = set()
    for first, last, group in _joined(across):
        reached.update(range(first, last + 1))
        names = [leaf.partition_id for leaf in leaves[first : last + 1]]
        beside = [piece for place in range(first, last + 1) for piece in held[place] if _is_wanted(piece, sizes)]
        unsorted = sum(piece.file.bytes for piece in group + beside if not piece.file.sorted)
        if unsorted <= UNSORTED_BYTES and sum(piece.file.bytes for piece in group + beside) <= sizes.task_bytes:
            tasks.append(Task.of(group + beside, names, "not in one leaf"))
        else:  # too much to hold at once: what they leave in the leaves is small, and merged after them
            tasks += [
                Task.of(part, names, "not in one leaf")
                for part in _chunks(group, min(UNSORTED_BYTES, sizes.task_bytes))
            ]
    for place, leaf in enumerate(leaves):
        if place not in reached:
            tasks += _plan_leaf(held[place], leaf.partition_id, sizes)
    return tuple(tasks)


def in_portions(tasks: Sequence[Task], portion_bytes: int) -> list[list[Task]]:
    """The tasks in their order, those of each portion committed together."""
    portions: list[list[Task]] = []
    size = 0
    for task in tasks:
        if not portions or size + task.bytes > portion_bytes:
            portions.append([])
            size = 0
        portions[-1].append(task)
        size += task.bytes
    return portions


def _plan_leaf(pieces: Sequence[Piece], leaf: str, sizes: Sizes) -> list[Task]:
    if sizes.strategy == "leveled" and all(piece.file.min_key is not None for piece in pieces):
        return _leveled(pieces, leaf, sizes)
    small = [piece for piece in pieces if _is_small(piece, sizes)]
    if sizes.strategy == "tiered":
        small = _tiered(small, sizes)
    elif len(small) < sizes.min_files:
        small = []
    chosen = {piece.file.fragment_id for piece in small}
    alone = [piece for piece in pieces if _must(piece, sizes) and piece.file.fragment_id not in chosen]
    parts = _chunks(sorted(small, key=_by_key), sizes.task_bytes)  # neighbours by key, should they be too many
    tasks = [Task.of(part, [leaf], "small files") for part in parts if len(part) > 1 or _must(part[0], sizes)]
    return tasks + [Task.of([piece], [leaf], _why(piece)) for piece in alone]


def _tiered(small: Sequence[Piece], sizes: Sizes) -> list[Piece]:
    """The small files to merge: the smallest tiers first, together with each tier that the result makes full."""
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
    """0 for files of half a weight and more, −1 for those down to a fourth of that, and so on."""
    if weight >= SMALL:
        return 0
    return max(-16, math.ceil(math.log(max(weight, 1e-12) / SMALL, TIER_FACTOR) - 1e-9) - 1)


def _leveled(pieces: Sequence[Piece], leaf: str, sizes: Sizes) -> list[Task]:
    """Files that overlap, and neighbours that are small, become files that follow each other by key."""
    runs: list[list[list[Piece]]] = [[]]
    for cluster in _clusters(pieces):
        if len(cluster) > 1 or _is_wanted(cluster[0], sizes):
            runs[-1].append(cluster)
        elif runs[-1]:
            runs.append([])
    tasks = []
    for run in runs:
        for files in _chunks([piece for cluster in run for piece in cluster], sizes.task_bytes):
            enough = len(files) >= sizes.min_files or any(_must(piece, sizes) for piece in files)
            tasks += [Task.of(files, [leaf], "files that overlap or are small")] if enough else []
    return tasks


def _clusters(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Files by key, those together that overlap; to have one key in common, at the end of one, is not to overlap."""
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


def _is_small(piece: Piece, sizes: Sizes) -> bool:
    return sizes.weight(piece.file.rows, piece.live_bytes) < SMALL


def _is_due(piece: Piece, sizes: Sizes) -> bool:
    return piece.deleted > 0 and piece.deleted_share > sizes.max_deleted_share


def _must(piece: Piece, sizes: Sizes) -> bool:
    """Whether it is rewritten whatever its size: also to be sorted, so that others can be merged with it."""
    return _is_due(piece, sizes) or not piece.file.sorted


def _is_wanted(piece: Piece, sizes: Sizes) -> bool:
    return _is_small(piece, sizes) or _must(piece, sizes)


def _why(piece: Piece) -> str:
    return "deleted rows" if piece.deleted else "not sorted"


def _runs(pieces: Sequence[Piece], wanted: Sequence[bool]) -> Iterator[list[Piece]]:
    """Neighbours that are wanted and of one kind."""
    run: list[Piece] = []
    for piece, want in zip(pieces, wanted, strict=True):
        if run and (not want or piece.kind != run[-1].kind):
            yield run
            run = []
        if want:
            run.append(piece)
    if run:
        yield run


def _filled(run: Sequence[Piece], sizes: Sizes) -> Iterator[list[Piece]]:
    """Neighbours for one file each, which is never above a weight unless a single one is."""
    part: list[Piece] = []
    rows = size = 0
    for piece in run:
        more = sizes.weight(rows + piece.file.rows, size + piece.live_bytes)
        if part and more > 1:
            yield part
            part, rows, size = [], 0, 0
        part.append(piece)
        rows, size = rows + piece.file.rows, size + piece.live_bytes
    if part:
        yield part


def _reach(file: File, leaves: Sequence[Partition]) -> tuple[int, int]:
    """The places of the first and last leaf that can hold a row of it."""
    found = [i for i, leaf in enumerate(leaves) if file.overlaps(leaf.lower, leaf.upper)]
    return (found[0], found[-1]) if found else (0, len(leaves) - 1)


def _joined(across: Iterable[tuple[int, int, Piece]]) -> list[tuple[int, int, list[Piece]]]:
    """Files together that reach a leaf in common."""
    found: list[tuple[int, int, list[Piece]]] = []
    for first, last, piece in sorted(across, key=lambda each: (each[0], each[1], each[2].file.fragment_id)):
        if found and first <= found[-1][1]:
            before = found[-1]
            found[-1] = (before[0], max(before[1], last), [*before[2], piece])
        else:
            found.append((first, last, [piece]))
    return found


def _chunks(pieces: Sequence[Piece], most: int) -> Iterator[list[Piece]]:
    part: list[Piece] = []
    for piece in pieces:
        if part and sum(each.file.bytes for each in part) + piece.file.bytes > most:
            yield part
            part = []
        part.append(piece)
    if part:
        yield part
