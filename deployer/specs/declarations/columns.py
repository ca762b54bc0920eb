"""Column declarations: nodes whose shape was checked to `Column`s, and the place of each of their properties."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from deployer.errors import Position
from deployer.specs.declarations.computed import computed_of_node
from deployer.specs.rules import Rule
from deployer.specs.types.column_names import MAX_SOURCE, is_source
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column, ColumnType, FixedSizeList, ListOf, MapOf, Struct, children
from deployer.specs.yaml.nodes import Node


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column and the node that declares it."""

    column: Column
    node: Node

    @property
    def at(self) -> Position:
        return self.node.at

    @property
    def type_at(self) -> Position:
        return _properties(self.node)["type"].at

    def place_of(self, name: str) -> Position:
        """Returns the position of the value of one of its properties."""
        return _properties(self.node)[name].at

    def node_of(self, name: str) -> Node | None:
        """Returns the value of one of its properties; None where it does not have it."""
        return _properties(self.node).get(name)

    def places(self) -> Iterator[tuple[str, Position]]:
        """Returns the places of the column and its properties, by path: `carrier`, `carrier.type`,
        `trip.length.type`."""
        return _places(self.node, self.column.name)


class Places(Mapping[str, Position]):
    """Positions by path, which are found only when they are used: a large lake has hundreds of thousands, and most runs
    use none."""

    def __init__(self, find: Callable[[], Mapping[str, Position]]) -> None:
        self._find = find
        self._found: Mapping[str, Position] | None = None

    def _places(self) -> Mapping[str, Position]:
        if self._found is None:
            self._found = self._find()
        return self._found

    def __getitem__(self, path: str) -> Position:
        return self._places()[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places())

    def __len__(self) -> int:
        return len(self._places())


def read_columns(nodes: Sequence[Node]) -> list[DeclaredColumn]:
    """Returns the columns of a list whose shape is valid."""
    return [DeclaredColumn(_column(node), node) for node in nodes]


def _column(node: Node) -> Column:
    return _named(node, str(_properties(node)["name"].value))


def _named(node: Node, name: str) -> Column:
    properties = _properties(node)
    nullable, description, renamed_from, default, using, source, computed, sensitive = (
        properties.get("nullable"),
        properties.get("description"),
        properties.get("renamed_from"),
        properties.get("default"),
        properties.get("using"),
        properties.get("source"),
        properties.get("computed"),
        properties.get("sensitive"),
    )
    return Column(
        name=name,
        type=column_type_of(properties["type"]),
        nullable=nullable is None or nullable.value is True,
        description=str(description.value).strip() if description else "",
        renamed_from=str(renamed_from.value) if renamed_from else None,
        at=node.at,
        default=str(default.value).strip() if default else "",
        using=str(using.value).strip() if using else None,
        source=str(source.value) if source else None,
        computed=computed_of_node(computed) if computed else None,
        sensitive=sensitive is not None and sensitive.value is True,
    )


def column_type_of(node: Node) -> ColumnType:
    """Returns the type that a node declares, as text or in the long form."""
    if isinstance(node.value, str):
        return parse_type(node.value)
    name, inner = _nested(node)
    match name:
        case "struct":
            return Struct(tuple(_column(field) for field in _items(inner)))
        case "list" | "large_list":
            return ListOf(_element(inner, "item"), large=name == "large_list")
        case "map":
            parts = _properties(inner)
            return MapOf(replace(_element(parts["key"], "key"), nullable=False), _element(parts["value"], "value"))
        case _:
            parts = _properties(inner)
            size = parts["size"].value
            assert isinstance(size, (int, float))  # noqa: S101
            return FixedSizeList(_element(parts["item"], "item"), int(size))


def _element(node: Node, name: str) -> Column:
    return _named(node, name) if _is_element(node) else Column(name, column_type_of(node), at=node.at)


def _is_element(node: Node) -> bool:
    return isinstance(node.value, dict) and "type" in node.value


def _places(node: Node, path: str) -> Iterator[tuple[str, Position]]:
    yield path, node.at
    for key, child in _properties(node).items():
        yield f"{path}.{key}", child.key_at
    yield from _type_places(_properties(node)["type"], path)


def _type_places(node: Node, path: str) -> Iterator[tuple[str, Position]]:
    if isinstance(node.value, str):
        return
    name, inner = _nested(node)
    if name == "struct":
        for field in _items(inner):
            yield from _places(field, f"{path}.{_properties(field)['name'].value}")
        return
    parts = {"item": inner} if name in ("list", "large_list") else _properties(inner)
    for part, child in parts.items():
        if _is_element(child):
            yield from _places(child, f"{path}.{part}")
        elif part != "size":
            yield f"{path}.{part}", child.at
            yield from _type_places(child, f"{path}.{part}")


def _nested(node: Node) -> tuple[str, Node]:
    return next(iter(_properties(node).items()))


def _items(node: Node) -> Sequence[Node]:
    assert isinstance(node.value, list)  # noqa: S101
    return node.value


def _properties(node: Node) -> dict[str, Node]:
    assert isinstance(node.value, dict)  # noqa: S101
    return node.value


Report = Callable[[Position, Rule, str, str], None]


def check_sources(columns: Sequence[DeclaredColumn], report: Report) -> None:
    """Reports ambiguous sources, where a field of a file could fill several columns, and sources that no file can
    have."""
    by_name = {declared.column.name: declared.column for declared in columns}
    first: dict[str, str] = {}
    for declared in columns:
        column = declared.column
        _check_fields(column, column, report)
        source = column.source
        if source is None:
            continue
        at = declared.place_of("source")
        other = by_name.get(source)
        if source in first:
            what = f"columns `{first[source]}` and `{column.name}` have the same source {source!r}"
            report(at, Rule.SOURCE_REPEATED, what, "remove `source:` of one of them")
        elif other is not None and other.source is None and other.name != column.name:
            what = f"the source {source!r} of column `{column.name}` is the name of another column"
            report(at, Rule.SOURCE_OF_ANOTHER, what, f"give column `{other.name}` a `source:` too, or change this one")
        if len(source) <= MAX_SOURCE and not is_source(source):
            what = f"the source {source!r} of column `{column.name}` has a control character"
            report(at, Rule.SOURCE_CHARACTERS, what, "rename the field in the files, and write its new name here")
        first.setdefault(source, column.name)


def _check_fields(column: Column, inside: Column, report: Report) -> None:
    """Reports sources of fields in structs, which are found by their own names."""
    for field in children(inside.type):
        if field.source is not None and field.at is not None:
            what = f"`source` of a field inside column `{column.name}`, which only columns can have"
            report(field.at, Rule.SOURCE_OF_A_FIELD, what, "remove it, and give the field the name that files have")
        _check_fields(column, field, report)
