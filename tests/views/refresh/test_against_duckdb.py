"""Random queries over real tables, and random changes of these by us and by plain Lance.

After each refresh, a view has the rows that DuckDB computes over its sources at the versions that the view records.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.specs.model import Storage
from deployer.tables.rows.delete import delete_rows
from deployer.tables.rows.merging.merge import merge_rows
from deployer.tables.rows.update import update_rows
from deployer.views.definition import ReflectedInputs
from deployer.views.refresh.record import reflected
from tests.tables.lakes import Lake
from tests.views.query.test_against_engines import CITIES, FACTS, SHOPS, comparable, queries
from tests.views.refresh.conftest import Views

KNOWN_BY: dict[str, dict[str, Any]] = {
    "unique keys": {"row_keys": ("id",), "unique": True},
    "keys that repeat": {"row_keys": ("id",)},
    "row ids": {"row_keys": (), "storage": Storage(stable_row_ids=True)},
    "nothing": {"row_keys": (), "storage": Storage(stable_row_ids=False)},
}


class Facts:
    """The tables `facts`, `shops` and `cities`, and random changes of them."""

    def __init__(self, folder: Path, seed: int, known_by: str) -> None:
        self.random = random.Random(seed)  # noqa: S311 (the same changes each time)
        lake = Lake(folder)
        lake.table(FACTS, splits=(), name="facts", **KNOWN_BY[known_by])
        lake.table(SHOPS, ("code",), splits=(), name="shops", unique=True)
        lake.table(CITIES, ("city",), splits=(), name="cities", unique=True)
        self.views, self.next, self.keyed = Views(lake), 0, "keys" in known_by
        self.add()
        self.views.add(self.shops("abc"), "shops")
        self.views.add(self.cities(("x", "y")), "cities")
        facts, shops, cities = (self.views.lake.root, "facts"), "shops", "cities"
        self.changes: list[Callable[[], object]] = [
            self.add,
            self.add,
            self.again,
            lambda: delete_rows(self.views.open("facts"), f"id % {self.some(2, 9)} = 1"),
            lambda: update_rows(self.views.open("facts"), f"id % {self.some(2, 9)} = 0", values_sql=self.values()),
            lambda: compact_table(*facts, {"min_files": 2}),
            lambda: cluster_table(*facts, {"columns": ["amount"]}),
            lambda: lance.write_dataset(self.facts(self.new_ids(3)), self.location("facts"), mode="append"),
            lambda: lance.dataset(self.location("facts")).delete(f"id % {self.some(3, 9)} = 2"),
            lambda: merge_rows(self.views.open(shops), self.shops(self.random.sample("abcd", 2)), ["code"]),
            lambda: delete_rows(self.views.open(shops), f"code = '{self.random.choice('abcd')}'"),
            lambda: merge_rows(self.views.open(cities), self.cities(self.random.sample(["x", "y", "z"], 2)), ["city"]),
        ]

    def some(self, least: int, most: int) -> int:
        return self.random.randint(least, most)

    def maybe(self, value: Any) -> Any:
        return None if self.random.random() < 0.15 else value

    def location(self, name: str) -> str:
        return self.views.open(name).location

    def values(self) -> dict[str, str]:
        return self.random.choice(
            [
                {"amount": "amount + 1"},
                {"grade": "CAST(NULL AS INT)"},
                {"shop": "'d'"},
                {"weight": "weight * 2", "grade": "1"},
            ]
        )

    def new_ids(self, count: int) -> list[int]:
        self.next += count
        return list(range(self.next - count, self.next))

    def add(self) -> None:
        self.views.add(self.facts(self.new_ids(self.some(1, 12))), "facts")

    def again(self) -> None:
        """Rows whose ids are there: they take their place by key, or are other rows with the same id."""
        ids = self.random.sample(range(self.next), min(4, self.next))
        if self.keyed:
            merge_rows(self.views.open("facts"), self.facts(ids), ["id"])
        else:
            self.views.add(self.facts(ids), "facts")

    def facts(self, ids: list[int]) -> pa.Table:
        rows = [
            {
                "id": number,
                "shop": self.maybe(self.random.choice("abcd")),
                "grade": self.maybe(self.some(0, 3)),
                "amount": self.maybe(self.some(-5, 5)),
                "weight": self.maybe(self.some(-8, 8) / 4),
                "price": self.maybe(Decimal(self.some(-300, 300)) / 100),
                "day": self.maybe(date(2024, 1, 1) + timedelta(self.some(0, 70))),
                "tags": self.maybe([self.random.choice("xyz") for _ in range(self.some(0, 3))]),
            }
            for number in ids
        ]
        return pa.Table.from_pylist(rows, FACTS)

    def shops(self, codes: Any) -> pa.Table:
        rows = [
            {"code": each, "city": self.maybe(self.random.choice("xyz")), "size": self.some(0, 3)} for each in codes
        ]
        return pa.Table.from_pylist(rows, SHOPS)

    def cities(self, names: Any) -> pa.Table:
        return pa.Table.from_pylist(
            [{"city": each, "country": self.random.choice(["fr", "de"])} for each in names], CITIES
        )

    def recorded(self) -> ReflectedInputs:
        record = reflected(self.views.open("view").state)
        assert record is not None
        return record

    def by_duckdb(self, query: str) -> pa.Table:
        """The rows of the query over the tables at the versions that the view records."""
        versions = {each.table_id: each.lance_version for each in self.recorded().sources}
        with duckdb.connect() as connection:
            connection.execute("CREATE SCHEMA air")
            for name in ("facts", "shops", "cities"):
                opened = self.views.open(name)
                held = lance.dataset(opened.location, versions.get(opened.entry.table_id)).to_table()
                connection.register("held", held)
                connection.execute(f"CREATE TABLE air.{name} AS SELECT * FROM held")  # noqa: S608
                connection.unregister("held")
            query = query.replace("approx_distinct(f.shop)", "count(DISTINCT f.shop)")
            return connection.sql(query).to_arrow_table()

    def check(self, query: str, known_by: str) -> None:
        done = self.views.refresh("view")
        newest = {name: f"1:{self.views.open(name).state.lance_version}" for name in ("facts", "shops", "cities")}
        assert dict(done.sources) == {f"air.{name}": newest[name] for name in newest if f"air.{name}" in done.sources}
        found = pa.Table.from_pylist(self.views.rows("view")) if self.views.rows("view") else pa.table({})
        assert comparable(found) == comparable(self.by_duckdb(query)), (query, done)
        assert done.mode != "full" or known_by == "nothing" or "were touched" in done.reason, done.reason


def check(folder: Path, query: str, seed: int, known_by: str) -> None:
    facts = Facts(folder, seed, known_by)
    query = query.replace("db.", "air.")
    facts.views.view(query, "view")
    facts.views.refresh("view")
    assert facts.views.plan("view").mode == "none"
    for _ in range(3):
        for _ in range(facts.some(1, 4)):
            facts.random.choice(facts.changes)()
        facts.check(query, known_by)


QUIET = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate,),
    database=None,
)


@pytest.mark.parametrize("known_by", KNOWN_BY)
@settings(QUIET, max_examples=1)
@given(query=queries(), seed=st.integers(0, 999_999))
def test_a_view_of_tables_has_the_rows_of_its_query(
    tmp_path_factory: pytest.TempPathFactory, known_by: str, query: str, seed: int
) -> None:
    check(tmp_path_factory.mktemp("lake"), query, seed, known_by)


@pytest.mark.full
@pytest.mark.parametrize("known_by", KNOWN_BY)
@settings(QUIET, max_examples=25)
@given(query=queries(), seed=st.integers(0, 999_999))
def test_many_views_of_tables_have_the_rows_of_their_queries(
    tmp_path_factory: pytest.TempPathFactory, known_by: str, query: str, seed: int
) -> None:
    check(tmp_path_factory.mktemp("lake"), query, seed, known_by)
