"""Messages about the fields of a mapping: unknown fields, missing fields, and values that YAML split at a comma."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from deployer.errors import Problem
from deployer.specs.rules import Rule
from deployer.specs.validation.branches import ALTERNATIVES, Schema, resolved_schema
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import fields_remedy


def field_problems(
    node: Node, schema: Schema, path: Sequence[object], label: str, owner: str
) -> tuple[list[Problem], set[str]]:
    """Returns the problems of a mapping's fields, and the fields that have problems or that unknown ones likely mean.

    `path` leads from the document's root to the mapping. `label` names the mapping in messages, and `owner` names the
    resource or part with the fields.
    """
    present = node.value
    assert isinstance(present, dict)  # noqa: S101 -- the schema says so
    known: Mapping[str, Any] = schema.get("properties", {})
    title = schema.get("title", "")
    closed = schema.get("additionalProperties") is False
    torn = torn_fields(present) if closed else {}
    problems = [each.problem for each in torn.values()]
    meant = {*torn, *(each.key for each in torn.values())}
    for key, child in present.items():
        if not closed or key in known or key in meant or (key.startswith("x-") and "patternProperties" in schema):
            continue
        keys = [part for part in path if isinstance(part, str)]
        homes = [".".join((*keys, home)) for home in _deeper_fields(schema).get(key, ())]
        likely, remedy = fields_remedy(key, child, present, tuple(known), title, homes)
        meant.add(likely)
        problems.append(Problem(child.key_at, f"unknown field `{key}` of {title}", remedy, Rule.UNKNOWN_FIELD))
    for key in schema.get("required", ()):
        if key not in present and key not in meant:
            problems.append(Problem(node.at, f"`{key}` is missing in {owner}", f"add `{key}:`", Rule.MISSING_FIELD))
            meant.add(key)
    if schema.get("maxProperties") == 1 and not meant and len(present) != 1:
        what = f"{label} has {len(present)} of {', '.join(known)}"
        problems.append(Problem(node.at, what, "write exactly one of them", Rule.OUT_OF_RANGE))
    return problems, meant


class Torn(NamedTuple):
    """A text that YAML's flow style split at its comma, as in `{type: decimal128(10, 2)}`."""

    key: str  # the field that YAML made of the second half
    problem: Problem


def torn_fields(properties: Mapping[str, Node]) -> Mapping[str, Torn]:
    """Returns the split values by their fields."""
    torn: dict[str, Torn] = {}
    previous: tuple[str, Node] | None = None
    for key, child in properties.items():
        if previous and child.value is None and key[-1:] in (")", "]", ">") and isinstance(previous[1].value, str):
            field, node = previous
            what = f"`{field}` ends at the comma, as values inside of {{…}} do"
            remedy = f'quote it: {field}: "{node.value}, {key}"'
            torn[field] = Torn(key, Problem(node.at, what, remedy, Rule.YAML_SYNTAX))
        previous = (key, child)
    return torn


def _deeper_fields(schema: Schema) -> Mapping[str, Sequence[str]]:
    """Returns the fields of the mappings that are properties of an object. The result has, for each field's name, the
    properties that have such a field."""
    found: dict[str, list[str]] = {}
    for name, child in schema.get("properties", {}).items():
        branches = [resolved_schema(each) for each in child.get(ALTERNATIVES, [child])]
        for key in dict.fromkeys(key for branch in branches for key in branch.get("properties", {})):
            found.setdefault(key, []).append(name)
    return found
