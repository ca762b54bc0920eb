"""The texts of values in problems, and remedies: the nearest name, missing quotes, the YAML 1.2 form of a value."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from deployer.specs.yaml.nodes import Node

# names of fields in other tools that are not similar to the name in specs
SYNONYMS: Mapping[str, str] = {
    "cluster_by": "sort_keys",
    "comment": "description",
    "doc": "description",
    "extends": "schemas",
    "fields": "columns",
    "key": "row_keys",
    "keys": "row_keys",
    "labels": "tags",
    "location": "root",
    "metadata": "tags",
    "old_name": "renamed_from",
    "optional": "nullable",
    "order_by": "sort_keys",
    "partition_by": "row_keys",
    "partition_keys": "row_keys",
    "path": "root",
    "previous_name": "renamed_from",
    "primary_key": "row_keys",
    "primary_keys": "row_keys",
    "protect": "deletion_protection",
    "required": "nullable",
    "schema": "schemas",
    "sort_by": "sort_keys",
    "splits": "split_points",
    "unique_keys": "unique",
    "ttl": "retention",
    "auto_load": "ingest",
    "autoload": "ingest",
    "uri": "root",
}
_TRUE, _FALSE = ("yes", "y", "on"), ("no", "n", "off")
_SIZE = re.compile(r"(?P<count>[0-9]+) ?(?P<prefix>[kKmMgGtT])(?P<binary>i?)[bB]?")
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(?:[_,' ][0-9]{3})+")


def nearest(name: object, names: Sequence[str]) -> str | None:
    """Returns the one of `names` that `name` most likely means; None where no name is similar."""
    if not isinstance(name, str):
        return None
    lower = {known.lower(): known for known in names}
    if name.lower() in lower:
        return lower[name.lower()]
    found = difflib.get_close_matches(name.lower(), lower, 1, 0.6)
    return lower[found[0]] if found else None


def one_of(name: object, values: Sequence[object]) -> str:
    """Returns advice for a value that is not one of `values`."""
    names = tuple(map(str, values))
    if near := nearest(name, names):
        return f"did you mean {near}?"
    return f"use one of {', '.join(names)}" if len(names) > 1 else f"use {names[0]}"


def reference_remedy(name: str, names: Sequence[str], otherwise: str) -> str:
    """Returns advice for a reference to something that is not declared: the nearest of `names`, or `otherwise`."""
    near = nearest(name, names)
    return f"did you mean {near}?" if near else otherwise


def node_text(node: Node) -> str:
    """Returns a short text for a value, such as `the number 5` or `a list`. Texts have at most 40 characters."""
    match node.value:
        case None:
            return "empty"
        case bool():
            return f"`{str(node.value).lower()}`"
        case int() | float():
            return f"the number {node.value}"
        case str():
            shown = node.value if len(node.value) <= 40 else node.value[:39] + "…"
            return f"`{shown}`" if shown else "an empty text"
        case list():
            return "a list"
        case dict():
            return "a mapping"


def wanted_remedy(node: Node, wanted: str) -> str:
    """Returns advice for a value of the wrong type. `wanted` names the right type, such as `a list`."""
    value = node.value
    if wanted == "true or false":
        if isinstance(value, str) and value.lower() in _TRUE + _FALSE:
            return f"write {str(value.lower() in _TRUE).lower()} (`{value}` is text in YAML 1.2)"
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return f"write {value.lower()} without quotes"
        return "write true or false"
    if value is None:
        return f"write {wanted}, or remove the line"
    match wanted:
        case "text":
            if isinstance(value, bool):
                return f'write "{str(value).lower()}" in quotes'
            if isinstance(value, (int, float)):
                return f'write "{value}" in quotes'
        case "a whole number":
            if isinstance(value, str) and _GROUPED.fullmatch(value):
                return f"write {re.sub('[^-+0-9]', '', value)}"
            if isinstance(value, str) and re.fullmatch(r"[-+]?[0-9]+", value):
                return f"write {value} without quotes"
            if isinstance(value, str) and (size := _SIZE.fullmatch(value)):
                base = 1024 if size["binary"] else 1000
                return f"write {int(size['count']) * base ** ' kmgt'.index(size['prefix'].lower())}"
            return "write digits"
        case "a list":
            if isinstance(value, dict):
                return "start each item with `- `"
            return f"write [{value if not isinstance(value, bool) else str(value).lower()}]"
        case "a mapping":
            return "write `name: value` lines under it"
        case _:
            pass
    return f"write {wanted}"


def fields_remedy(
    key: str, child: Node, present: Mapping[str, Node], known: Sequence[str], owner: str, homes: Sequence[str] = ()
) -> tuple[str, str]:
    """Returns the field that an unknown field `key` likely means, or `key` itself, and advice.

    `present` are the fields of the mapping, `known` the names that it may have, and `owner` is its name in messages.
    `homes` are the paths of other mappings that have a field with exactly this name.
    """
    synonym = SYNONYMS.get(key.lower().replace("-", "_"))
    if homes and synonym not in known:
        return key, f"`{key}` belongs under {' or '.join(f'`{home}`' for home in homes)}"
    meant = synonym if synonym in known else nearest(key.replace("-", "_"), known)
    if meant is None:
        free = [name for name in known if name not in present]
        if len(known) > 12:
            return key, f"remove it; docs/spec.md lists the fields of {owner}"
        return key, f"remove it, or use one of {', '.join(free)}" if free else "remove it"
    if meant in present:
        return key, f"remove it; `{meant}` is already there"
    opposite = key in ("optional", "required")
    return meant, f"use `{meant}` (true or false)" if opposite else f"did you mean {meant}?"
