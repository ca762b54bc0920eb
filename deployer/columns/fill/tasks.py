"""Divides the fragments of a run into tasks: splits large fragments and groups small ones. All functions are pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from deployer.columns.fill.work import FragmentWork

SMALLEST_TASK = 1_000  #: fewest rows of a task, unless the request has a size


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of rows of a fragment whose values one task computes."""

    work: FragmentWork
    rows: range

    @property
    def is_whole(self) -> bool:
        """Returns whether the piece has all rows of the fragment, so that the task also writes the data file."""
        return len(self.rows) == self.work.physical_rows


Task = tuple[Piece, ...]  #: the pieces that one worker computes, one after the other


def task_rows(task_size: int | None, table_rows: int, workers: int) -> int:
    """Returns the number of rows of a task: `task_size`, or the number with which each worker has two tasks of the
    table."""
    return task_size or max(SMALLEST_TASK, table_rows // max(1, workers) // 2)


def pieces_of(work: FragmentWork, size: int | None) -> list[Piece]:
    """Returns the pieces of a fragment: pieces of about equal size with at most `size` rows, or (None) one piece."""
    number = 1 if size is None else math.ceil(work.physical_rows / size)
    bounds = [work.physical_rows * each // number for each in range(number + 1)] if number else [0, 0]
    return [Piece(work, range(start, stop)) for start, stop in pairwise(bounds)]


def tasks_of(works: Sequence[FragmentWork], size: int | None) -> list[Task]:
    """Returns the tasks of fragments. Larger tasks come first, so that the last tasks are short.

    A piece of a split fragment is a task by itself. A task has whole fragments of up to `size` rows, or (None) one
    fragment.
    """
    every = [pieces_of(work, size) for work in works]
    single = [(piece,) for pieces in every if len(pieces) > 1 for piece in pieces]
    whole = (pieces[0] for pieces in every if len(pieces) == 1)
    return sorted([*single, *_together(whole, size)], key=rows_of_task, reverse=True)


def rows_of_task(task: Task) -> int:
    """Returns the number of rows of a task."""
    return sum(len(piece.rows) for piece in task)


def number_of_tasks(rows: Iterable[int], size: int) -> int:
    """Returns the number of tasks that `tasks_of` makes of fragments with `rows` rows each."""
    return len(tasks_of([FragmentWork(number, each, (), ()) for number, each in enumerate(rows)], size))


def dealt(tasks: Sequence[Task], workers: int) -> list[Task]:
    """Returns at most `workers` tasks of about equal size, which have the pieces of all `tasks`."""
    if len(tasks) <= workers:
        return list(tasks)
    joined: list[list[Piece]] = [[] for _ in range(workers)]
    sizes = [0] * workers
    for task in sorted(tasks, key=rows_of_task, reverse=True):
        least = sizes.index(min(sizes))
        joined[least] += task
        sizes[least] += rows_of_task(task)
    return [tuple(pieces) for pieces in joined]


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
