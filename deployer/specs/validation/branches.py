"""Replaces the alternatives of a JSON Schema by conditions, so that errors come only from the intended alternative.

For `anyOf` and `oneOf`, validators report the errors of every alternative, and jsonschema-rs copies the value into each
error: a type of 20 levels with 100,000 wrong fields takes 10 GB. With conditions, the type of a value, its required
properties or its constant select one alternative, and only its errors are reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deployer.specs.schema.document import json_schema

Schema = Mapping[str, Any]

#: Keywords of deployer beside the conditions, which validators ignore: the alternatives, the format of the alternatives
#: that are text, and the property whose constant selects an alternative.
ALTERNATIVES, TEXT_FORMAT, CHOSEN_BY = "x-alternatives", "x-text-format", "x-chosen-by"
_MAPS = ("properties", "patternProperties", "$defs")


def branched(schema: Any) -> Any:
    """Returns a copy of a schema, or of a part of one, with conditions instead of `anyOf` and `oneOf`."""
    if not isinstance(schema, dict):
        return schema
    if "anyOf" in schema:
        return _by_type(schema["anyOf"])
    if "oneOf" in schema:
        return _by_constant(schema["oneOf"])
    found = {key: branched(child) if isinstance(child, dict) else child for key, child in schema.items()}
    for key in _MAPS:
        if key in schema:
            found[key] = {name: branched(child) for name, child in schema[key].items()}
    return found


def resolved_schema(schema: Schema) -> Schema:
    """Returns the definition that the schema's `$ref` names, else the schema itself. Keywords beside a `$ref` only
    describe, so they are ignored."""
    reference = schema.get("$ref")
    return json_schema()["$defs"][reference.rpartition("/")[2]] if reference else schema


def types_of(schema: Schema) -> Sequence[str]:
    """Returns the JSON types that a schema accepts."""
    found = schema.get("type", ())
    return (found,) if isinstance(found, str) else tuple(found)


def _by_type(branches: Sequence[Schema]) -> Schema:
    types = list(dict.fromkeys(each for branch in branches for each in types_of(resolved_schema(branch))))
    formats = [resolved_schema(branch).get("format") for branch in branches]
    return {
        "type": types,
        "allOf": list(_conditions(branches, types)),
        ALTERNATIVES: list(branches),
        TEXT_FORMAT: next(filter(None, formats), None),
    }


def _conditions(branches: Sequence[Schema], types: Sequence[str]) -> Iterator[Schema]:
    for name in types:
        fits = [branch for branch in branches if name in types_of(resolved_schema(branch))]
        yield {"if": {"type": name}, "then": _by_required(fits)}


def _by_required(branches: Sequence[Schema]) -> Schema:
    """Returns conditions that select the first alternative whose required properties all exist, else the last
    alternative."""
    first, *others = branches
    if not others:
        return branched(first)  # type: ignore[no-any-return]
    required = resolved_schema(first).get("required")
    rest = _by_required(others)
    return {"if": {"required": required}, "then": branched(first), "else": rest} if required else rest


def _by_constant(branches: Sequence[Schema]) -> Schema:
    key = next(name for name, child in branches[0]["properties"].items() if "const" in child)
    constants = {branch["properties"][key]["const"]: branch for branch in branches}
    return {
        "type": "object",
        "required": [key],
        "properties": {key: {"enum": list(constants), CHOSEN_BY: key}},
        "allOf": [
            {"if": {"properties": {key: {"const": constant}}, "required": [key]}, "then": branched(branch)}
            for constant, branch in constants.items()
        ],
        CHOSEN_BY: key,
    }
