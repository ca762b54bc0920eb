"""Writes docs/spec.md from the JSON Schema and the rules: `python -m deployer.specs.reference > docs/spec.md`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deployer.specs.reference.prose import COLUMN_NAMES, INTRODUCTION, KEYS, TYPES
from deployer.specs.schema.document import KINDS, json_schema
from deployer.specs.types.names import INSTEAD, REFUSED_BY_LANCE
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.values.keys import KEY_TYPES

Schema = Mapping[str, Any]


def reference() -> str:
    """Returns the Markdown of the spec format."""
    definitions = json_schema()["$defs"]
    lines = [INTRODUCTION]
    for name in (
        *KINDS,
        "Include",
        "view_column",
        "view_function",
        "recording_source",
        "search_index",
        "dataset_services",
        "dataset_service",
        "column",
        "computed",
        "element",
        "nested_type",
        "sized_list",
        "partitions",
        "storage",
        "retention",
        "hold",
        "ingest",
        "services",
        "raw_service",
        "trigger",
    ):
        lines += _section(definitions[name])
    lines += [TYPES, *_type_table(), "", *_refused(), "", COLUMN_NAMES, KEYS]
    return "\n".join(lines).rstrip() + "\n"


def _section(schema: Schema, level: int = 2) -> Iterator[str]:
    yield from (f"{'#' * level} {schema['title']}", "", schema["description"], "")
    yield from _properties(schema)
    for child in schema["properties"].values():
        for branch in _branches(child):
            yield from _section(branch, level + 1)


def _branches(schema: Schema) -> Sequence[Schema]:
    """Returns the objects that a property holds and that have a section of their own."""
    if "oneOf" in schema:
        return [branch for branch in schema["oneOf"] if "title" in branch]
    if "anyOf" in schema:
        titled = [branch for branch in schema["anyOf"] if "title" in branch]
        return titled or _branches(schema["anyOf"][0].get("additionalProperties", {}))
    if schema.get("type") == "array":
        return _branches(schema["items"])
    named = schema.get("additionalProperties") or {}
    return [each for each in (schema, named) if each.get("type") == "object" and "title" in each]


def _properties(schema: Schema) -> Iterator[str]:
    yield from ("| field | type | default | meaning |", "|---|---|---|---|")
    required = schema.get("required", ())
    for name, child in schema["properties"].items():
        described = _described(child)
        default = "required" if name in required else _code(described["default"]) if "default" in described else ""
        meaning = described["description"]
        if examples := described.get("examples"):
            meaning += f" Such as {', '.join(_code(example) for example in examples)}."
        yield f"| `{name}` | {_type(child)} | {default} | {meaning} |"
    yield ""


def _described(schema: Schema) -> Schema:
    """Returns a property with what its reference says and it does not say itself."""
    if "$ref" not in schema:
        return schema
    return {**_target(schema), **schema}


def _target(schema: Schema) -> Schema:
    target: Schema = json_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    return target


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        target = _target(schema)
        if "title" in target:
            return f"[{target['title']}](#{_anchor(target['title'])})"
        return "[type](#types)" if schema["$ref"].endswith("/type") else _type(target)
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        return ", ".join(_code(value) for value in schema["enum"])
    if "type" not in schema and "anyOf" not in schema and "oneOf" not in schema:
        return "any value"
    if "oneOf" in schema:
        return " or ".join(_link(branch) for branch in schema["oneOf"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(branch) for branch in schema["anyOf"]))
    if schema.get("format") == "bytes":
        return "size"
    match schema["type"]:
        case "array":
            return f"list of {_type(schema['items'])}"
        case "object" if "title" in schema:
            return _link(schema)
        case "object":
            return f"mapping of names to {_type(schema['additionalProperties'])}"
        case "integer":
            return f"integer, {schema['minimum']:,} to {schema['maximum']:,}"
        case "number":
            return f"number, {schema['minimum']} to {schema['maximum']}"
        case "boolean":
            return "true or false"
        case list() as types if "array" in types:
            return f"text or list of {_type(schema['items'])}"
        case list():
            return "scalar"
        case _ if schema.get("format") == "column-type":
            return "[type](#types)"
        case _:
            return "text"


def _link(schema: Schema) -> str:
    return f"[{schema['title']}](#{_anchor(schema['title'])})"


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


def _code(value: object) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _type_table() -> Iterator[str]:
    yield from ("| type | holds | row key | 2.1 | 2.2 | note |", "|---|---|---|---|---|---|")
    for row in TYPE_ROWS:
        name = row.text.partition("[")[0].partition("(")[0].partition("<")[0]
        key = "yes" if name in KEY_TYPES else ""
        versions = ["stored" if version in row.versions else "refused" for version in ("2.1", "2.2")]
        yield f"| `{row.text}` | {row.holds} | {key} | {versions[0]} | {versions[1]} | {row.note} |"


def _refused() -> Iterator[str]:
    yield from ("| Arrow type that Lance refuses | use |", "|---|---|")
    for name in sorted(REFUSED_BY_LANCE):
        yield f"| `{name}` | {INSTEAD[name]} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
