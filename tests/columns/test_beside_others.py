"""Loads of columns beside appends, deletions, COMPACT and CLUSTER: the table ends as if the last load came last."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import closing

import lance
import pytest

from deployer.datasets.recovery.rollforward import refresh
from deployer.errors import Conflict
from deployer.services.cluster import cluster_table
from deployer.services.compact import compact_table
from deployer.state import open_store
from deployer.table import connect
from deployer.tables.verify.verify import verify
from tests.columns.rows import rows, source, values
from tests.tables.lakes import Lake


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


@pytest.mark.parametrize("granularity", [None, 2])
def test_beside_appends_deletions_and_rewrites(granularity: int | None, lake: Lake) -> None:
    over, choice = threading.Event(), random.Random(granularity)  # noqa: S311
    added, deleted = [30], set[int]()
    location = lake.open().opened.location

    def append() -> None:
        if added[0] < 300:
            with connect(lake.root) as connection:
                connection.open_table("flights").add(rows(added[0], added[0] + 10))
            added[0] += 10
        over.wait(0.02)

    def delete() -> None:
        one = choice.randrange(added[0])
        lance.dataset(location).delete(f"id = {one}")
        deleted.add(one)
        over.wait(0.05)

    def rewrite() -> None:
        compact_table(lake.root, "flights", {"min_files": 2})
        cluster_table(lake.root, "flights", {"columns": ["rating"]})
        over.wait(0.05)

    others = [Others(work, over) for work in (append, delete, rewrite)]
    try:
        with connect(lake.root) as connection:
            table = connection.open_table("flights")
            for number in range(1, 5):
                path = str(lake.file(source(range(400), number)))
                table.load_columns(path, "id", ["label", "embedding"], commit_granularity=granularity)
    finally:
        over.set()
        for each in others:
            each.join(60)
    assert [each.failure for each in others] == [None] * 3
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        last = {row["id"]: row["label"] for row in source(range(400), 4).to_pylist()}
        found = values(table, "label")
        # Rows that were added after the last look of the last load have no value, and no row has an older one.
        assert found.keys() == {*range(added[0])} - deleted
        assert all(label in (last[i], None) for i, label in found.items())
        newest = max(i for i, label in found.items() if label is not None)
        assert all(label is not None for i, label in found.items() if i < newest - 10)
        path = str(lake.file(source(range(400), 5)))
        table.load_columns(path, "id", ["label", "embedding"], on_missing="error")
        want = {row["id"]: row for row in source(sorted(found), 5).select(["id", "label", "embedding"]).to_pylist()}
        assert {row["id"]: row for row in table.to_arrow(["id", "label", "embedding"]).to_pylist()} == want
    with closing(open_store(lake.root)) as store:
        refresh(store, lake.root, lake.open().opened.entry.table_id)
        assert [str(one) for each in verify(store, lake.root, full=True) for one in each.differences] == []
