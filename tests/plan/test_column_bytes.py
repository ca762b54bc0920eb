"""How large the planner takes a changed column to be."""

from __future__ import annotations

import pytest

from deployer.live.model import TableStatistics
from deployer.plan import changes as c
from deployer.plan import make_plan
from deployer.plan.assess.column_bytes import Bytes, column_bytes
from deployer.plan.assess.risk import Risk
from deployer.plan.model import Plan
from deployer.plan.render.totals import extent
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column
from tests.plan.lakes import FLIGHTS, LIVE, graph, with_column, without_column

ADDRESS = "table/air.t"
#: Four columns of plain values: id, name, point.x, point.y.
COLUMNS = (
    Column("id", parse_type("int64")),
    Column("name", parse_type("string")),
    Column("point", parse_type("struct<x: float32, y: string>")),
)
STATISTICS = TableStatistics(rows=1000, bytes=40_000)


def widened(name: str, to: str) -> c.WidenColumn:
    return c.WidenColumn(ADDRESS, (name,), parse_type("int8"), parse_type(to))


def converted(*path: str, to: str = "string") -> c.ConvertColumn:
    return c.ConvertColumn(ADDRESS, path, parse_type("int8"), parse_type(to))


def added(*path: str, kind: str) -> c.AddColumn:
    return c.AddColumn(ADDRESS, path, Column(path[-1], parse_type(kind)), None)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(widened("id", "int64"), Bytes(8_000), id="widened"),
        pytest.param(converted("id", to="decimal128(10, 2)"), Bytes(16_000), id="converted"),
        pytest.param(converted("id", to="bool"), Bytes(125), id="bits"),
        pytest.param(converted("id", to="timestamp[us, UTC]"), Bytes(8_000), id="instants"),
        pytest.param(converted("id", to="fixed_size_binary[20]"), Bytes(20_000), id="fixed-bytes"),
        pytest.param(converted("id", to="fixed_size_list<float32, 768>"), Bytes(3_072_000), id="larger-than-the-table"),
        pytest.param(converted("id", to="struct<a: int8, b: int16>"), Bytes(3_000), id="struct-of-fixed-width"),
        pytest.param(converted("id"), Bytes(10_000, about=True), id="text"),
        pytest.param(converted("id", to="list<int8>"), Bytes(10_000, about=True), id="list"),
        pytest.param(added("more", kind="int32"), Bytes(4_000), id="added"),
        pytest.param(added("more", kind="string"), Bytes(10_000, about=True), id="added-text"),
        pytest.param(converted("point", "x"), Bytes(20_000, about=True), id="field-writes-its-column"),
        pytest.param(c.DropColumn(ADDRESS, ("id",)), Bytes(8_000), id="dropped"),
        pytest.param(c.DropColumn(ADDRESS, ("name",)), Bytes(10_000, about=True), id="dropped-text"),
        pytest.param(c.DropColumn(ADDRESS, ("point", "x")), Bytes(4_000), id="dropped-field"),
        pytest.param(c.DropColumn(ADDRESS, ("renamed", "x")), Bytes(10_000, about=True), id="not-known"),
    ],
)
def test_a_column_is_as_large_as_its_values(change: c.AddColumn | c.DropColumn, expected: Bytes) -> None:
    assert column_bytes(change, STATISTICS, COLUMNS, COLUMNS) == expected


def test_what_is_lost_is_never_more_than_the_table() -> None:
    small = TableStatistics(rows=1000, bytes=500)
    assert column_bytes(c.DropColumn(ADDRESS, ("id",)), small, COLUMNS, COLUMNS) == Bytes(500)


def test_columns_of_one_table_add_up() -> None:
    without = without_column("delay", without_column("stops", FLIGHTS))
    plan = plan_of(without)
    sizes = [change.assessment.bytes for change in plan.changes if change.assessment.risk is Risk.DESTROYS]
    assert len(sizes) == 2
    assert extent(plan, Risk.DESTROYS).bytes == sum(sizes)
    whole = plan_of(with_column("flight", Column("flight", parse_type("int64"), nullable=False)))  # of its row key
    assert extent(whole, Risk.REWRITES).bytes == LIVE.tables[FLIGHTS.address].statistics.bytes


def plan_of(table: object) -> Plan:
    return make_plan("demo", graph(table), LIVE, owner="lakes/dev")  # type: ignore[arg-type]
