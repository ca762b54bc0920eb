"""Any two valid specs of a table, with rows in between: applying the plan gives the second, as the plan says.

Chains of three. The rows to expect are computed by Python alone (tests/tables/any_specs.py). `--long` tries many more.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from deployer.errors import InvalidSpecs, Refused
from deployer.live.reader import read_lake
from deployer.plan import make_plan
from deployer.plan.assess.risk import Risk
from deployer.plan.graph import build_graph
from deployer.plan.model import ResourcePlan
from deployer.specs.editing.write import lake_to_yaml
from deployer.specs.loading.lake import load_lake
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.specs.model import Lake as LakeSpec
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.types import Column, FixedSizeList, ListOf, MapOf, Struct
from deployer.tables.admin.tables import create_table, update_table
from deployer.tables.evolution.schema.check import checked_on_data
from tests.projects import folder_of_example
from tests.tables.any_specs import Edited, breaks_nullability, changes, row_after, rows_for, tables
from tests.tables.lakes import Lake
from tests.values import array

INSTANCE = InstanceSpec("demo", "lake")
OWNER = "tests/dev"


def loaded(spec: TableSpec, folder: Path) -> TableSpec:
    """The table as `deployer` reads it from YAML; what it does not take is not tried."""
    (folder / "lake.yaml").write_text(lake_to_yaml(LakeSpec(INSTANCE, (spec,))), encoding="utf-8")
    try:
        [found] = load_lake(folder, Path("lake.yaml")).tables
    except InvalidSpecs as invalid:
        assume("differ only in case" not in str(invalid))
        raise
    assert found == spec
    return found


class Changing:
    """One table, and the rows that it should have."""

    def __init__(self, folder: Path, spec: TableSpec) -> None:
        self.lake, self.spec, self.rows = Lake(folder), loaded(spec, folder), list[dict[str, Any]]()
        self.folder = folder
        create_table(self.lake.store, self.lake.root, self.spec, OWNER)

    def plan(self, spec: TableSpec) -> ResourcePlan:
        """What `preview` says of the table, with its rows looked at."""
        live = read_lake(self.lake.store, self.lake.root)
        graph = build_graph(LakeSpec(INSTANCE, (spec,)))
        plan = make_plan("demo", graph, live, owner=OWNER, allow_destroy=[spec.address])
        plan = checked_on_data(plan, live, self.lake.root)
        return next(each for each in plan.resources if each.address == spec.address)

    def add(self, count: int, seed: int, plain: bool) -> None:
        """Rows by an ingest, or by plain Lance."""
        ids = range(len(self.rows), len(self.rows) + count)
        schema = arrow_schema(self.spec.columns)
        rows = rows_for(self.spec, ids, seed)
        table = pa.Table.from_arrays(
            [array(each.type, [row[each.name] for row in rows]) for each in schema], schema=schema
        )
        self.rows += table.to_pylist()
        if plain:
            lance.write_dataset(table, self.dataset().uri, mode="append", max_rows_per_file=2)
        else:
            self.lake.ingest(self.lake.file_arrow(table))
        self.check()

    def change(self, spec: TableSpec, edited: Edited) -> None:
        spec = loaded(spec, self.folder)
        plan, files, version = self.plan(spec), self.lake.data_files(), self.dataset().version
        rows = [row_after(self.spec, spec, edited, row) for row in self.rows]
        table_id = self.lake.open().opened.entry.table_id
        why = [each.refused for each in plan.changes if each.refused]
        assert bool(why) == self.is_refused(spec, edited, rows), why
        if why:
            with pytest.raises(Refused):
                update_table(self.lake.store, self.lake.root, table_id, spec)
            assert (self.dataset().version, self.lake.data_files()) == (version, files)
        else:
            update_table(self.lake.store, self.lake.root, table_id, spec)
            whole = all(len(getattr(each.change, "column", ())) < 2 for each in plan.changes)
            if whole and all(each.assessment.risk is Risk.SAFE for each in plan.changes) and self.rows:
                assert self.lake.data_files() == files
            self.spec, self.rows = spec, rows
        self.check()

    def is_refused(self, spec: TableSpec, edited: Edited, rows: list[dict[str, Any]]) -> bool:
        now = {each.renamed_from or each.name: each.name for each in spec.columns}
        keys = {now.get(key, key) for key in (*self.spec.row_keys, *self.spec.sort_keys)}
        kept = keys & {*spec.row_keys, *spec.sort_keys}
        return bool(rows) and (  # a table without rows takes every change
            edited.unsaid
            or bool(kept & edited.converted.keys())
            or edited.wants_values
            or any(breaks_nullability(spec.columns, row) for row in rows)
        )

    def check(self) -> None:
        """Live state is what was applied, the rows are those expected, and there is nothing to do."""
        live = read_lake(self.lake.store, self.lake.root).tables[self.spec.address]
        assert live.spec == replace(self.spec, columns=tuple(map(plain, self.spec.columns)), renamed_from=None)
        assert not self.plan(self.spec).changes
        table = self.lake.open()
        assert table.count() == len(self.rows)
        found = table.scan().to_table()
        assert found.schema.names == [each.name for each in self.spec.columns]
        assert sorted(found.to_pylist(), key=lambda row: int(row["id"])) == self.rows
        if self.rows and self.spec.row_keys:
            wanted = [self.rows[-1][key] for key in self.spec.row_keys]
            one = table.keys(wanted, columns=["id"]).to_table()["id"].to_pylist()
            assert self.rows[-1]["id"] in one

    def compact(self) -> None:
        """By plain Lance, as anybody may."""
        self.dataset().optimize.compact_files()
        self.check()

    def dataset(self) -> lance.LanceDataset:
        return lance.dataset(self.lake.open().opened.location)


def plain(column: Column) -> Column:
    """Without what is said about a change only."""
    kind = column.type
    match kind:
        case Struct(fields):
            kind = Struct(tuple(map(plain, fields)))
        case ListOf(item, large):
            kind = ListOf(plain(item), large)
        case FixedSizeList(item, size):
            kind = FixedSizeList(plain(item), size)
        case MapOf(key, value):
            kind = MapOf(plain(key), plain(value))
    return replace(column, type=kind, renamed_from=None, using=None)


def try_any(data: st.DataObject) -> None:
    with folder_of_example() as folder:
        table = Changing(Path(folder), data.draw(tables()))
        for _ in range(2):
            table.add(data.draw(st.sampled_from([5, 3, 0])), data.draw(st.integers(0, 9)), data.draw(st.booleans()))
            table.change(*data.draw(changes(table.spec)))
        table.add(2, data.draw(st.integers(0, 9)), data.draw(st.booleans()))
        table.compact()


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_few_plans_give_the_second_spec_and_do_to_rows_what_they_say(data: st.DataObject) -> None:
    try_any(data)


@pytest.mark.full
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_plan_gives_the_second_spec_and_does_to_rows_what_it_says(data: st.DataObject) -> None:
    try_any(data)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_many_plans_give_the_second_spec_and_do_to_rows_what_they_say(data: st.DataObject) -> None:
    try_any(data)
