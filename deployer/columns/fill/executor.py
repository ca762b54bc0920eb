"""Writes the fragments of a portion: in threads of this process, or with another executor, such as tasks of Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Protocol

from deployer.columns.fill.checkpoints import Checkpoint
from deployer.columns.fill.fragment_file import FragmentWriter, OnRows
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
    """Writes at most `concurrency` fragments at a time in this process, and no more than it has cores."""

    concurrency: int = 8

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

        threads = max(1, min(self.concurrency, os.cpu_count() or 1))
        with ThreadPoolExecutor(threads, thread_name_prefix="columns") as pool:
            futures = [
                pool.submit(writer.write, dataset, work, parts.get(work.fragment_id, ()), counted) for work in works
            ]
            try:
                left = set(futures)
                while left:
                    ended, left = wait(left, TICK, FIRST_EXCEPTION)
                    for future in ended:
                        future.result()
                    on_tick()
            except BaseException:
                stop.set()
                for future in futures:
                    future.cancel()
                raise
            return [future.result() for future in futures]
