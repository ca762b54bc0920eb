"""The division of a run's fragments into tasks: large ones are split, small ones are done together. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from deployer.columns.fill.work import FragmentWork

SMALLEST_TASK = 1_000  #: rows of a task at least, unless a size is asked for


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of a fragment that one task makes the values of."""

    work: FragmentWork
    rows: range

    @property
    def is_whole(self) -> bool:
        """Returns whether these are all rows of the fragment, so that the task writes its data file too."""
        return len(self.rows) == self.work.physical_rows


Task = tuple[Piece, ...]  #: what one worker does, one piece after the other


def task_rows(task_size: int | None, table_rows: int, workers: int) -> int:
    """Returns the rows of a task: `task_size`, by default so many that each worker has two tasks of the table."""
    return task_size or max(SMALLEST_TASK, table_rows // max(1, workers) // 2)


def pieces_of(work: FragmentWork, size: int | None) -> list[Piece]:
    """Returns the pieces of a fragment, of at most `size` rows each and about as large as each other; None: one."""
    number = 1 if size is None else math.ceil(work.physical_rows / size)
    bounds = [work.physical_rows * each // number for each in range(number + 1)] if number else [0, 0]
    return [Piece(work, range(start, stop)) for start, stop in pairwise(bounds)]


def tasks_of(works: Sequence[FragmentWork], size: int | None) -> list[Task]:
    """Returns the tasks of fragments, the larger ones first, so that those that are left at the end are short.

    A piece of a split fragment is a task by itself. Whole fragments are together up to `size` rows; None: one each.
    """
    every = [pieces_of(work, size) for work in works]
    single = [(piece,) for pieces in every if len(pieces) > 1 for piece in pieces]
    whole = (pieces[0] for pieces in every if len(pieces) == 1)
    return sorted([*single, *_together(whole, size)], key=rows_of_task, reverse=True)


def rows_of_task(task: Task) -> int:
    """Returns the rows of all pieces of a task."""
    return sum(len(piece.rows) for piece in task)


def number_of_tasks(rows: Iterable[int], size: int) -> int:
    """Returns how many tasks `tasks_of` makes of fragments with so many rows each, in order."""
    return len(tasks_of([FragmentWork(number, each, (), ()) for number, each in enumerate(rows)], size))


def dealt(tasks: Sequence[Task], workers: int) -> list[Task]:
    """Returns at most `workers` tasks with the pieces of all of these, each about as large as the others."""
    if len(tasks) <= workers:
        return list(tasks)
    hands: list[list[Piece]] = [[] for _ in range(workers)]
    sizes = [0] * workers
    for task in sorted(tasks, key=rows_of_task, reverse=True):
        least = sizes.index(min(sizes))
        hands[least] += task
        sizes[least] += rows_of_task(task)
    return [tuple(hand) for hand in hands]


def _together(pieces: Iterable[Piece], size: int | None) -> Iterator[Task]:
    held: list[Piece] = []
    rows = 0
    for piece in pieces:
        if held and (size is None or rows + len(piece.rows) > size):
            yield tuple(held)
            held, rows = [], 0
        held.append(piece)
        rows += len(piece.rows)
    if held:
        yield tuple(held)
