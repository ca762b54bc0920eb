"""Views in specs: what they are read as, and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deployer.errors import InvalidSpecs
from deployer.plan.graph import build_graph
from deployer.plan.graph.build import Graph
from deployer.plan.graph.drawing import graph_as_mermaid, graph_as_svg
from deployer.plan.graph.lineage import lineage
from deployer.specs.editing.write import lake_to_yaml
from deployer.specs.loading.lake import load_lake
from deployer.specs.model import IndexSpec, Lake, TableSpec
from deployer.specs.serialized.specs import table_from_json, table_to_json
from deployer.specs.types.types import format_type
from deployer.specs.types.view import staleness_of, staleness_text, view_from_stored, view_to_stored

SPECS = """kind: Instance
name: demo
root: lakes/demo
services: { compact: {}, backfill: {}, refresh: {} }
---
kind: View
database: air
name: counts
query: SELECT carrier, count(*) AS n FROM air.late GROUP BY carrier
---
kind: View
database: air
name: late
description: Late flights.
query: |
  SELECT id, carrier, delay / 60 AS hours  -- of flights
  FROM air.flights WHERE delay > 15
columns: [{ name: hours, description: Hours. }]
row_keys: [id]
indexes: [{ kind: btree, columns: [carrier] }]
max_staleness: 90m
---
kind: Table
database: air
name: flights
columns:
  - { name: id, type: int64, nullable: false }
  - { name: carrier, type: string }
  - { name: delay, type: float64 }
---
kind: View
database: air
name: vectors
functions: { embed: { function: 0123456789abcdef, returns: "vector<float32, 4>" } }
query: SELECT id, embed(carrier) AS vector FROM air.flights
"""


def loaded(folder: Path, text: str = SPECS) -> Lake:
    (folder / "lake.yaml").write_text(text, encoding="utf-8")
    return load_lake(folder, Path("lake.yaml"))


def test_columns_come_from_the_query_with_what_the_view_says_of_them(tmp_path: Path) -> None:
    late = loaded(tmp_path).table("air.late")
    assert late is not None and late.view is not None
    assert [(each.name, format_type(each.type), each.nullable, each.description) for each in late.columns] == [
        ("id", "int64", False, ""),
        ("carrier", "string", True, ""),
        ("hours", "float64", True, "Hours."),
    ]
    assert late.view.max_staleness == 90 * 60_000
    assert late.view.reads == {"air.flights": ("carrier", "delay", "id")}
    assert late.view.lineage["hours"] == (("air.flights", "delay"),)


def test_views_are_planned_after_those_that_they_read(tmp_path: Path) -> None:
    counts = loaded(tmp_path).table("air.counts")
    assert counts is not None
    assert [each.name for each in counts.columns] == ["carrier", "n"]


def test_tables_and_views_have_the_services_that_are_for_them(tmp_path: Path) -> None:
    found = {each.name: {service.kind for service in each.services} for each in loaded(tmp_path).tables}
    assert found == {
        "flights": {"COMPACT", "BACKFILL"},
        **{name: {"COMPACT", "REFRESH"} for name in ("late", "counts", "vectors")},
    }


def test_views_come_back_from_yaml_json_and_the_state(tmp_path: Path) -> None:
    lake = loaded(tmp_path)
    assert sorted(loaded(tmp_path, lake_to_yaml(lake)).tables, key=lambda each: each.name) == sorted(
        lake.tables, key=lambda each: each.name
    )
    for table in lake.tables:
        assert table_from_json(table_to_json(table)) == table
        if table.view is not None:
            assert view_from_stored(view_to_stored(table.view)) == table.view


def test_the_graph_has_views_after_their_tables(tmp_path: Path) -> None:
    graph = build_graph(loaded(tmp_path))
    assert [(node.address, node.kind) for node in graph.nodes.values()] == [
        ("instance/demo", "Instance"),
        ("table/air.flights", "Table"),
        ("table/air.late", "View"),
        ("table/air.vectors", "View"),
        ("table/air.counts", "View"),
    ]
    assert graph.nodes["table/air.counts"].depends_on == ("instance/demo", "table/air.late")
    assert 'class="view"' in graph_as_svg(graph)
    assert 'n2 --> |"carrier → carrier"| n4' in graph_as_mermaid(graph)


def test_the_graph_has_the_lineage_of_columns_up_to_indexes(tmp_path: Path) -> None:
    graph = build_graph(loaded(tmp_path))
    late = graph.nodes["table/air.late"].spec
    assert isinstance(late, TableSpec)
    indexed = replace(late, indexes=(IndexSpec("by_hour", ("hours",), "btree"), IndexSpec("by_id", ("id",), "btree")))
    assert lineage(indexed, "air.flights") == ("id → id → by_id", "carrier → carrier", "delay → hours → by_hour")
    assert lineage(indexed, "air.other") == ()
    drawn = Graph({**graph.nodes, late.address: replace(graph.nodes[late.address], spec=indexed)})
    assert "delay → hours → by_hour" in graph_as_mermaid(drawn)
    assert "delay → hours → by_hour" in graph_as_svg(drawn)
    many = replace(late, columns=tuple(replace(late.columns[0], name=f"c{each}") for each in range(40)))
    assert late.view is not None
    every = {f"c{each}": (("air.flights", "id"),) for each in range(40)}
    many = replace(many, view=replace(late.view, lineage=every))
    wide = Graph({**graph.nodes, late.address: replace(graph.nodes[late.address], spec=many)})
    assert "29 more columns" in graph_as_mermaid(wide) and "c11" not in graph_as_mermaid(wide)
    assert "id → c39" in graph_as_svg(wide)


def test_all_problems_of_views_come_at_once(tmp_path: Path) -> None:
    wrong = SPECS.replace("FROM air.late", "FROM air.lat").replace("carrier, delay / 60", "carier, delay / 60")
    wrong = wrong.replace("90m", "0s").replace("embed(carrier)", "embd(carrier)")
    with pytest.raises(InvalidSpecs) as caught:
        loaded(tmp_path, wrong)
    assert [(problem.at.line, problem.rule) for problem in caught.value.problems] == [
        (9, "view-source"),
        (15, "view-query"),
        (21, "view-staleness"),
        (34, "view-function"),
        (35, "view-query"),
    ]


TIMES = {"1h": 3_600_000, "90s": 90_000, "7d": 7 * 86_400_000, "1500ms": 1500, "90m": 5_400_000}


@pytest.mark.parametrize(("text", "milliseconds"), TIMES.items())
def test_times_are_written_as_they_are_read(text: str, milliseconds: int) -> None:
    assert staleness_of(text) == milliseconds
    assert staleness_text(milliseconds) == text
