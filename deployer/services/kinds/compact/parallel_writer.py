"""Writes the rows of one stream to successive files: while one file is finished, the next already gets its rows.

Lance holds most rows of a file in memory until the file ends, and encodes them then. The other files need not wait for
that.
"""

from __future__ import annotations

import contextlib
import queue
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import pyarrow as pa

_WAITING = 4  #: the most batches that wait for a file; Lance requests them in bursts

Item = TypeVar("Item")
Result = TypeVar("Result")
Write = Callable[[Iterator[pa.RecordBatch]], Result]


def ahead(work: Callable[[Item], Result], given: Iterator[Item], threads: int) -> Generator[Result]:
    """Yields the results of `work` in the order of the items. Threads already work on the next `threads` items."""
    begun: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, "ahead") as pool:
        for each in given:
            begun.append(pool.submit(work, each))
            if len(begun) > threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def deal(batches: Iterator[pa.RecordBatch], files: Sequence[tuple[int, Write[Result]]], threads: int) -> list[Result]:
    """Writes files with the given numbers of rows, `threads` files at a time. The first failure ends all of them.

    Each file's `Write` is called in its own thread with the rows of that file, and must consume all of them.
    """
    source = _Source(batches)
    writing: list[Future[Result]] = []
    with ThreadPoolExecutor(threads, "write") as pool:
        for rows, write in files:
            if len(writing) >= threads:
                writing[-threads].result()
            way = _Way()
            writing.append(pool.submit(write, way.rows()))
            try:
                for batch in source.next_rows(rows):
                    way.put(batch, writing)
                way.put(None, writing)
            except BaseException as failure:
                way.fail(failure)
                raise
        return [each.result() for each in writing]


class _Source:
    """Batches from which a caller takes any number of rows."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self._left: list[pa.RecordBatch] = []

    def next_rows(self, rows: int) -> Iterator[pa.RecordBatch]:
        while rows:
            batch = self._left.pop() if self._left else next(self._batches, None)
            if batch is None:
                raise RuntimeError("fewer rows were merged than there are keys")
            if batch.num_rows > rows:
                self._left.append(batch.slice(rows))
                batch = batch.slice(0, rows)
            rows -= batch.num_rows
            yield batch


class _Way:
    """A queue between the thread that reads the rows and the thread that writes them to a file."""

    def __init__(self) -> None:
        self._queue: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(_WAITING)

    def put(self, batch: pa.RecordBatch | None, writing: Sequence[Future[Any]]) -> None:
        """Adds a batch; None ends the file. Raises the failure of any of the files in `writing`."""
        while True:
            for each in writing:
                if each.done():
                    each.result()
            try:
                return self._queue.put(batch, timeout=0.1)
            except queue.Full:
                continue

    def fail(self, failure: BaseException) -> None:
        """Aborts the file: its writer gets the error instead of more batches."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        self._queue.put(failure)

    def rows(self) -> Iterator[pa.RecordBatch]:
        while (found := self._queue.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            yield found
