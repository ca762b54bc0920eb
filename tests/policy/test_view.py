"""The rows that rules see, of every kind of change: people write rules against them, so their texts stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deployer.plan import make_plan
from deployer.policy.rows import PlanView
from deployer.policy.sql_rules import plan_tables
from deployer.policy.view import plan_view
from deployer.specs.model import IndexSpec
from deployer.specs.types.types import Column, Scalar, Struct
from tests.plan.lakes import EMPTY, FLIGHTS, LIVE, OWNER, graph, with_column
from tests.plan.test_diff import INSTANCES, TABLES
from tests.policy.plans import NOW, aged, view_of


def views() -> dict[str, PlanView]:
    found = {name: view_of(spec, EMPTY, since=aged(3)) for name, spec in TABLES.items()}
    for name, spec in INSTANCES.items():
        plan = make_plan("demo", graph(FLIGHTS, EMPTY, instance=spec), LIVE, owner=OWNER)
        found[name] = plan_view(plan, (spec, FLIGHTS, EMPTY), LIVE, "dev", NOW, aged(3))
    return found | {
        "everything_deleted": plan_view(make_plan("demo", graph(), LIVE, owner=OWNER), (), LIVE, "dev", NOW, aged(3))
    }


# name: (the kind of the change, its column, before, after), each change of the plan
TEXTS: dict[str, list[tuple[str, str, str | None, str | None]]] = {
    "nothing": [],
    "add_column": [("AddColumn", "remark", None, "string")],
    "add_field": [("AddColumn", "gate.floor", None, "int16")],
    "drop_column": [("DropColumn", "stops", None, None)],
    "drop_field": [("DropColumn", "gate.number", None, None)],
    "rename_column": [("RenameColumn", "delay", "delay", "late")],
    "rename_field": [("RenameColumn", "gate.number", "number", "no")],
    "reorder_fields": [("ReorderColumns", "gate", "hall, number", "number, hall")],
    "widen_column": [("WidenColumn", "delay", "int32", "int64")],
    "convert_using": [("ConvertColumn", "stops", "list<string>", "string")],
    "relax_nullability": [("RelaxNullability", "flight", "not null", "null")],
    "tighten_nullability": [("TightenNullability", "delay", "null", "not null")],
    "describe_column": [("ChangeColumnDescription", "delay", "", "Minutes.")],
    "sensitive_column": [("ChangeColumnSensitive", "delay", "false", "true")],
    "column_default": [("ChangeColumnDefault", "delay", "", "0")],
    "column_source": [("ChangeColumnSource", "delay", None, "Delay")],
    "column_computed": [("ChangeColumnComputed", "stops", None, "air:stops(flight) version 2")],
    "row_keys": [("ChangeRowKeys", "", "carrier, flight", "carrier")],
    "sort_keys": [("ChangeSortKeys", "", "delay", "")],
    "split_points": [("ChangeSplitPoints", "", '[["DL"], ["UA", 100]]', '[["DL"]]')],
    "offline": [("SetOnline", "", "true", "false")],
    "unprotected": [("SetDeletionProtection", "", "true", "false")],
    "description": [("ChangeDescription", "", "Flights.", "")],
    "tags": [("ChangeTags", "", '{"tier": "gold"}', "{}")],
    "rename_table": [("RenameTable", "", "air.flights", "air.departures")],
    "instance_root": [("ChangeRoot", "", "lakes/demo", "lakes/other")],
    "instance_engine": [("ChangeEngine", "", "auto", "embedded")],
    "everything_deleted": [("DeleteTable", "", None, None), ("DeleteTable", "", None, None)],
}


@pytest.mark.parametrize("name", TEXTS)
def test_changes_say_what_was_and_what_will_be(name: str) -> None:
    rows = views()[name].changes
    assert [(row.change, row.column, row.before, row.after) for row in rows] == TEXTS[name]


def test_indexes_say_their_kind() -> None:
    index = IndexSpec("i", ("delay",), "btree")
    indexed = replace(FLIGHTS, indexes=(index,))
    live = replace(LIVE, tables={FLIGHTS.address: replace(LIVE.tables[FLIGHTS.address], spec=indexed)})
    [created] = view_of(indexed, EMPTY).changes
    [dropped] = [row for row in view_of(FLIGHTS, live=live).changes if row.change == "DropIndex"]
    assert [(row.change, row.before, row.after) for row in (created, dropped)] == [
        ("CreateIndex", None, "btree"),
        ("DropIndex", "btree", None),
    ]


@pytest.mark.parametrize("name", views())
def test_every_plan_is_tables(name: str) -> None:
    view = views()[name]
    tables = plan_tables(view)
    assert [tables[each].num_rows for each in ("changes", "resources", "columns")] == [
        len(view.changes),
        len(view.resources),
        len(view.columns),
    ]
    assert all(row.database and row.name and row.tags is not None for row in view.changes if row.kind == "table")


def test_fields_of_a_renamed_column_keep_their_names() -> None:
    gate = FLIGHTS.columns[3]
    assert isinstance(gate.type, Struct)
    added = Struct((*gate.type.fields, Column("level", Scalar("int8"))))
    view = view_of(with_column("gate", Column("door", added, renamed_from="gate")), EMPTY)
    assert {row.column for row in view.columns if row.is_new} == {"door", "door.level"}


def test_a_dropped_column_is_asked_for_by_the_name_that_its_table_has_live() -> None:
    asked = []

    def since(address: str, column: tuple[str, ...]) -> None:
        asked.append((address, column))

    renamed = replace(FLIGHTS, name="departures", renamed_from="flights", columns=FLIGHTS.columns[:-1])
    [row] = [row for row in view_of(renamed, EMPTY, since=since).changes if row.change == "DropColumn"]
    assert (row.address, row.column) == ("table/air.departures", "notes")
    assert asked == [("table/air.flights", ("notes",))]


def test_rules_cannot_change_what_the_next_rule_sees() -> None:
    view = view_of(FLIGHTS)
    with pytest.raises(TypeError):
        view.tables[0].tags["owner"] = "me"  # type: ignore[index]
