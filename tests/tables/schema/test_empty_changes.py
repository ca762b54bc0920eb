"""A table without rows takes every change: nothing in it can be rewritten or lost, so all of them are safe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.errors import Refused
from deployer.live.reader import read_lake
from deployer.plan import changes as c
from deployer.plan import make_plan
from deployer.plan.assess.risk import Risk
from deployer.plan.graph import build_graph
from deployer.specs.model import IndexSpec, InstanceSpec, Storage, TableSpec
from deployer.specs.model import Lake as LakeSpec
from deployer.specs.types.arrow import arrow_schema
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column
from deployer.tables.admin.tables import create_table, update_table
from deployer.tables.evolution.rewrite import empty_dataset
from deployer.tables.evolution.rewrite.target import create_empty
from deployer.tables.open_table import open_entry
from tests.tables.lakes import Lake
from tests.values import array, value

OWNER = "tests/dev"


def column(name: str, type_: str, **more: Any) -> Column:
    return Column(name, parse_type(type_), **more)


def key(name: str, type_: str, **more: Any) -> Column:
    return column(name, type_, nullable=False, **more)


BEFORE = TableSpec(
    "air",
    "flights",
    (
        key("at", "date32"),
        key("id", "int64"),
        column("delay", "float64"),
        column("gate", "struct<hall: string, number: int16>"),
        column("seen", "list<int32>"),
        column("photo", "blob"),
    ),
    row_keys=("at", "id"),
    sort_keys=("delay",),
    split_points=((19_723,),),
    indexes=(IndexSpec("by_delay", ("delay",), "btree"), IndexSpec("by_id", ("id",), "btree")),
)


def with_column(spec: TableSpec, new: Column, name: str = "") -> TableSpec:
    """The spec with another column in the place of the one of that name."""
    return replace(spec, columns=tuple(new if each.name == (name or new.name) else each for each in spec.columns))


def without_points(spec: TableSpec) -> TableSpec:
    return replace(spec, split_points=())


AFTER: dict[str, TableSpec] = {
    "key to text": without_points(with_column(BEFORE, key("at", "string"))),
    "key to text, with split points of the new type": replace(
        with_column(BEFORE, key("at", "string")), split_points=(("b",), ("m",))
    ),
    "key to a narrower type": with_column(BEFORE, key("id", "int16")),
    "key to a wider type": with_column(BEFORE, key("at", "date64")),
    "key converted by an expression": with_column(BEFORE, key("id", "string", using="cast(id as varchar)")),
    "key converted under another name": replace(
        without_points(with_column(BEFORE, key("day", "string", renamed_from="at"), "at")), row_keys=("day", "id")
    ),
    "key converted with other keys": replace(
        with_column(BEFORE, key("id", "string")), row_keys=("id",), split_points=(("m",),)
    ),
    "key converted, and a key no more": replace(with_column(BEFORE, column("id", "string")), row_keys=("at",)),
    "no keys any more": replace(
        without_points(with_column(BEFORE, column("at", "string"))), row_keys=(), sort_keys=("id",)
    ),
    "sort key to text": with_column(BEFORE, column("delay", "string")),
    "sort key converted to a row key": replace(
        with_column(BEFORE, key("delay", "string")), row_keys=("at", "delay"), sort_keys=()
    ),
    "column to another type": with_column(BEFORE, column("gate", "int8")),
    "field to another type": with_column(BEFORE, column("gate", "struct<hall: int32, number: string>")),
    "items to another type": with_column(BEFORE, column("seen", "list<string>")),
    "blob to text": with_column(BEFORE, column("photo", "string")),
    "text to blob": with_column(BEFORE, column("gate", "blob")),
    "field that is never null": with_column(
        BEFORE, column("gate", "struct<hall: string, number: int16, level: int8 not null>")
    ),
    "column that is never null": replace(BEFORE, columns=(key("new", "bool"), *BEFORE.columns)),
    "every column but one dropped": replace(
        BEFORE, columns=(key("id", "string"),), row_keys=("id",), sort_keys=(), split_points=(), indexes=()
    ),
    "indexes of converted columns": replace(
        with_column(with_column(BEFORE, key("id", "string")), column("delay", "string")),
        indexes=(IndexSpec("by_delay", ("delay",), "bitmap"), IndexSpec("by_id", ("id",), "btree")),
    ),
    "index dropped with its column's conversion": replace(
        with_column(BEFORE, column("delay", "list<int8>")), sort_keys=(), indexes=(BEFORE.indexes[1],)
    ),
    "all at once": replace(
        BEFORE,
        name="departures",
        renamed_from="air.flights",
        columns=(
            key("carrier", "string"),
            column("late", "int8", renamed_from="delay", description="In minutes."),
            key("at", "int32"),
            column("vector", "fixed_size_list<float32, 8>"),
        ),
        row_keys=("carrier", "at"),
        sort_keys=("late",),
        split_points=(("B6",), ("UA", 3)),
        max_rows_per_leaf=1_000,
        indexes=(
            IndexSpec("by_late", ("late",), "btree"),
            IndexSpec("near", ("vector",), "ivf_flat", {"num_partitions": 4}),
        ),
        storage=Storage("2.2", stable_row_ids=True, max_rows_per_file=10),
        tags={"tier": "gold"},
        description="Departures.",
    ),
}


class Empty:
    """A lake with the table of BEFORE, which holds no rows."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.id = create_table(lake.store, lake.root, BEFORE, OWNER)

    def planned(self, spec: TableSpec) -> Any:
        live = read_lake(self.lake.store, self.lake.root)
        graph = build_graph(LakeSpec(InstanceSpec("demo", "lake"), (spec,)))
        plan = make_plan("demo", graph, live, owner=OWNER)
        return next(each for each in plan.resources if each.address == spec.address)

    def load(self, spec: TableSpec, count: int = 3) -> None:
        schema = arrow_schema(spec.columns)
        values = [[value(each.type, place) for place in range(count)] for each in spec.columns]
        rows = pa.Table.from_arrays(list(map(array, schema.types, values)), schema=schema)
        self.lake.ingest(self.lake.file_arrow(rows), table=spec.name)


