"""The `partitions` of a table: its split points, which have the order and types of its row keys, and the leaf limit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import starmap
from typing import Any

from deployer.errors import Position
from deployer.specs.model import KeyValue
from deployer.specs.rules import Rule
from deployer.specs.sources.files import Document
from deployer.specs.types.types import Column
from deployer.specs.values.key_times import BadValue
from deployer.specs.values.keys import is_key_type, order_of, read_key_value
from deployer.specs.yaml.nodes import Node

Report = Callable[[Position, Rule, str, str], None]

_ORDERED_TEXT = re.compile(
    r"[A-Za-z]|\d{4}-\d\d-\d\d"
)  #: the beginning of texts whose order does not depend on the type


def read_split_points(
    document: Document, keys: Sequence[Column | None], label: str, report: Report
) -> tuple[tuple[KeyValue, ...], ...]:
    """Returns the valid split points of a table; `keys` are its row keys, None where a column is unknown or has
    problems."""
    partitions = document.valid("partitions")
    if partitions is None or not isinstance(partitions.value, dict) or "row_keys" in document.invalid:
        return ()
    nodes = _items(partitions.value.get("split_points"))
    if nodes and not keys:
        what = f"{label} has split points and no row keys"
        report(nodes[0].at, Rule.SPLIT_WITHOUT_KEYS, what, "add `row_keys:`, or remove the split points")
        return ()
    points: list[tuple[KeyValue, ...]] = []
    before: tuple[Any, ...] | None = None
    for node in nodes:
        point = _split_point(node, keys, report)
        if point is None:
            continue
        order = tuple(starmap(_order, zip(keys, point, strict=False)))
        if before is not None and _are_in_order(before, order) is False:
            _report_order(node, order == before, report)
            continue
        before = order
        points.append(point)
    return tuple(points)


def _order(column: Column | None, value: KeyValue) -> object:
    """Returns a comparable form of the value; None where the key's type is unknown and the order depends on it."""
    if column is not None and is_key_type(column.type):
        return order_of(column, value)
    if isinstance(value, int | float):
        return value
    return value if isinstance(value, str) and _ORDERED_TEXT.match(value) else None


def _are_in_order(before: Sequence[Any], after: Sequence[Any]) -> bool | None:
    """Returns whether a split point is above the previous one; None where that is unknown."""
    for one, other in zip(before, after, strict=False):
        if one is None or other is None or isinstance(one, str) != isinstance(other, str):
            return None
        if one != other:
            return bool(one < other)
    return len(before) < len(after)


def _report_order(node: Node, same: bool, report: Report) -> None:
    if same:
        report(node.at, Rule.SPLIT_REPEATED, "this split point repeats the one before it", "remove it")
    else:
        what = "this split point lies below the one before it"
        report(node.at, Rule.SPLIT_ORDER, what, "write split points in ascending order")


def _split_point(node: Node, keys: Sequence[Column | None], report: Report) -> tuple[KeyValue, ...] | None:
    """Returns the split point; None when a problem was reported. Values of unknown keys, or keys with problems, are not
    converted."""
    values = node.value if isinstance(node.value, list) else [node]
    if not values:
        report(node.at, Rule.SPLIT_EMPTY, "this split point has no values", "write a value of the first row key")
        return None
    if len(values) > len(keys):
        what = f"this split point has {len(values)} values for {len(keys)} row key{'s' if len(keys) > 1 else ''}"
        report(node.at, Rule.SPLIT_TOO_LONG, what, f"write at most {len(keys)}")
        return None
    point: list[KeyValue] = []
    valid = True
    for value, column in zip(values, keys, strict=False):
        if column is None or not is_key_type(column.type):
            point.append(value.value if isinstance(value.value, bool | int | float | str) else "")
            continue
        read = read_key_value(column, value.value)
        if isinstance(read, BadValue):
            report(value.at, read.rule, f"{read.what} (row key `{column.name}`)", read.remedy)
            valid = False
        else:
            point.append(read)
    return tuple(point) if valid else None


def read_leaf_limit(document: Document, label: str, report: Report) -> int | None:
    """Returns the maximum number of rows of a leaf; None without a limit, and if the limit is invalid."""
    partitions = document.valid("partitions")
    options = partitions.value if partitions is not None and isinstance(partitions.value, dict) else {}
    node = options.get("max_rows_per_leaf")
    if node is None or not isinstance(node.value, (int, float)):
        return None
    if not document.get("row_keys") and "row_keys" not in document.invalid:
        what = f"{label} has a limit for its leaves and no row keys by which they could be split"
        report(node.at, Rule.SPLIT_WITHOUT_KEYS, what, "add `row_keys:`, or remove `max_rows_per_leaf`")
        return None
    return int(node.value)


def _items(node: Node | None) -> Sequence[Node]:
    return node.value if node is not None and isinstance(node.value, list) else ()
