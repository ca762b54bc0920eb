"""Writes the fragments of a portion: in threads of this process, or with another executor, such as tasks of Spark."""

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

TICK = 0.5  #: seconds between two looks at the progress of fragments

Parts = Mapping[int, Sequence[range]]  #: the rows of fragments that parts are saved of, by fragment id
OnTick = Callable[[], None]  #: called now and then; what it raises ends the work


class Executor(Protocol):
    """Writes fragments, and commits nothing."""

    def written(
        self,
        writer: FragmentWriter,
        dataset: LanceDataset,
        works: Sequence[FragmentWork],
        parts: Parts,
        on_rows: OnRows,
        on_tick: OnTick,
    ) -> list[Checkpoint]:
        """Returns a checkpoint for each of the fragments of the opened version, in their order.

        Raises the first failure, after which no further fragment is begun, and what the callbacks raise.
        """


@dataclass(frozen=True, slots=True)
class InThreads:
    """Writes at most `concurrency` fragments at a time in this process, and no more than it has cores.

    Fragments of more than `task_rows` rows are split, and their pieces are made at the same time; None: no fragment is.
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
            portion = _Portion(pool, writer, dataset, parts, counted)
            try:
                for task in tasks_of(works, self.task_rows):
                    for piece in task:
                        portion.begin(piece)
                while portion.left:
                    ended, _ = wait(portion.left, TICK, FIRST_COMPLETED)
                    for future in ended:
                        portion.end(future)
                    on_tick()
            except BaseException:
                stop.set()
                for future in portion.left:
                    future.cancel()
                raise
        return [portion.made[work.fragment_id] for work in works]


class _Portion:
    """The pieces of fragments that are done in the threads of a pool. One thread uses it."""

    def __init__(
        self, pool: ThreadPoolExecutor, writer: FragmentWriter, dataset: LanceDataset, parts: Parts, on_rows: OnRows
    ) -> None:
        self.made: dict[int, Checkpoint] = {}
        self.left: dict[Future[Checkpoint | None], FragmentWork] = {}
        self._pool, self._writer, self._dataset, self._parts, self._on_rows = pool, writer, dataset, parts, on_rows
        self._pieces = Counter[int]()  # of split fragments, those that are not done

    def begin(self, piece: Piece) -> None:
        """Has a thread do the piece."""
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
        """Takes what a thread has done; after the last piece of a fragment, has one write the file. Raises what it
        raised."""
        work = self.left.pop(future)
        checkpoint = future.result()
        if checkpoint is not None:
            self.made[work.fragment_id] = checkpoint
            return
        self._pieces[work.fragment_id] -= 1
        if not self._pieces[work.fragment_id]:
            saved = self._writer.folder.saved_parts(work.fragment_id).get(work.fragment_id, ())
            self._write(work, saved, lambda _: self._on_rows(0))  # these rows were counted

    def _write(self, work: FragmentWork, parts: Sequence[range], on_rows: OnRows) -> None:
        self.left[self._pool.submit(self._writer.write, self._dataset, work, parts, on_rows)] = work


def slots_of(concurrency: int) -> int:
    """Returns how many threads of this process work at the same time."""
    return max(1, min(concurrency, os.cpu_count() or 1))
