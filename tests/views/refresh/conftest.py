from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.specs.types.view import HIDDEN
from deployer.state.store import StateStore
from deployer.tables.append import Appender
from deployer.tables.open_table import OpenTable, find_entry, open_entry
from deployer.tables.read.table import open_table
from deployer.views.definition import ViewDefinition
from deployer.views.refresh.create import NewView, create_view
from deployer.views.refresh.engine import queries_of
from deployer.views.refresh.plan import RefreshPlan
from deployer.views.refresh.queries import Queries
from deployer.views.refresh.refresh import ViewJob, plan_refresh, refresh
from deployer.views.refresh.results import RefreshJobResult, RefreshRequest
from tests.tables.lakes import Lake

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("carrier", pa.string()),
        pa.field("delay", pa.int32()),
    ]
)
LATE = "SELECT id, carrier, delay FROM air.flights WHERE delay > 10"
COUNTS = "SELECT carrier, count(*) AS flights FROM air.flights GROUP BY carrier"
CARRIERS = ("UA", "AA", None, "DL")


def rows(start: int, stop: int, delay: int = 0) -> pa.Table:
    ids = range(start, stop)
    columns = [list(ids), [CARRIERS[i % 4] for i in ids], [i % 50 + delay for i in ids]]
    return pa.table([pa.array(each, of.type) for each, of in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


@dataclass
class Views:
    """An instance with the table `air.flights`, and views of it."""

    lake: Lake
    jobs: int = 0

    @property
    def queries(self) -> Queries:
        return queries_of(self.lake.root, TrustedFunctions.allowed())

    @property
    def store(self) -> StateStore:
        return self.lake.store

    def open(self, name: str = "flights") -> OpenTable:
        return open_entry(self.store, self.lake.root, find_entry(self.store.instance().tables.values(), name))

    def add(self, table: pa.Table, name: str = "flights") -> None:
        Appender(self.open(name)).append(table)

    def view(self, query: str = LATE, name: str = "late", **given: Any) -> OpenTable:
        return create_view(
            self.store, self.lake.root, NewView("air", name, ViewDefinition(query), **given), self.queries, "tests/dev"
        )

    def refresh(self, name: str = "late", job_id: str | None = None, **given: Any) -> RefreshJobResult:
        self.jobs += 1
        job = ViewJob(self.open(name), RefreshRequest(**given), job_id or f"job-{self.jobs}", self.queries)
        return refresh(job)

    def plan(self, name: str = "late", **given: Any) -> RefreshPlan:
        return plan_refresh(self.queries, self.open(name), RefreshRequest(**given))

    def rows(self, name: str = "late") -> list[dict[str, Any]]:
        found = open_table(self.lake.root, name).scan().to_table()
        names = [each for each in found.column_names if not each.startswith(HIDDEN)]
        return sorted(found.select(names).to_pylist(), key=repr)

    def expected(self, above: int = 10) -> list[dict[str, Any]]:
        """The rows of the view `late` by the rows of the source now."""
        found = open_table(self.lake.root, "flights").scan().to_table().to_pylist()
        return sorted((row for row in found if row["delay"] is not None and row["delay"] > above), key=repr)


@pytest.fixture
def views(tmp_path: Path) -> Views:
    lake = Lake(tmp_path)
    lake.table(SCHEMA, row_keys=("id",), splits=())
    found = Views(lake)
    for start in (0, 100, 200):
        found.add(rows(start, start + 100))
    return found
