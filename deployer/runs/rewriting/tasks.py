"""Tasks of services that rewrite files of a table, and the sizes that decide which files and how many. Pure functions.

The *weight* of a file is the larger of its bytes and its live rows, each as a share of a full file. A file with a
weight below 0.5 is small. The output files of a task have equal sizes, so each has a weight of at least 0.5 unless
there is only one. So compacted files need no rewrite until more is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from deployer.state.model.entities import File

Strategy = Literal["size", "tiered", "leveled"]

SMALL = 0.5  #: the weight below which a file is small


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a plan: `file_bytes` and `file_rows` of a full file, and the `task_bytes` that a task reads."""

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
    """A file with facts from the dataset. `deleted` counts rows that are still in the file; `file.rows` does not count
    them.

    Only pieces of the same `kind` may be joined; see the module `pieces`.
    """

    file: File
    deleted: int = 0
    kind: str = ""

    @property
    def live_bytes(self) -> int:
        """The bytes of live rows, if all rows have the same size."""
        return self.file.bytes * self.file.rows // max(1, self.file.rows + self.deleted)

    @property
    def deleted_share(self) -> float:
        return self.deleted / max(1, self.file.rows + self.deleted)


@dataclass(frozen=True, slots=True)
class Task:
    """Fragments to rewrite, in the order of the dataset. `leaves` are the possible leaves of their rows.

    With one leaf, all rows stay in it. With several, for tables with keys, each row goes to the leaf that holds its
    key.
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
    """Returns the number of files for this many rows and bytes; 0 without rows."""
    return max(1, math.ceil(sizes.weight(rows, size) - 1e-9)) if rows else 0


def in_batches(tasks: Sequence[Task], portion_bytes: int) -> list[list[Task]]:
    """Returns the tasks in portions, in their order. The tasks of a portion are committed together."""
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
    """Returns whether the file is small, by its live rows. Files that CLUSTER arranged are not small here, since only
    CLUSTER joins them."""
    return not piece.file.keeps_clustering and sizes.weight(piece.file.rows, piece.live_bytes) < SMALL


def is_due(piece: Piece, sizes: Sizes) -> bool:
    """Returns whether the file is rewritten, whatever its size, because of its share of deleted rows."""
    return piece.deleted > 0 and piece.deleted_share > sizes.max_deleted_share


def chunks(pieces: Sequence[Piece], most: int) -> Iterator[list[Piece]]:
    """Yields the pieces in their order, in parts of at most `most` bytes each, unless one piece is larger."""
    part: list[Piece] = []
    for piece in pieces:
        if part and sum(each.file.bytes for each in part) + piece.file.bytes > most:
            yield part
            part = []
        part.append(piece)
    if part:
        yield part
