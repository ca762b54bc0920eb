"""The pages of the spec format, made from the JSON Schema and the rules. `make reference` writes them below docs/."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from deployer.specs.reference.prose import COLUMN_NAMES, GENERATED, INTRODUCTION, KEYS, TYPES
from deployer.specs.schema.document import json_schema
from deployer.specs.types.names import INSTEAD, REFUSED_BY_LANCE
from deployer.specs.types.table import TYPE_ROWS
from deployer.specs.values.keys import KEY_TYPES

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A page below docs/spec/: its title, its definitions of the JSON Schema, and the prose before and after them."""

    title: str
    summary: str
    definitions: Sequence[str]
    before: str = ""
    after: str = ""


#: the pages by the name of their file; the pages of kinds of documents come first
PAGES: Mapping[str, Page] = {
    "instance": Page("Instance", "The lake: its root, state store, clusters and AWS settings.", ["Instance"]),
    "table": Page(
        "Table",
        "A table: its columns, keys, partitions, indexes, storage, retention and the files that it ingests.",
        ["Table", "partitions", "storage", "retention", "hold", "ingest"],
        after=KEYS,
    ),
    "view": Page("View", "A materialized view of tables.", ["View", "view_column", "view_function"]),
    "dataset": Page(
        "Dataset",
        "A dataset of recordings, which the catalog serves.",
        ["Dataset", "recording_source", "search_index", "dataset_services", "dataset_service"],
    ),
    "schema": Page("Schema", "Columns that several tables share.", ["Schema"]),
    "variables": Page("Variables", "Values that differ between stacks.", ["Variables"]),
    "overlay": Page("Overlay", "Fields of a resource that one stack sets.", ["Overlay"]),
    "include": Page("Include", "Other files that belong to the specs.", ["Include"]),
    "columns": Page(
        "Columns",
        "Columns, computed columns and nested fields, and the names that they may have.",
        ["column", "computed", "element", "nested_type", "sized_list"],
        after=COLUMN_NAMES,
    ),
    "services": Page(
        "Services",
        "The services of a table or view, their options and triggers.",
        ["services", "raw_service", "trigger"],
    ),
    "types": Page("Types", "Every type that a column can have.", [], before=TYPES),
}


def reference() -> Mapping[str, str]:
    """Returns the Markdown of the spec format, by path below docs/: `spec.md` and one page for each entry of PAGES."""
    listed = [f"| [{page.title}](spec/{name}.md) | {page.summary} |" for name, page in PAGES.items()]
    overview = "\n".join([INTRODUCTION, "## Kinds and parts", "", "| page | what it describes |", "|---|---|", *listed])
    return {
        "spec.md": overview + "\n",
        **{f"spec/{name}.md": "\n".join(_page(name, page)).rstrip() + "\n" for name, page in PAGES.items()},
    }


def _page(name: str, page: Page) -> Iterator[str]:
    definitions = json_schema()["$defs"]
    own = [definitions[each] for each in page.definitions]
    yield from (f"# {page.title}", "", GENERATED, "")
    if own and own[0]["title"] == page.title:  # the page's heading also serves the first section
        yield from (own[0]["description"], "", *_body(own[0], 2, name))
        own = own[1:]
    else:
        yield from (page.summary, "")
    if page.before:
        yield page.before
    if name == "types":
        yield from (*_type_table(), "", *_refused(), "")
    for schema in own:
        yield from _section(schema, 2, name)
    yield page.after


def _section(schema: Schema, level: int, page: str) -> Iterator[str]:
    yield from (f"{'#' * level} {schema['title']}", "", schema["description"], "")
    yield from _body(schema, level + 1, page)


def _body(schema: Schema, level: int, page: str) -> Iterator[str]:
    yield from _properties(schema, page)
    for child in _nested(schema):
        yield from _section(child, level, page)


def _nested(schema: Schema) -> Sequence[Schema]:
    return [branch for child in schema["properties"].values() for branch in _branches(child)]


@cache
def _titles() -> Mapping[str, Sequence[str]]:
    """Returns the titles of the sections of each page."""
    definitions = json_schema()["$defs"]
    return {name: [*_titles_below(definitions[each] for each in page.definitions)] for name, page in PAGES.items()}


def _titles_below(schemas: Iterable[Schema]) -> Iterator[str]:
    for schema in schemas:
        yield schema["title"]
        yield from _titles_below(_nested(schema))


def _branches(schema: Schema) -> Sequence[Schema]:
    """Returns the schemas of the objects in a property that have their own section on the page."""
    if "oneOf" in schema:
        return [branch for branch in schema["oneOf"] if "title" in branch]
    if "anyOf" in schema:
        titled = [branch for branch in schema["anyOf"] if "title" in branch]
        return titled or _branches(schema["anyOf"][0].get("additionalProperties", {}))
    if schema.get("type") == "array":
        return _branches(schema["items"])
    named = schema.get("additionalProperties") or {}
    return [each for each in (schema, named) if each.get("type") == "object" and "title" in each]


def _properties(schema: Schema, page: str) -> Iterator[str]:
    yield from ("| field | type | default | meaning |", "|---|---|---|---|")
    required = schema.get("required", ())
    for name, child in schema["properties"].items():
        described = _described(child)
        default = "required" if name in required else _code(described["default"]) if "default" in described else ""
        meaning = described["description"]
        if examples := described.get("examples"):
            meaning += f" Such as {', '.join(_code(example) for example in examples)}."
        yield f"| `{name}` | {_type(child, page)} | {default} | {meaning} |"
    yield ""


def _described(schema: Schema) -> Schema:
    """Returns the schema of a property, completed from the definition that its `$ref` names. Own keywords win."""
    if "$ref" not in schema:
        return schema
    return {**_target(schema), **schema}


def _target(schema: Schema) -> Schema:
    target: Schema = json_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    return target


def _type(schema: Schema, page: str) -> str:
    if "$ref" in schema:
        target = _target(schema)
        if "title" in target:
            return _link(target, page)
        return "[type](types.md)" if schema["$ref"].endswith("/type") else _type(target, page)
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        return ", ".join(_code(value) for value in schema["enum"])
    if "type" not in schema and "anyOf" not in schema and "oneOf" not in schema:
        return "any value"
    if "oneOf" in schema:
        return " or ".join(_link(branch, page) for branch in schema["oneOf"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(branch, page) for branch in schema["anyOf"]))
    if schema.get("format") == "bytes":
        return "size"
    match schema["type"]:
        case "array":
            return f"list of {_type(schema['items'], page)}"
        case "object" if "title" in schema:
            return _link(schema, page)
        case "object":
            return f"mapping of names to {_type(schema['additionalProperties'], page)}"
        case "integer":
            return f"integer, {schema['minimum']:,} to {schema['maximum']:,}"
        case "number":
            return f"number, {schema['minimum']} to {schema['maximum']}"
        case "boolean":
            return "true or false"
        case list() as types if "array" in types:
            return f"text or list of {_type(schema['items'], page)}"
        case list():
            return "scalar"
        case _ if schema.get("format") == "column-type":
            return "[type](types.md)"
        case _:
            return "text"


def _link(schema: Schema, page: str) -> str:
    """Returns a link to the section of an object: on this page if the section is here, else on the first page with
    it."""
    title, titles = schema["title"], _titles()
    if title in titles[page]:
        return f"[{title}](#{_anchor(title)})"
    other = next(name for name, known in titles.items() if title in known)
    return f"[{title}]({other}.md#{_anchor(title)})"


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
