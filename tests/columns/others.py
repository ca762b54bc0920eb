"""Others that change a table while a run writes its columns: they add rows, delete some, and rewrite files."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import lance
import pyarrow as pa

from deployer.errors import Conflict
from deployer.table import connect
from tests.columns.rows import rows
from tests.tables.lakes import Lake

FIRST, LAST = 30, 300  #: rows that the table has before, and beyond which none are added


class Others(threading.Thread):
    """Does one thing again and again until it is stopped; a Conflict is no failure."""

    def __init__(self, work: Callable[[], None], over: threading.Event) -> None:
        super().__init__(daemon=True)
        self._work, self._over = work, over
        self.failure: Exception | None = None
        self.start()

    def run(self) -> None:
        while not self._over.is_set() and self.failure is None:
            try:
                self._work()
            except Conflict:
                continue
            except Exception as failure:
                self.failure = failure


@dataclass
class Changed:
    """The rows that others added, up to `added`, and those that they deleted."""

    added: int = FIRST
    deleted: set[int] = field(default_factory=set)

    @property
    def ids(self) -> set[int]:
        return {*range(self.added)} - self.deleted


@contextmanager
def others_changing(
    lake: Lake,
    seed: int | None,
    rewrite: Callable[[], None],
    of_table: Callable[[pa.Table], pa.Table] = lambda given: given,
) -> Iterator[Changed]:
    """Runs threads that add rows, delete some with plain Lance, and `rewrite` files, until the block is left.

    `of_table` gives rows the columns that the table has besides. Fails where one of the threads does.
    """
    over, choice, changed = threading.Event(), random.Random(seed), Changed()  # noqa: S311
    location = lake.open().opened.location

    def append() -> None:
        if changed.added < LAST:
            with connect(lake.root) as connection:
                connection.open_table("flights").add(of_table(rows(changed.added, changed.added + 10)))
            changed.added += 10
        over.wait(0.02)

    def delete() -> None:
        one = choice.randrange(changed.added)
        lance.dataset(location).delete(f"id = {one}")
        changed.deleted.add(one)
        over.wait(0.05)

    def rewrite_files() -> None:
        rewrite()
        over.wait(0.05)

    others = [Others(work, over) for work in (append, delete, rewrite_files)]
    try:
        yield changed
    finally:
        over.set()
        for each in others:
            each.join(300)
    assert [each.failure for each in others] == [None] * 3
