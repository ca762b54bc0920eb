"""Tasks of services that rewrite files of a table, and the sizes that decide which files and how many. Pure.

A file's size is its *weight*: the larger of its bytes and its live rows, each as a share of what a file is to have. A
file below half a weight is small. Outputs of a task are even, so at least half a weight each unless there is one alone:
what was compacted needs nothing until more is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from deployer.state.model.entities import File

Strategy = Literal["size", "tiered", "leveled"]

SMALL = 0.5  #: of a weight


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a plan: `file_bytes` and `file_rows` are of a full file, `task_bytes` what a task reads."""

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
        """The bytes of live rows, if all rows are equally large."""
        return self.file.bytes * self.file.rows // max(1, self.file.rows + self.deleted)

    @property
    def deleted_share(self) -> float:
        return self.deleted / max(1, self.file.rows + self.deleted)


@dataclass(frozen=True, slots=True)
class Task:
    """Fragments to rewrite, in the order of the dataset; `leaves` are where their rows may go.

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
    """Returns the number of files that the rows become."""
    return max(1, math.ceil(sizes.weight(rows, size) - 1e-9)) if rows else 0


def in_batches(tasks: Sequence[Task], portion_bytes: int) -> list[list[Task]]:
    """Groups the tasks in their order; the tasks of a portion are committed together."""
    batches: list[list[Task]] = []
    size = 0
    for task in tasks:
        if not batches or size + task.bytes > portion_bytes:
            batches.append([])
            size = 0
        batches[-1].append(task)
        size += task.bytes
    return batches


def is_small(piece: Piece, sizes: Sizes) -> bool:
    """Returns whether it is to be merged with others, going by the rows that are left in it. Only CLUSTER joins
    what it arranged."""
    return not piece.file.keeps_clustering and sizes.weight(piece.file.rows, piece.live_bytes) < SMALL


def is_due(piece: Piece, sizes: Sizes) -> bool:
    """Returns whether it is rewritten at any size, because of its share of deleted rows."""
    return piece.deleted > 0 and piece.deleted_share > sizes.max_deleted_share


def chunks(pieces: Sequence[Piece], most: int) -> Iterator[list[Piece]]:
    """Splits the pieces in their order, in parts of at most `most` bytes unless one is larger."""
    part: list[Piece] = []
    for piece in pieces:
        if part and sum(each.file.bytes for each in part) + piece.file.bytes > most:
            yield part
            part = []
        part.append(piece)
    if part:
        yield part
