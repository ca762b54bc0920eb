"""Checks the shape of documents against the JSON Schema that `deployer schema` prints, all problems at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from deployer.errors import Problem
from deployer.specs.json_schema import KINDS
from deployer.specs.rules import Rule
from deployer.specs.shape_checks import (
    Check,
    Problems,
    Schema,
    compiled,
    deeper_fields,
    missing_fields,
    resolved_schema,
    unknown_field,
)
from deployer.specs.words import one_of, said
from deployer.specs.yaml import Node


def check_shape(document: Node, problems: Problems) -> tuple[str, frozenset[str]] | None:
    """Adds the document's problems to `problems`. Its kind and the properties that cannot be used as they are, which
    include those that are missing or likely misspelt; None when not even the kind is known."""
    if not isinstance(document.value, dict):
        what = f"a document is {said(document)} and should be a mapping"
        remedy = f"start it with `kind:` and one of {', '.join(KINDS)}"
        problems.append(Problem(document.at, what, remedy, Rule.WRONG_TYPE))
        return None
    kind = _kind(document, document.value, problems)
    return (kind, _document(kind)(document, problems)) if kind else None


def _kind(document: Node, properties: Mapping[str, Node], problems: Problems) -> str | None:
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
    problems.append(Problem(node.at, f"unknown kind {said(node)}", one_of(node.value, KINDS), Rule.UNKNOWN_KIND))
    return None


def sound_part(kind: str, name: str, node: Node) -> Node:
    """A property of a document of that kind without what has problems: items of lists, and fields of mappings, whose
    lists lose only the items that have problems. Every problem of the others can be found then."""
    return _sound(resolved_schema({"$ref": f"#/$defs/{kind}"})["properties"][name], node)


def _sound(schema: Schema, node: Node) -> Node:
    schema = resolved_schema(schema)
    if isinstance(node.value, list) and "items" in schema:
        check = compiled(schema["items"])
        return node._replace(value=[item for item in node.value if _is_sound(check, item)])
    if isinstance(node.value, dict) and "properties" in schema:
        known: Mapping[str, Schema] = schema["properties"]
        lists = {key for key, child in known.items() if resolved_schema(child).get("type") == "array"}
        found = {
            key: _sound(known[key], child) if key in lists and isinstance(child.value, list) else child
            for key, child in node.value.items()
            if key in known and (key in lists or _is_sound(compiled(known[key]), child))
        }
        return node._replace(value=found)
    return node._replace(value=None)


def _is_sound(check: Check, node: Node) -> bool:
    problems = Problems()
    check(node, "`it`", problems)
    return not problems


@cache
def _document(name: str) -> Callable[[Node, Problems], frozenset[str]]:
    """The check of a document, which keeps apart in which of its properties the problems are."""
    schema = resolved_schema({"$ref": f"#/$defs/{name}"})
    checks = {key: compiled(child) for key, child in schema["properties"].items()}
    required: Sequence[str] = schema["required"]
    anchors = "patternProperties" in schema

    def check(document: Node, problems: Problems) -> frozenset[str]:
        properties = document.value
        assert isinstance(properties, dict)  # noqa: S101
        broken: set[str] = set()
        for key, child in properties.items():
            if child_check := checks.get(key):
                before = len(problems)
                problems.path.append(key)
                child_check(child, f"`{key}`", problems)
                problems.path.pop()
                if len(problems) > before:
                    broken.add(key)
            elif not (anchors and key.startswith("x-")):
                homes = deeper_fields(schema).get(key, ())
                broken.add(unknown_field(key, child, properties, tuple(checks), name, problems, homes))
        missing_fields(document, properties, required, broken, f"this {name}", problems)
        return frozenset(broken)

    return check
