"""The division of fragments among tasks: in the order of leaves and keys, with equal bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.datasets.dataset import fragments_of
from deployer.state.model.entities import TableState
from deployer.state.model.files.data_file import File
from deployer.tables.read.scan_plan import ScanPlan

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

LEAST_BYTES = 32 << 20  #: bytes of a task: its start takes about as long as reading a tenth of them
MOST_BYTES = 128 << 20
TASKS = 64  #: number of tasks of a read, within these limits
BATCH_BYTES = 16 << 20  #: of one Arrow batch, by the average size of a row in files
MOST_BATCH_ROWS = 32_768


@dataclass(frozen=True, slots=True)
class Piece:
    """A fragment, or a part of one: `rows` rows from `offset`; `rows` is None for all later rows."""

    fragment_id: int
    bytes: int
    offset: int = 0
    rows: int | None = None

    @property
    def is_whole(self) -> bool:
        return self.offset == 0 and self.rows is None


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The part of a plan that one task reads, in this order, and the rows of one batch."""

    plan: ScanPlan
    pieces: tuple[Piece, ...]
    batch_rows: int

    @property
    def bytes(self) -> int:
        """The bytes of its files."""
        return sum(piece.bytes for piece in self.pieces)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows; raises as `ScanPlan.batches` does."""
        if not self.pieces:
            return
        dataset = self.plan.open()
        whole = [piece for piece in self.pieces if piece.is_whole]
        if len(whole) == len(self.pieces):
            ids = [piece.fragment_id for piece in whole]
            yield from self.plan.batches(dataset, fragments=ids, batch_size=self.batch_rows)
            return
        for piece in self.pieces:
            yield from self.plan.batches(
                dataset,
                piece.rows,
                [piece.fragment_id],
                None if piece.is_whole else piece.offset,
                self.batch_rows,
            )


def task_plans(
    plan: ScanPlan, files: Sequence[File], leaves: Sequence[str], size: int | None = None, most: int = TASKS
) -> list[TaskPlan]:
    """Returns the tasks of a read. Each task has neighbouring fragments, and so a range of keys, of about `size` bytes.
    The default is `most` tasks, if each then has between `LEAST_BYTES` and `MOST_BYTES`.

    `files` are those of the version, and `leaves` the ids of its leaves in their order. A plan without conditions may
    divide a large fragment. There is at least one task, which may be empty.
    """
    places = {leaf: place for place, leaf in enumerate(leaves)}
    chosen = frozenset(plan.fragments)
    ordered = sorted(
        (file for file in files if file.fragment_id in chosen),
        key=lambda file: (places.get(file.partition or "", -1), file.min_key or b"", file.fragment_id),
    )
    total, rows = sum(file.bytes for file in ordered), sum(file.rows for file in ordered)
    wanted = size or min(max(ceil(total / most), LEAST_BYTES), MOST_BYTES)
    pieces = [piece for file in ordered for piece in _pieces(file, wanted, divides=plan.reads_all_rows)]
    batch_rows = max(1, min(MOST_BATCH_ROWS, BATCH_BYTES * max(rows, 1) // max(total, 1)))
    groups = _groups(pieces, max(1, round(total / wanted)))
    return [
        TaskPlan(replace(plan, fragments=tuple(dict.fromkeys(p.fragment_id for p in group))), tuple(group), batch_rows)
        for group in groups
    ]


def _pieces(file: File, wanted: int, *, divides: bool) -> Iterator[Piece]:
    parts = min(round(file.bytes / wanted), file.rows) if divides else 1
    if parts < 2:
        yield Piece(file.fragment_id, file.bytes)
        return
    step = ceil(file.rows / parts)
    for start in range(0, file.rows, step):
        is_last = start + step >= file.rows
        yield Piece(file.fragment_id, file.bytes // parts, start, None if is_last else step)


def _groups(pieces: Sequence[Piece], count: int) -> list[list[Piece]]:
    """Returns the pieces in their order in at most `count` groups, each with its share of all bytes."""
    share = max(1, sum(piece.bytes for piece in pieces)) / count
    groups: list[list[Piece]] = [[]]
    size = 0
    for piece in pieces:
        if groups[-1] and size + piece.bytes / 2 >= share * len(groups):
            groups.append([])
        groups[-1].append(piece)
        size += piece.bytes
    return groups


def files_of(dataset: LanceDataset) -> list[File]:
    """Returns the fragments of a version that the table's state no longer has."""
    return [File(each.fragment_id, None, each.rows, each.bytes) for each in fragments_of(dataset).values()]


def leaves_of(state: TableState) -> list[str]:
    """Returns the ids of the leaves in the order of their keys."""
    return [leaf.partition_id for leaf in state.leaves()]
