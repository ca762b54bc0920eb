"""Checks the shape of documents against the JSON Schema that `deployer schema` prints, and reports all problems at
once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from deployer.errors import Problem
from deployer.specs.rules import Rule
from deployer.specs.schema.document import KINDS
from deployer.specs.validation.branches import Schema, resolved_schema
from deployer.specs.validation.faults import Shape, definition_shape
from deployer.specs.validation.messages import shape_problems
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import node_text, one_of


def check_shape(document: Node, problems: list[Problem]) -> tuple[str, frozenset[str]] | None:
    """Adds the document's problems to `problems`. Returns its kind and its properties that cannot be used unchanged,
    which include missing and likely misspelt ones; None where the kind is unknown."""
    if not isinstance(document.value, dict):
        what = f"a document is {node_text(document)} and should be a mapping"
        remedy = f"start it with `kind:` and one of {', '.join(KINDS)}"
        problems.append(Problem(document.at, what, remedy, Rule.WRONG_TYPE))
        return None
    kind = _kind(document, document.value, problems)
    if kind is None:
        return None
    found, invalid = shape_problems(definition_shape(kind), document, "the document", owner=f"this {kind}")
    problems += found
    return kind, invalid


def _kind(document: Node, properties: Mapping[str, Node], problems: list[Problem]) -> str | None:
    node = properties.get("kind")
    if node is None:
        if "include" in properties:
            return "Include"
        near = next((key for key in properties if key.lower() in ("kind", "type", "knd", "kinds")), None)
        if near:
            problem = Problem(
                properties[near].key_at, f"unknown field `{near}`", "did you mean kind?", Rule.UNKNOWN_FIELD
            )
        else:
            what, remedy = "a document has no `kind`", f"add `kind:` and one of {', '.join(KINDS)}"
            problem = Problem(document.at, what, remedy, Rule.MISSING_FIELD)
        problems.append(problem)
        return None
    if isinstance(node.value, str) and node.value in KINDS:
        return node.value
    problems.append(Problem(node.at, f"unknown kind {node_text(node)}", one_of(node.value, KINDS), Rule.UNKNOWN_KIND))
    return None


def sound_part(kind: str, name: str, node: Node) -> Node:
    """Returns the property `name` of a document of the kind without its invalid parts, so that later checks find the
    problems of the valid ones.

    A list loses its invalid items. A mapping loses its invalid fields, but a list in it loses only its invalid items.
    """
    return _valid((kind, name), node)


def _valid(path: tuple[str, ...], node: Node) -> Node:
    schema = _schema(path)
    if isinstance(node.value, list) and "items" in schema:
        item = _shape((*path, "items"))
        return node._replace(value=[each for each in node.value if item.is_valid(each.plain())])
    if isinstance(node.value, dict) and "properties" in schema:
        found: dict[str, Node] = {}
        for key, child in node.value.items():
            if key not in schema["properties"]:
                continue
            if isinstance(child.value, list) and _schema((*path, key)).get("type") == "array":
                found[key] = _valid((*path, key), child)
            elif _shape((*path, key)).is_valid(child.plain()):
                found[key] = child
        return node._replace(value=found)
    return node._replace(value=None)


@cache
def _shape(path: tuple[str, ...]) -> Shape:
    return Shape(_schema(path))


def _schema(path: tuple[str, ...]) -> Schema:
    """Returns the schema of a part of a document. `path` is the kind, followed by names of nested properties or
    `items`."""
    kind, *names = path
    schema = resolved_schema({"$ref": f"#/$defs/{kind}"})
    for name in names:
        schema = resolved_schema(
            schema["items"] if name == "items" and "items" in schema else schema["properties"][name]
        )
    return schema
