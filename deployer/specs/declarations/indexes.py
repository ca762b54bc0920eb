"""Index declarations: reads the `indexes` of a table as `IndexSpec`s, checks their rules, and converts them to JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from deployer.errors import Position
from deployer.specs.model import IndexSpec
from deployer.specs.rules import Rule
from deployer.specs.schema.index_kinds import declared_parameters, parameter_fault, type_remedy
from deployer.specs.schema.services import plain
from deployer.specs.types.types import Column, Struct, format_type
from deployer.specs.validation.plain_values import text, texts
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest

Report = Callable[[Position, Rule, str, str], None]

_OWN = ("kind", "columns", "name")


def read_indexes(
    node: Node | None, columns: Sequence[Column], lacks: Callable[[str], bool], report: Report
) -> tuple[IndexSpec, ...]:
    """Returns the valid indexes of a list whose shape is valid, by name; `lacks` returns whether the table has no
    column of a name."""
    indexes: dict[str, IndexSpec] = {}
    first_of: dict[str, str] = {}
    for item in _items(node):
        properties = _properties(item)
        index = _index(properties)
        at = (properties.get("name") or item).at
        if (first := first_of.setdefault(index.name.lower(), index.name)) != index.name or index.name in indexes:
            what = f"a second index `{index.name}`"
            what = what if first == index.name else f"index `{index.name}` differs only in case from `{first}`"
            report(at, Rule.DUPLICATE_INDEX, what, "give one of them another `name`")
            continue
        indexes[index.name] = index
        if len(index.columns) > 1:
            what = f"index `{index.name}` has {len(index.columns)} columns, and Lance's indexes have one"
            report(_items(properties["columns"])[1].at, Rule.INDEX_COLUMNS, what, "declare an index for each column")
            continue
        _check_column(index, properties, columns, lacks, report)
    return tuple(indexes[name] for name in sorted(indexes))


def _check_column(
    index: IndexSpec,
    properties: Mapping[str, Node],
    columns: Sequence[Column],
    lacks: Callable[[str], bool],
    report: Report,
) -> None:
    [named] = _items(properties["columns"])
    column = find_column(columns, index.columns[0])
    if column is None:
        if is_unknown(columns, index.columns[0], lacks):
            near = nearest(index.columns[0], tuple(column_paths(columns)))
            remedy = f"did you mean {near}?" if near else "name one of the table's columns"
            what = f"no column `{index.columns[0]}`, which index `{index.name}` names"
            report(named.at, Rule.UNKNOWN_INDEX_COLUMN, what, remedy)
        return
    if unreadable := unreadable_field(index.columns[0]):
        what = f"Lance cannot index a field with the name `{unreadable}` inside of a struct"
        remedy = "give the field a name that starts with a letter, or index a column that is not in a struct"
        report(named.at, Rule.INDEX_COLUMNS, what, remedy)
    elif misfit := type_remedy(index.kind, column.type):
        what = (
            f"column `{index.columns[0]}` of type {format_type(column.type)} cannot have an index of kind {index.kind}"
        )
        report(properties["kind"].at, Rule.INDEX_TYPE, what, misfit)
    elif fault := parameter_fault(index.kind, index.parameters, column.type):
        parameter, what, remedy = fault
        report((properties.get(parameter) or properties["kind"]).at, Rule.INDEX_PARAMETER, what, remedy)
    _check_pieces(index, properties, report)


def unreadable_field(path: str) -> str | None:
    """Returns the first field in a column's path whose name prevents Lance from building an index."""
    return next(filter(_unreadable, path.split(".")[1:]), None)


def _unreadable(name: str) -> bool:
    """Returns whether pylance 14 reads the name of a field as a number or a literal when it builds an index on it."""
    is_word = all(character.isalnum() or character == "_" for character in name)
    return is_word and (name[0].isnumeric() or name.lower() in ("null", "true", "false"))


def _check_pieces(index: IndexSpec, properties: Mapping[str, Node], report: Report) -> None:
    shortest, longest = (index.parameters.get(f"{end}_ngram_length", 3) for end in ("min", "max"))
    if isinstance(shortest, int) and isinstance(longest, int) and shortest > longest:
        node = properties.get("min_ngram_length") or properties["max_ngram_length"]
        what = f"the shortest piece has {shortest} characters and the longest {longest}"
        report(node.at, Rule.INDEX_PARAMETER, what, "make `max_ngram_length` at least `min_ngram_length`")


def find_column(columns: Sequence[Column], path: str) -> Column | None:
    """Returns the column, or field of structs, of that dotted path."""
    first, _, rest = path.partition(".")
    column = next((each for each in columns if each.name == first), None)
    if column is None or not rest:
        return column
    return find_column(column.type.fields, rest) if isinstance(column.type, Struct) else None


def is_unknown(columns: Sequence[Column], path: str, lacks: Callable[[str], bool]) -> bool:
    """Returns whether a path that `find_column` does not find is certainly wrong, and not the path of a column with
    problems."""
    first = path.partition(".")[0]
    return lacks(first) or any(column.name == first for column in columns)


def column_paths(columns: Sequence[Column], prefix: str = "") -> Iterator[str]:
    """Yields the dotted paths of columns and of fields of structs in them."""
    for column in columns:
        yield prefix + column.name
        if isinstance(column.type, Struct):
            yield from column_paths(column.type.fields, f"{prefix}{column.name}.")


def index_places(node: Node | None) -> Iterator[tuple[str, Position]]:
    """Yields the places of indexes and their properties, by path: `embedding_ivf_pq`, `embedding_ivf_pq.metric`."""
    for item in _items(node):
        name = _index(_properties(item)).name
        yield name, item.at
        for key, child in _properties(item).items():
            yield f"{name}.{key}", child.key_at


def _index(properties: Mapping[str, Node]) -> IndexSpec:
    kind = str(properties["kind"].value)
    columns = tuple(str(node.value) for node in _items(properties["columns"]))
    name = properties.get("name")
    values = {key: _plain(node) for key, node in properties.items() if key not in _OWN}
    return IndexSpec(
        str(name.value) if name else default_name(columns, kind), columns, kind, declared_parameters(kind, values)
    )


def default_name(columns: Sequence[str], kind: str) -> str:
    """Returns the default name of an index."""
    return "_".join((*columns, kind)).replace(".", "_")


def _plain(node: Node) -> Any:
    if isinstance(node.value, list):
        return [_plain(item) for item in node.value]
    return int(node.value) if isinstance(node.value, float) else node.value


def _items(node: Node | None) -> Sequence[Node]:
    return node.value if node is not None and isinstance(node.value, list) else ()


def _properties(node: Node) -> Mapping[str, Node]:
    assert isinstance(node.value, dict)  # noqa: S101
    return node.value


def index_to_json(index: IndexSpec) -> dict[str, Any]:
    """Returns an index as JSON, in the same form as in YAML, with its name."""
    return {"name": index.name, "columns": list(index.columns), "kind": index.kind, **index.parameters}


def index_from_json(form: Mapping[str, Any]) -> IndexSpec:
    """Returns the inverse of `index_to_json`; what equals a default is left out, whole doubles become integers.

    Raises InvalidInput for another form.
    """
    values = {key: plain(value) for key, value in form.items() if key not in _OWN}
    kind, columns = text(form, "kind"), texts(form, "columns")
    name = text(form, "name", "") or default_name(columns, kind)
    return IndexSpec(name, columns, kind, declared_parameters(kind, values))
