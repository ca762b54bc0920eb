"""The resource graph as text in Mermaid's language, and as an SVG drawing: layers from left to right, in several
columns where a layer is too tall.

A layer holds the nodes whose longest chain of dependencies has the same length. Edges leave to the right, run in lanes
between the columns, and enter from the left, so that no edge crosses a box.

An edge to a view has the lineage of the view's columns: as a label in Mermaid, as a title in SVG.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from html import escape

from deployer.plan.graph.build import Graph, Node
from deployer.plan.graph.lineage import lineage
from deployer.platform.text.visible import visible
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.specs.types.column_names import listed
from deployer.specs.types.dataset import DatasetSpec

_BOX_HEIGHT, _ROW_GAP, _COLUMN_GAP, _MARGIN, _LANE = 46, 14, 72, 28, 22
_CHARACTER, _PADDING, _NARROWEST, _WIDEST = 7.4, 28, 130, 380  # pixels; a character of the widest text
MOST_LINES = 12  #: at most this many lines are in the label of an edge
_COLUMN_ROWS = 20  # a column may always be as tall as this

_STYLE = """
:root { color-scheme: light dark; }
.page { fill: #ffffff; } .box { fill: #f3f6fd; stroke: #3157d5; } .instance .box { fill: #3157d5; }
.view .box { stroke-dasharray: 5 3; } .dataset .box { stroke-dasharray: 1 3; }
.name { fill: #1a2233; font-weight: 600; } .about { fill: #5b6579; }
.instance .name, .instance .about { fill: #ffffff; }
.edge { fill: none; stroke: #9aa7c4; stroke-width: 1.4; } .tip { fill: #9aa7c4; }
text { font: 12.5px system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; } .about { font-size: 11px; }
@media (prefers-color-scheme: dark) {
  .page { fill: #10141c; } .box { fill: #1b2333; stroke: #8aa6ff; } .instance .box { fill: #2b4194; }
  .name { fill: #e6eaf2; } .about { fill: #a3adc0; } .edge { stroke: #55627d; } .tip { fill: #55627d; }
}
"""


@dataclass(frozen=True, slots=True)
class Box:
    """A node's place: `x` and `y` of its upper left corner, in pixels."""

    address: str
    x: float
    y: float
    width: float
    column: int

    @property
    def middle(self) -> float:
        return self.y + _BOX_HEIGHT / 2


def layers(graph: Graph) -> list[list[str]]:
    """Returns the addresses by the length of their longest chain of dependencies, each layer in the graph's order."""
    depth: dict[str, int] = {}
    for address, node in graph.nodes.items():  # dependencies come first
        depth[address] = 1 + max((depth[needed] for needed in node.depends_on if needed in depth), default=-1)
    found: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for address, level in depth.items():
        found[level].append(address)
    return found


def place(graph: Graph) -> dict[str, Box]:
    """Returns where each node is drawn; boxes never overlap."""
    columns: list[list[str]] = []
    for layer in layers(graph):
        number = -(-len(layer) // max(_COLUMN_ROWS, math.isqrt(3 * len(layer))))  # never much wider than tall
        rows = -(-len(layer) // number)
        columns += [layer[start : start + rows] for start in range(0, len(layer), rows)]
    tallest = max((len(column) for column in columns), default=0)
    boxes: dict[str, Box] = {}
    x = float(_MARGIN)
    for index, column in enumerate(columns):
        width = max(_width(graph.nodes[address]) for address in column)
        y = _MARGIN + _LANE + (tallest - len(column)) * (_BOX_HEIGHT + _ROW_GAP) / 2
        for address in column:
            boxes[address] = Box(address, x, y, width, index)
            y += _BOX_HEIGHT + _ROW_GAP
        x += width + _COLUMN_GAP
    return boxes


def graph_as_svg(graph: Graph) -> str:
    """Returns one self-contained SVG file; every name in it is escaped."""
    boxes = place(graph)
    width = max((box.x + box.width for box in boxes.values()), default=0) + _MARGIN
    height = max((box.y + _BOX_HEIGHT for box in boxes.values()), default=0) + _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img" aria-label="Resource graph">',
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{width:g}" height="{height:g}"/>',
    ]
    for node in graph.nodes.values():
        lines += [
            _edge(boxes[needed], boxes[node.address], _lineage(graph.nodes[needed], node))
            for needed in node.depends_on
            if needed in boxes
        ]
    lines += [_box(box, graph.nodes[address]) for address, box in boxes.items()]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _lineage(needed: Node, node: Node) -> tuple[str, ...]:
    """Returns the lineage of an edge from a table to a view; empty for other edges."""
    if not isinstance(needed.spec, TableSpec) or not isinstance(node.spec, TableSpec):
        return ()
    return lineage(node.spec, needed.spec.full_name)


def _edge(start: Box, end: Box, about: tuple[str, ...]) -> str:
    """Draws a line from the right of `start` to the left of `end`; over the top lane when other columns lie between.
    Its title has the lines of `about`."""
    x, y, to_x, to_y = start.x + start.width, start.middle, end.x - 6, end.middle
    turn = end.x - _COLUMN_GAP / 2
    if end.column == start.column + 1:
        path = f"M{x:g} {y:g} C{turn:g} {y:g} {turn:g} {to_y:g} {to_x:g} {to_y:g}"
    else:
        near = x + _COLUMN_GAP / 2
        path = f"M{x:g} {y:g} H{near:g} V{_MARGIN:g} H{turn:g} V{to_y:g} H{to_x:g}"
    tip = f"M{to_x - 1:g} {to_y - 4:g} L{end.x:g} {to_y:g} L{to_x - 1:g} {to_y + 4:g} Z"
    drawn = f'<path class="edge" d="{path}"/><path class="tip" d="{tip}"/>'
    return f"<g><title>{'&#10;'.join(map(_safe, about))}</title>{drawn}</g>" if about else drawn


def _box(box: Box, node: Node) -> str:
    name, about = _texts(node)
    kind = node.kind.lower()
    fits = int((box.width - _PADDING) / _CHARACTER)
    return (
        f'<g class="{kind}"><title>{_safe(node.address)}</title>'
        f'<rect class="box" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{_BOX_HEIGHT}" rx="8"/>'
        f'<text class="name" x="{box.x + 14:g}" y="{box.y + 20:g}">{_safe(_cut(name, fits))}</text>'
        f'<text class="about" x="{box.x + 14:g}" y="{box.y + 36:g}">{_safe(_cut(about, int(fits * 1.15)))}</text></g>'
    )


def _texts(node: Node) -> tuple[str, str]:
    match node.spec:
        case InstanceSpec(name=name, root=root):
            return name, root
        case DatasetSpec() as dataset:
            number = len(dataset.recordings)
            indexes = len(dataset.search_indexes)
            searched = f", {indexes} search index{'' if indexes == 1 else 'es'}" if indexes else ""
            return dataset.name, f"dataset, {number} source{'' if number == 1 else 's'}{searched}"
        case TableSpec() as table:
            keys = f", keys {listed(table.row_keys)}" if table.row_keys else ""
            number = len(table.columns)
            view = "view, " if table.view is not None else ""
            return table.full_name, f"{view}{number} column{'' if number == 1 else 's'}{keys}"


def _width(node: Node) -> float:
    longest = max(_cells(text) for text in _texts(node))
    return min(max(longest * _CHARACTER + _PADDING, _NARROWEST), _WIDEST)


def _cells(text: str) -> int:
    """Returns the number of characters; wide ones of East Asia count twice."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _cut(text: str, cells: int) -> str:
    if _cells(text) <= cells:
        return text
    kept, left = [], cells - 1
    for character in text:
        left -= _cells(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def _safe(text: str) -> str:
    """Returns text for XML, which does not allow control characters, even escaped."""
    return escape(visible(text))


def graph_as_mermaid(graph: Graph) -> str:
    """Returns a flowchart from dependencies to dependents. Nodes are numbered, so names are only labels.

    Labels of edges have at most MOST_LINES lines.
    """
    ids = {address: f"n{number}" for number, address in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for address, name in ids.items():
        lines.append(f'  {name}["{_mermaid_label(address)}"]')
    for address, node in graph.nodes.items():
        for needed in node.depends_on:
            if needed in ids:
                about = _mermaid_lines(_lineage(graph.nodes[needed], node))
                label = f'|"{about}"| ' if about else ""
                lines.append(f"  {ids[needed]} --> {label}{ids[address]}")
    return "\n".join(lines) + "\n"


def _mermaid_lines(about: tuple[str, ...]) -> str:
    more = len(about) - MOST_LINES
    shown = about if more <= 0 else (*about[: MOST_LINES - 1], f"{more + 1} more columns")
    return "<br/>".join(map(_mermaid_label, shown))


def _mermaid_label(text: str) -> str:
    """Returns a label without meaning in Mermaid and HTML: all characters except letters, digits and a few signs are
    entity numbers."""
    return "".join(
        character if character.isalnum() or character in " /_-.→" else f"#{ord(character)};" for character in text
    )
