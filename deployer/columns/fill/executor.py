"""Executors that write a group of fragments: in threads of this process, or elsewhere, such as in Spark tasks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Protocol

from deployer.columns.fill.checkpoints import Checkpoint
from deployer.columns.fill.fragment_file import FragmentWriter, OnRows
from deployer.columns.fill.tasks import Piece, tasks_of
from deployer.columns.fill.work import FragmentWork
from deployer.errors import Interrupted

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

TICK = 0.5  #: seconds between two reports of the progress of fragments

Parts = Mapping[int, Sequence[range]]  #: the rows of saved parts, by fragment id
OnTick = Callable[[], None]  #: a callback that is called regularly; its errors end the work


class Executor(Protocol):
    """An executor, which writes fragments and commits nothing."""

    def written(
        self,
        writer: FragmentWriter,
        dataset: LanceDataset,
        works: Sequence[FragmentWork],
        parts: Parts,
        on_rows: OnRows,
        on_tick: OnTick,
    ) -> list[Checkpoint]:
        """Writes the fragments of the opened version, and returns a checkpoint for each, in their order.

        Raises the first error of a fragment or of a callback. After an error, no further fragment is begun.
        """


@dataclass(frozen=True, slots=True)
class InThreads:
    """An executor that writes at most `concurrency` fragments at a time in this process, and not more than it has
    cores.

    A fragment of more than `task_rows` rows is split into pieces, which are computed at the same time. None splits no
    fragment.
    """

    concurrency: int = 8
    task_rows: int | None = None

    def written(
        self,
        writer: FragmentWriter,
        dataset: LanceDataset,
        works: Sequence[FragmentWork],
        parts: Parts,
        on_rows: OnRows,
        on_tick: OnTick,
    ) -> list[Checkpoint]:
        stop = Event()

        def counted(rows: int) -> None:
            if stop.is_set():
                raise Interrupted("the run was stopped")
            on_rows(rows)

        with ThreadPoolExecutor(slots_of(self.concurrency), thread_name_prefix="columns") as pool:
            group = _Group(pool, writer, dataset, parts, counted)
            try:
                for task in tasks_of(works, self.task_rows):
                    for piece in task:
                        group.begin(piece)
                while group.left:
                    ended, _ = wait(group.left, TICK, FIRST_COMPLETED)
                    for future in ended:
                        group.end(future)
                    on_tick()
            except BaseException:
                stop.set()
                for future in group.left:
                    future.cancel()
                raise
        return [group.made[work.fragment_id] for work in works]


class _Group:
    """The group of fragments that the threads of a pool write, piece by piece. Not safe for threads."""

    def __init__(
        self, pool: ThreadPoolExecutor, writer: FragmentWriter, dataset: LanceDataset, parts: Parts, on_rows: OnRows
    ) -> None:
        self.made: dict[int, Checkpoint] = {}
        self.left: dict[Future[Checkpoint | None], FragmentWork] = {}
        self._pool, self._writer, self._dataset, self._parts, self._on_rows = pool, writer, dataset, parts, on_rows
        self._pieces = Counter[int]()  # the number of unfinished pieces of each split fragment

    def begin(self, piece: Piece) -> None:
        """Submits the piece to the pool."""
        work = piece.work
        known = self._parts.get(work.fragment_id, ())
        if piece.is_whole:
            self._write(work, known, self._on_rows)
            return
        self._pieces[work.fragment_id] += 1
        future: Future[Checkpoint | None] = self._pool.submit(
            self._writer.save_rows, self._dataset, work, piece.rows, known, self._on_rows
        )
        self.left[future] = work

    def end(self, future: Future[Checkpoint | None]) -> None:
        """Takes the result of a completed piece; after the last piece of a fragment, submits the writing of its file.
        Raises the error of the piece."""
        work = self.left.pop(future)
        checkpoint = future.result()
        if checkpoint is not None:
            self.made[work.fragment_id] = checkpoint
            return
        self._pieces[work.fragment_id] -= 1
        if not self._pieces[work.fragment_id]:
            saved = self._writer.folder.saved_parts(work.fragment_id).get(work.fragment_id, ())
            self._write(work, saved, lambda _: self._on_rows(0))  # these rows are counted already

    def _write(self, work: FragmentWork, parts: Sequence[range], on_rows: OnRows) -> None:
        self.left[self._pool.submit(self._writer.write, self._dataset, work, parts, on_rows)] = work


def slots_of(concurrency: int) -> int:
    """Returns the number of threads of this process that work at the same time."""
    return max(1, min(concurrency, os.cpu_count() or 1))
