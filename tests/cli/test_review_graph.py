"""The resource graph as Mermaid and as a drawing: whole, escaped, without overlaps however many tables there are."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from deployer.plan.graph.build import Graph, Node
from deployer.plan.graph.drawing import _BOX_HEIGHT, graph_as_mermaid, graph_as_svg, layers, place
from deployer.specs.model import TableSpec
from deployer.specs.types.types import Column, Scalar
from tests.cli.conftest import Deployer
from tests.plan.lakes import EMPTY, FLIGHTS, INSTANCE, graph

HOSTILE = 'a"b<c>&d [x] --> end; %% click n0 href "javascript:x" \x00 \u202e 名前'


def tables(number: int) -> Graph:
    return graph(*(replace(FLIGHTS, name=f"flights_{index}") for index in range(number)))


def chain(number: int) -> Graph:
    """Tables that each need all before them."""
    specs = [replace(EMPTY, name=f"t{index}") for index in range(number)]
    nodes = {
        spec.address: Node(spec, tuple(each.address for each in specs[:index])) for index, spec in enumerate(specs)
    }
    return Graph(nodes)


GRAPHS = {
    "none": Graph({}),
    "instance": graph(),
    "five": tables(5),
    "two_hundred": tables(200),
    "chain": chain(6),
    "hostile": graph(TableSpec("air", HOSTILE, (Column(HOSTILE, Scalar("int32")),), row_keys=(HOSTILE * 9,))),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_boxes_never_overlap_and_lie_inside_the_drawing(name: str) -> None:
    drawn = GRAPHS[name]
    boxes = list(place(drawn).values())
    assert len(boxes) == len(drawn.nodes)
    for one, other in itertools.combinations(boxes, 2):
        apart = one.x + one.width <= other.x or other.x + other.width <= one.x
        assert apart or abs(one.y - other.y) >= _BOX_HEIGHT
    root = ElementTree.fromstring(graph_as_svg(drawn))  # noqa: S314 -- our own
    for box in boxes:
        assert 0 <= box.x <= box.x + box.width <= float(root.attrib["width"])
        assert 0 <= box.y <= box.y + _BOX_HEIGHT <= float(root.attrib["height"])


@pytest.mark.parametrize("name", GRAPHS)
def test_every_node_and_edge_is_drawn_once(name: str) -> None:
    drawn = GRAPHS[name]
    edges = sum(len(node.depends_on) for node in drawn.nodes.values())
    root = ElementTree.fromstring(graph_as_svg(drawn))  # noqa: S314
    found = list(root.iter())
    assert sum(each.get("class") == "edge" for each in found) == edges
    assert sum(each.get("class") == "box" for each in found) == len(drawn.nodes)
    mermaid = graph_as_mermaid(drawn)
    assert mermaid.count(" --> ") == edges
    assert mermaid.count('["') == len(drawn.nodes)


def test_dependencies_are_drawn_left_of_what_needs_them() -> None:
    boxes = place(GRAPHS["chain"])
    assert [len(layer) for layer in layers(GRAPHS["chain"])] == [1] * 6
    assert sorted(boxes.values(), key=lambda box: box.x) == list(boxes.values())


def test_hostile_names_are_only_labels() -> None:
    svg = graph_as_svg(GRAPHS["hostile"])
    assert "<c>" not in svg
    assert "\u202e" not in svg
    mermaid = graph_as_mermaid(GRAPHS["hostile"])
    assert not set('"<>&;[]%') & set(mermaid.splitlines()[2].removeprefix('  n1["').removesuffix('"]').replace(";", ""))
    assert "名前" in mermaid


@pytest.mark.parametrize("name", ["mermaid", "svg"])
def test_the_command_prints_or_writes_without_live_state(name: str, project: Path, deployer: Deployer) -> None:
    printed = deployer("graph", "--format", name)
    assert printed.code == 0
    assert "air.flights" in printed.out
    assert deployer("graph", "--format", name, "--output", "graph.out").code == 0
    assert (project / "graph.out").read_text(encoding="utf-8") == printed.out
    assert not (project / "lakes").exists()
    assert deployer("graph", "--output", "no/such/folder").code == 1


def test_the_instance_is_what_tables_need() -> None:
    assert GRAPHS["five"].nodes[f"table/{FLIGHTS.database}.flights_0"].depends_on == (INSTANCE.address,)
