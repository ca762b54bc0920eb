"""Column declarations: nodes whose shape was checked to `Column`s, and the place of each of their properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from deployer.errors import Position
from deployer.specs.type_text import parse_type
from deployer.specs.types import Column, ColumnType, FixedSizeList, ListOf, MapOf, Struct
from deployer.specs.yaml import Node


@dataclass(slots=True)
class Declared:
    """A column and where its properties stand, by path from the column's name: `carrier`, `carrier.type`."""

    column: Column
    sources: dict[str, Position] = field(default_factory=dict)


def read_columns(nodes: Sequence[Node]) -> list[Declared]:
    """The columns of a list whose shape is sound."""
    return [_declared(node) for node in nodes]


def _declared(node: Node) -> Declared:
    sources: dict[str, Position] = {}
    return Declared(_column(node, "", sources), sources)


def _column(node: Node, prefix: str, sources: dict[str, Position]) -> Column:
    properties = _properties(node)
    name = str(properties["name"].value)
    return _named(node, name, prefix + name, sources)


def _named(node: Node, name: str, path: str, sources: dict[str, Position]) -> Column:
    properties = _properties(node)
    at = node.at
    sources[path] = at
    column_type: ColumnType | None = None
    nullable, description, renamed_from = True, "", None
    for key, child in properties.items():
        sources[f"{path}.{key}"] = child.key_at
        value = child.value
        match key:
            case "type":
                column_type = _type(child, path, sources)
            case "nullable":
                nullable = value is True
            case "description":
                description = str(value).strip()
            case "renamed_from":
                renamed_from = str(value)
            case _:
                pass
    assert column_type is not None  # noqa: S101
    return Column(name, column_type, nullable, description, renamed_from, at)


def _type(node: Node, path: str, sources: dict[str, Position]) -> ColumnType:
    if isinstance(node.value, str):
        return parse_type(node.value)
    (name, inner), *_ = _properties(node).items()
    match name:
        case "struct":
            assert isinstance(inner.value, list)  # noqa: S101
            return Struct(tuple(_column(field, f"{path}.", sources) for field in inner.value))
        case "list" | "large_list":
            return ListOf(_element(inner, "item", path, sources), large=name == "large_list")
        case "map":
            parts = _properties(inner)
            key = _element(parts["key"], "key", path, sources, nullable=False)
            return MapOf(key, _element(parts["value"], "value", path, sources))
        case _:
            parts = _properties(inner)
            size = parts["size"].value
            assert isinstance(size, (int, float))  # noqa: S101
            return FixedSizeList(_element(parts["item"], "item", path, sources), int(size))


def _element(node: Node, name: str, path: str, sources: dict[str, Position], nullable: bool = True) -> Column:
    if isinstance(node.value, dict) and "type" in node.value:
        column = _named(node, name, f"{path}.{name}", sources)
        return column if nullable else Column(name, column.type, False, column.description, None, column.at)
    sources[f"{path}.{name}"] = node.at
    return Column(name, _type(node, f"{path}.{name}", sources), nullable, at=node.at)


def _properties(node: Node) -> dict[str, Node]:
    assert isinstance(node.value, dict)  # noqa: S101
    return node.value
