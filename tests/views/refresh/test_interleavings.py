"""Random loads, changes, services and refreshes: each view equals its query over the source at the recorded version."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import lance
import pandas as pd
import pyarrow as pa
import pytest

from deployer.errors import Conflict, DeployerError
from deployer.services.kinds.clean import clean_table
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.services.restore import RESTORE
from deployer.services.savepoints.savepoints import make_savepoint
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.update import update_rows
from deployer.views.refresh.record import reflected
from tests.views.refresh.conftest import COUNTS, LATE, Views, rows

SUMS = "SELECT carrier, sum(delay) AS total, max(delay) AS latest FROM air.flights WHERE delay > 5 GROUP BY carrier"


def late(source: pd.DataFrame) -> list[dict[str, Any]]:
    found = source[source["delay"] > 10]
    return found.to_dict("records")  # type: ignore[return-value]


def counts(source: pd.DataFrame) -> list[dict[str, Any]]:
    found = source.groupby("carrier", dropna=False).size().reset_index(name="flights")
    return found.to_dict("records")  # type: ignore[return-value]


def sums(source: pd.DataFrame) -> list[dict[str, Any]]:
    chosen = source[source["delay"] > 5]
    found = chosen.groupby("carrier", dropna=False)["delay"].agg(total="sum", latest="max").reset_index()
    return found.to_dict("records")  # type: ignore[return-value]


VIEWS: dict[str, tuple[str, Callable[[pd.DataFrame], list[dict[str, Any]]]]] = {
    "late": (LATE, late),
    "counts": (COUNTS, counts),
    "sums": (SUMS, sums),
}


class Steps:
    """A table and its views, and one random step after the other."""

    def __init__(self, views: Views, seed: int) -> None:
        self.views, self.random, self.next = views, random.Random(seed), 300  # noqa: S311 (the same steps each time)
        self.changes: list[Callable[[], object]] = [
            self.add,
            self.add,
            lambda: update_rows(
                views.open(), f"id % {self.random.randint(3, 40)} = 0", values_sql={"delay": "delay + 3"}
            ),
            lambda: delete_rows(views.open(), f"id % {self.random.randint(7, 60)} = 1"),
            lambda: merge_rows(views.open(), rows(self.next - 20, self.next + 10, self.random.randint(0, 9))),
            lambda: compact_table(views.lake.root, "flights", {"min_files": 2}),
            lambda: cluster_table(views.lake.root, "flights", {"columns": ["delay"]}),
            lambda: clean_table(views.lake.root, "flights", {"older_than": "0d"}),
            self.save,
            lambda: RESTORE.run(views.lake.root, "flights"),
            lambda: lance.dataset(views.open().location).delete(f"id % {self.random.randint(20, 60)} = 2"),
            lambda: lance.write_dataset(rows(self.next + 500, self.next + 505), views.open().location, mode="append"),
        ]
        self.of_views: list[Callable[[str], object]] = [
            lambda name: compact_table(views.lake.root, name, {"min_files": 2}),
            lambda name: clean_table(views.lake.root, name, {"older_than": "0d"}),
            lambda name: make_savepoint(
                views.store, views.lake.root, [views.open(name).entry], f"s-{self.random.random()}"
            ),
            lambda name: RESTORE.run(views.lake.root, name),
        ]

    def add(self) -> None:
        size = self.random.choice([1, 10, 40])
        self.views.add(rows(self.next, self.next + size, self.random.randint(0, 9)))
        self.next += size

    def update(self) -> None:
        update_rows(self.views.open(), f"id % {self.random.randint(3, 40)} = 0", values_sql={"delay": "delay + 3"})

    def save(self, name: str = "flights") -> None:
        entry = self.views.open(name).entry
        make_savepoint(self.views.store, self.views.lake.root, [entry], f"s-{self.random.random()}")

    def step(self) -> None:
        name = self.random.choice(list(VIEWS))
        kind = self.random.random()
        try:
            if kind < 0.45:
                self.random.choice(self.changes)()
            elif kind < 0.6:
                self.random.choice(self.of_views)(name)
            else:
                self.views.refresh(name)
                self.check(name)
        except (Conflict, DeployerError) as error:
            assert "savepoint" in str(error) or "restore" in str(error).lower(), error

    def check(self, name: str) -> None:
        """The view equals its query over the source at the version that it records."""
        record = reflected(self.views.open(name).state)
        assert record is not None
        [source] = record.sources
        state = self.views.open().state
        if (source.dataset, source.lance_version) != (state.dataset, state.lance_version):
            return
        table = lance.dataset(self.views.open().location, source.lance_version).to_table()
        frame = table.to_pandas(types_mapper={pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}.get)
        expected = _plain(VIEWS[name][1](frame))
        assert _plain(self.views.rows(name)) == expected, name


def _plain(found: list[dict[str, Any]]) -> list[str]:
    rows = [{key: None if pd.isna(value) else value for key, value in row.items()} for row in found]
    return sorted(
        repr({key: value if isinstance(value, str | None) else int(value) for key, value in row.items()})
        for row in rows
    )


@pytest.mark.parametrize("seed", [1, *(pytest.param(each, marks=pytest.mark.full) for each in range(2, 12))])
def test_views_equal_their_queries(views: Views, seed: int) -> None:
    steps = Steps(views, seed)
    for name, (query, _) in VIEWS.items():
        views.view(query, name)
    for _ in range(40):
        steps.step()
    for name in VIEWS:
        views.refresh(name)
        steps.check(name)
