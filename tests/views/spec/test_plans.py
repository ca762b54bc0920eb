"""Plans with views: what changes, what is refused for a view that reads it, and in which order things are deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from deployer.live.model import LiveLake, LiveTable, TableStatistics
from deployer.plan import changes as c
from deployer.plan import make_plan
from deployer.plan.assess.view_refreshes import ViewRefresh, describe_refresh
from deployer.plan.graph import build_graph
from deployer.plan.model import Plan
from deployer.plan.render.changes import describe
from deployer.specs.model import InstanceSpec, Lake, TableSpec
from deployer.specs.types.types import Column, Scalar
from deployer.specs.types.view import ViewFunction, ViewSpec

OWNER = "lakes/dev"
INSTANCE = InstanceSpec("demo", "lakes/demo")
ID, TEXT, DELAY = Column("id", Scalar("int64"), nullable=False), Scalar("string"), Column("delay", Scalar("int32"))
FLIGHTS = TableSpec("air", "flights", (ID, Column("carrier", TEXT), DELAY), deletion_protection=False)
QUERY = "SELECT id, delay FROM air.flights"
LATE = TableSpec(
    "air",
    "late",
    (ID, DELAY),
    view=ViewSpec(QUERY, {}, 60_000, {"air.flights": ("delay", "id")}),
    deletion_protection=False,
)
TOP = TableSpec("air", "atop", (ID,), view=ViewSpec("SELECT id FROM air.late"), deletion_protection=False)


def live(*tables: TableSpec, rows: int = 10, owner: str = OWNER) -> LiveLake:
    statistics = TableStatistics(rows, 100 * rows, 1)
    found = {
        each.address: LiveTable(each, each.name.ljust(32, "0"), f"air/{each.name}.lance", owner, statistics)
        for each in tables
    }
    return LiveLake(INSTANCE, found)


def planned(before: LiveLake, *tables: TableSpec, allow: Sequence[str] = ()) -> Plan:
    return make_plan("demo", build_graph(Lake(INSTANCE, tables)), before, owner=OWNER, allow_destroy=allow)


def other(query: str = QUERY, *columns: Column, **more: Any) -> TableSpec:
    assert LATE.view is not None
    return replace(LATE, columns=columns or LATE.columns, view=replace(LATE.view, query=query, **more))


CHANGES = {
    "the same query, written otherwise": (other(f"select  id, delay -- minutes\nfrom {FLIGHTS.full_name}"), []),
    "another query": (
        other("SELECT id, delay FROM air.flights WHERE delay > 1"),
        [
            (
                "rewrites",
                "query “SELECT id, delay FROM air.flights” → “SELECT id, delay FROM air.flights WHERE delay > 1”",
            )
        ],
    ),
    "another function": (
        other(functions={"f": ViewFunction("b" * 16)}),
        [("rewrites", f"query “{QUERY}” → “{QUERY}”, function f none → {'b' * 16}")],
    ),
    "columns of other types": (
        other(QUERY, ID, Column("delay", Scalar("int64"))),
        [("rewrites", f"query “{QUERY}” → “{QUERY}”")],
    ),
    "later": (other(max_staleness=None), [("safe", "late after 1m → any time")]),
    "a description": (
        other(QUERY, ID, replace(DELAY, description="Minutes.")),
        [("safe", "describe column delay: none → “Minutes.”")],
    ),
}


@pytest.mark.parametrize(("after", "changes"), CHANGES.values(), ids=CHANGES)
def test_changes_of_a_view(after: TableSpec, changes: list[tuple[str, str]]) -> None:
    plan = planned(live(FLIGHTS, LATE), FLIGHTS, after)
    assert [(each.assessment.risk.value, describe(each.change)) for each in plan.changes] == changes
    assert not plan.refused


def test_a_view_without_rows_is_not_rewritten() -> None:
    plan = planned(live(FLIGHTS, LATE, rows=0), FLIGHTS, other("SELECT id, delay FROM air.flights WHERE delay > 1"))
    assert [each.assessment.risk.value for each in plan.changes] == ["safe"]


def test_a_view_is_created_after_what_it_reads() -> None:
    plan = planned(LiveLake(INSTANCE), TOP, LATE, FLIGHTS)
    assert [each.address for each in plan.resources] == [
        "instance/demo",
        "table/air.flights",
        "table/air.late",
        "table/air.atop",
    ]
    assert describe(plan.resources[2].changes[0].change) == "create view of air.flights: 2 columns"


def test_a_view_is_deleted_before_what_it_reads() -> None:
    plan = planned(live(FLIGHTS, LATE, TOP), allow=["table/air.flights", "table/air.late", "table/air.atop"])
    deleted = [each.address for each in plan.resources if each.action == "delete"]
    assert deleted == ["table/air.atop", "table/air.late", "table/air.flights"]
    assert not plan.refused


WIDE = replace(DELAY, type=Scalar("int64"))
REFUSED = {
    "a type, declared": ((replace(FLIGHTS, columns=(ID, Column("carrier", TEXT), WIDE)), LATE), "reads column delay"),
    "a table becomes a view": ((replace(FLIGHTS, name="other"), replace(LATE, name="flights")), "another name"),
    "a view becomes a table": ((FLIGHTS, replace(LATE, view=None)), "another name"),
}


@pytest.mark.parametrize(("tables", "why"), REFUSED.values(), ids=REFUSED)
def test_what_a_declared_view_does_not_bear_is_refused(tables: tuple[TableSpec, ...], why: str) -> None:
    plan = planned(live(FLIGHTS, LATE), *tables)
    assert any(why in str(each.refused) for each in plan.refused)


def test_a_type_may_change_with_the_query_that_reads_it() -> None:
    wide = replace(FLIGHTS, columns=(ID, Column("carrier", TEXT), WIDE))
    cast = other("SELECT id, CAST(delay AS INT) AS delay FROM air.flights")
    assert not planned(live(FLIGHTS, LATE), wide, cast).refused


LOSSES = {
    "the table": ((), c.DeleteTable),
    "its name": ((replace(FLIGHTS, name="all", renamed_from="flights"),), c.RenameTable),
    "a column": ((replace(FLIGHTS, columns=(ID, Column("carrier", TEXT))),), c.DropColumn),
    "a column's name": (
        (replace(FLIGHTS, columns=(ID, Column("carrier", TEXT), replace(DELAY, name="late", renamed_from="delay"))),),
        c.RenameColumn,
    ),
    "a column's type": ((replace(FLIGHTS, columns=(ID, Column("carrier", TEXT), WIDE)),), c.WidenColumn),
}


@pytest.mark.parametrize(("tables", "kind"), LOSSES.values(), ids=LOSSES)
def test_what_a_view_reads_that_nobody_declares_is_kept(tables: tuple[TableSpec, ...], kind: type) -> None:
    before = live(FLIGHTS)
    before = replace(before, tables={**before.tables, **live(LATE, owner="").tables})
    plan = planned(before, *tables, allow=["table/air.flights"])
    [refused] = plan.refused
    assert isinstance(refused.change, kind)
    assert "view air.late" in str(refused.refused) and "no specs declare that view" in str(refused.refused)


def test_a_column_that_no_view_reads_may_go() -> None:
    before = live(FLIGHTS)
    before = replace(before, tables={**before.tables, **live(LATE, owner="").tables})
    assert not planned(before, replace(FLIGHTS, columns=(ID, DELAY)), allow=["table/air.flights"]).refused


REFRESHES = {
    "air.late: nothing to refresh: no row changed": ViewRefresh("table/air.late", "none", "no row changed"),
    "air.late: unknown: air.flights is gone": ViewRefresh("table/air.late", "unknown", "air.flights is gone"),
    "air.late: incremental: reads 2 rows in 1 file (1.0 kB), writes at most 2 rows": ViewRefresh(
        "table/air.late", "incremental", "", 2, 1000, 1, 2
    ),
    "air.late: full, since its query changes: reads 3 rows in 2 files (2.0 kB), writes all its rows": ViewRefresh(
        "table/air.late", "full", "its query changes", 3, 2000, 2
    ),
}


@pytest.mark.parametrize(("text", "refresh"), REFRESHES.items())
def test_refreshes_are_described(text: str, refresh: ViewRefresh) -> None:
    assert describe_refresh(refresh) == text
