"""Random changes of rows, loads of rows and columns, backfills, COMPACT and CLUSTER, some cut off, against a list.

A change that is cut off is there as a whole or not at all, and done by its next run. One that is overtaken by another
change comes after it, and one that is overtaken by an append takes the new rows into account too.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.columns.fill import commit as column_commit
from deployer.errors import Conflict
from deployer.functions import udf
from deployer.services.kinds.cluster import cluster_table
from deployer.services.kinds.compact import compact_table
from deployer.specs.model import Storage
from deployer.state import open_store
from deployer.table import connect
from deployer.tables.maintenance.verify.verify import verify
from deployer.tables.rows import commit
from tests.tables.lakes import Lake

SCHEMA = pa.schema(
    [pa.field("id", pa.int32(), nullable=False), ("part", pa.int8()), ("value", pa.int64()), ("note", pa.string())]
)
POINTS = ("before-intent", "before-lance", "after-lance", "after-state")  #: of changes, and of loads of columns
IDS = 60
Row = dict[str, Any]
Rows = list[Row]
Change = tuple[Callable[[Any, str], object], Callable[[Rows], Rows]]  #: by the API under a job id, and on the list


@udf
def summed(id: int, value: int) -> str:
    return f"s{id + value}"


class Killed(BaseException):
    """The process ended at this point."""


class Model:
    """A lake, and the rows that its table should have."""

    def __init__(self, lake: Lake, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake, self.rows, self.jobs = lake, Rows(), 0
        self.random = random.Random(seed)  # noqa: S311 (the same steps each time)
        self.patch = monkeypatch

    def job(self) -> str:
        self.jobs += 1
        return f"job-{self.jobs}"

    def new_rows(self, ids: list[int]) -> Rows:
        choose = self.random
        return [
            {
                "id": each,
                "part": choose.choice([None, *range(4)]),
                "value": choose.randrange(1000),
                "note": choose.choice(["a", "b", None]),
            }
            for each in ids
        ]

    def condition(self) -> tuple[str, Callable[[Row], bool]]:
        low = self.random.randrange(IDS)
        high, part = low + self.random.randrange(12), self.random.randrange(4)
        return self.random.choice(
            [
                (f"id >= {low} AND id < {high}", lambda row: low <= row["id"] < high),
                (f"part = {part} AND id > {low}", lambda row: row["part"] == part and row["id"] > low),
                ("note IS NULL AND value < 300", lambda row: row["note"] is None and row["value"] < 300),
            ]
        )

    def delete(self) -> Change:
        where, holds = self.condition()
        where, keep = f"({where}) AND id <> -1", holds
        return (
            lambda table, job: table.delete(where, job_id=job, allow_destroy=True),
            lambda rows: [row for row in rows if not keep(row)],
        )

    def update(self) -> Change:
        where, holds = self.condition()
        moved = self.random.choice([0, 0, 7])

        def changed(row: Row) -> Row:
            return row | {"value": row["value"] + 1, "id": (row["id"] + moved) % IDS, "note": "u"}

        values = {"value": "value + 1"} | ({"id": f"(id + {moved}) % {IDS}"} if moved else {})
        return (
            lambda table, job: table.update(where, {"note": "u"}, values_sql=values, job_id=job),
            lambda rows: [changed(row) if holds(row) else row for row in rows],
        )

    def merge(self) -> Change:
        source = self.new_rows(self.random.sample(range(IDS), self.random.randrange(1, 12)))
        matched = self.random.choice(["update", "update", "delete", "ignore"])
        by_source = self.random.choice(["keep", "keep", "delete"])
        where = "part = 1" if by_source == "delete" else None
        columns = self.random.choice([SCHEMA.names, ["id", "value"]])
        given = [{name: row[name] for name in columns} for row in source]
        types = pa.schema([SCHEMA.field(name) for name in columns])

        def merged(rows: Rows) -> Rows:
            mine = {row["id"]: row for row in given}
            found = []
            for row in rows:
                if row["id"] not in mine:
                    if by_source == "keep" or row["part"] != 1:
                        found.append(row)
                elif matched != "delete":
                    found.append(row | (mine[row["id"]] if matched == "update" else {}))
            there = {row["id"] for row in rows}
            return found + [dict.fromkeys(SCHEMA.names) | row for key, row in mine.items() if key not in there]

        return (
            lambda table, job: table.merge(
                pa.Table.from_pylist(given, types),
                "id",
                when_matched=matched,
                when_not_matched_by_source=by_source,
                where=where,
                job_id=job,
                allow_destroy=True,
            ),
            merged,
        )

    def add(self) -> Change:
        rows = self.new_rows([self.random.randrange(IDS) for _ in range(self.random.randrange(1, 15))])
        return (
            lambda table, job: table.add(pa.Table.from_pylist(rows, SCHEMA), job_id=job),
            lambda before: before + rows,
        )

    def upsert(self) -> Change:
        rows = self.new_rows(self.random.sample(range(IDS), 8))
        path = self.lake.file(pa.Table.from_pylist(rows, SCHEMA))
        mine = {row["id"] for row in rows}
        return (
            lambda table, job: self.lake.ingest(path, table="rows", mode="upsert", on=("id",), job_id=job),
            lambda before: [row for row in before if row["id"] not in mine] + rows,
        )

    def load(self) -> Change:
        """Values of a column by key, from a file; rows without a match keep theirs, or get null."""
        notes = {each: f"n{each}" for each in self.random.sample(range(IDS), self.random.randrange(1, 30))}
        source = pa.table({"id": pa.array(notes, pa.int32()), "note": pa.array(notes.values(), pa.string())})
        path, missing = str(self.lake.file(source)), self.random.choice(["carry", "null"])

        def loaded(row: Row) -> Row:
            return row | {"note": notes.get(row["id"], row["note"] if missing == "carry" else None)}

        return (
            lambda table, job: table.load_columns(path, "id", ["note"], on_missing=missing, job_id=job),
            lambda rows: [loaded(row) for row in rows],
        )

    def backfill(self) -> Change:
        """Values of a column by a function of others, for all rows or those of a condition."""
        where, holds = self.condition() if self.random.random() < 0.6 else ("1=1", lambda row: True)
        return (
            lambda table, job: table.backfill("note", udf=summed, where=where, job_id=job, commit_granularity=2),
            lambda rows: [row | {"note": f"s{row['id'] + row['value']}"} if holds(row) else row for row in rows],
        )

    def change(self) -> Change:
        kinds = [self.delete, self.update, self.update, self.merge, self.merge, self.add, self.upsert, self.load]
        return self.random.choice([*kinds, self.backfill])()

    def make(self, change: Change, job: str) -> None:
        with connect(self.lake.root) as connection:
            change[0](connection.open_table("air.rows"), job)

    def step(self) -> None:
        """One change: as it is, cut off at a point and done again, or overtaken by another one."""
        how = self.random.choice(["done", "done", "killed", "overtaken", "service"])
        if how == "service":
            self.service()
            return
        change, job = self.change(), self.job()
        if how == "killed":
            self.killed(change, job)
        elif how == "overtaken":
            self.overtaken(change, job)
        else:
            self.make(change, job)
            self.rows = change[1](self.rows)

    def killed(self, change: Change, job: str) -> None:
        """The job is killed at its point, and run again."""
        point = self.random.choice(POINTS)

        def reached(name: str) -> None:
            if name in (f"tables.rows.{point}", f"columns.commit.{point}"):
                raise Killed

        with self.patch.context() as patch:
            patch.setattr(commit, "reached", reached)
            patch.setattr(column_commit, "reached", reached)
            with suppress(Killed):
                self.make(change, job)
        self.make(change, job)
        self.rows = change[1](self.rows)

    def overtaken(self, change: Change, job: str) -> None:
        """Others commit after the change is computed, and before it begins."""
        other, begun, pending = self.change(), commit.RowJob._begun, [self.job()]

        def late(this: Any, *arguments: Any) -> Any:
            if pending:
                other_job = pending.pop()
                self.make(other, other_job)
                self.rows = other[1](self.rows)
                if self.random.random() < 0.3:
                    self.service()
            return begun(this, *arguments)

        with self.patch.context() as patch:
            patch.setattr(commit.RowJob, "_begun", late)
            self.make(change, job)
        self.rows = change[1](self.rows)

    def service(self) -> None:
        with suppress(Conflict):
            if self.random.random() < 0.5:
                compact_table(self.lake.root, "air.rows", {"target_rows": 30, "portion_bytes": 500})
            else:
                options = {"columns": ["value", "part"], "curve": "zorder", "portion_bytes": 500}
                cluster_table(self.lake.root, "air.rows", options)

    def check(self) -> None:
        def ordered(rows: Rows) -> list[str]:
            return sorted(repr([row[name] for name in SCHEMA.names]) for row in rows)

        reader = self.lake.open("rows")
        assert ordered(reader.scan().to_table().to_pylist()) == ordered(self.rows)
        key = self.random.randrange(IDS)
        if reader.row_keys:
            found = reader.keys((key,)).to_table().to_pylist()
            assert ordered(found) == ordered([row for row in self.rows if row["id"] == key])
        with closing(open_store(self.lake.root)) as store:
            found_wrong = [str(one) for each in verify(store, self.lake.root, full=True) for one in each.differences]
        assert found_wrong == []
        assert lance.dataset(reader.opened.location).version == reader.opened.state.lance_version


OPTIONS: dict[str, dict[str, Any]] = {
    "keyed": {"row_keys": ("id",), "splits": ((20,), (40,))},
    "keyless": {"row_keys": ()},
    "stable row ids": {
        "row_keys": ("id",),
        "splits": ((30,),),
        "storage": Storage(stable_row_ids=True),
    },
    "sort keys": {"row_keys": ("id",), "sort_keys": ("value",), "splits": ((30,),)},
}


def run(lake: Lake, seed: int, steps: int, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table(SCHEMA, name="rows", **OPTIONS[options])
    model = Model(lake, seed, monkeypatch)
    for step in range(steps):
        model.step()
        if step % 5 == 4:
            model.check()
    model.check()


@pytest.mark.parametrize("options", OPTIONS)
def test_the_table_has_the_rows_of_the_model(lake: Lake, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run(lake, 1, 20, options, monkeypatch)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
@pytest.mark.parametrize("options", OPTIONS)
def test_the_table_has_the_rows_of_the_model_for_long(
    lake: Lake, options: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(lake, seed, 60, options, monkeypatch)


@pytest.fixture
def lake_on_s3(on_s3: str, tmp_path: Path) -> Iterator[Lake]:
    made = Lake(tmp_path, on_s3)
    yield made
    made.store.close()


@pytest.mark.full
def test_the_table_has_the_rows_of_the_model_on_s3(lake_on_s3: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from deployer.datasets.storage.options import storage_options

    opened = lance.dataset
    monkeypatch.setattr(
        lance, "dataset", lambda uri, **named: opened(uri, **({"storage_options": storage_options(uri)} | named))
    )
    run(lake_on_s3, 1, 20, "keyed", monkeypatch)