@pytest.fixture
def empty(lake: Lake) -> Empty:
    return Empty(lake)


def check(empty: Empty, after: TableSpec) -> None:
    planned = empty.planned(after)
    assert {each.assessment.risk for each in planned.changes} == {Risk.SAFE}
    assert [each.refused for each in planned.changes if each.refused] == []
    update_table(empty.lake.store, empty.lake.root, empty.id, after)
    assert empty.planned(after).changes == ()
    found = empty.lake.open(after.name)
    assert found.scan().to_table().schema.names == [each.name for each in after.columns]
    empty.load(after)
    assert empty.lake.open(after.name).count() == 3
    assert empty.planned(after).changes == ()


@pytest.mark.parametrize("case", AFTER)
def test_every_change_is_safe_and_works(empty: Empty, case: str) -> None:
    check(empty, AFTER[case])


@pytest.mark.parametrize("case", ["key to text", "text to blob", "all at once"])
def test_a_table_whose_rows_are_deleted_is_a_table_without_rows(empty: Empty, case: str) -> None:
    rows = pa.table({"at": pa.array([1, 20_000], pa.date32()), "id": [1, 2]})
    empty.lake.ingest(empty.lake.file(rows), missing_as_null=True)
    lance.dataset(empty.lake.open().opened.location).delete("true")
    check(empty, AFTER[case])


def test_rows_that_are_loaded_meanwhile_are_kept(empty: Empty, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = open_entry

    def load_first(*arguments: Any) -> Any:
        monkeypatch.setattr(empty_dataset, "open_entry", opened)
        empty.load(BEFORE)
        return opened(*arguments)

    monkeypatch.setattr(empty_dataset, "open_entry", load_first)
    with pytest.raises(Refused, match="3 rows were loaded since this was planned"):
        update_table(empty.lake.store, empty.lake.root, empty.id, AFTER["key to text"])
    assert empty.lake.open().count() == 3
    assert empty.planned(BEFORE).changes == ()


def test_rows_that_are_loaded_while_it_is_swapped_are_kept(empty: Empty, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create_empty

    def load_first(*arguments: Any) -> None:
        monkeypatch.setattr(empty_dataset, "create_empty", made)
        empty.load(BEFORE)
        made(*arguments)

    monkeypatch.setattr(empty_dataset, "create_empty", load_first)
    with pytest.raises(Refused, match="3 rows were loaded since this was planned"):
        update_table(empty.lake.store, empty.lake.root, empty.id, AFTER["key to text"])
    assert empty.lake.open().count() == 3
    assert "writing" not in [each.status for each in empty.lake.open().opened.state.datasets]


@pytest.mark.parametrize("point", ["started", "created", "swapped"])
def test_a_change_that_is_cut_off_is_finished(empty: Empty, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    def stop(name: str) -> None:
        if name == f"tables.reinitialise.{point}":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(empty_dataset, "reached", stop)
        with pytest.raises(KeyboardInterrupt):
            update_table(empty.lake.store, empty.lake.root, empty.id, AFTER["all at once"])
    check(empty, AFTER["all at once"])


def test_a_key_of_a_table_with_rows_is_still_refused(empty: Empty) -> None:
    empty.load(BEFORE)
    [convert] = [
        each for each in empty.planned(AFTER["key to text"]).changes if isinstance(each.change, c.ConvertColumn)
    ]
    assert "column at is a row key, and its rows would change places" in str(convert.refused)
