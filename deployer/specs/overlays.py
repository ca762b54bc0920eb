"""Overlays: what a stack has otherwise than the others, merged into the document that `target` names.

Mappings are merged, null removes (as in JSON Merge Patch, RFC 7386), lists of things with names (columns, fields,
clusters) are merged by name, anything else is replaced. Every value keeps the place where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deployer.errors import Problem
from deployer.specs.rules import Rule
from deployer.specs.words import nearest
from deployer.specs.yaml import Node

_REPLACED = ("type",)  # a type is one value, in its long form too


def address_of(document: Node) -> str | None:
    """`table/DATABASE.NAME`, `schema/NAME` or `instance/NAME`; None when the document has no usable name."""
    if not isinstance(document.value, dict):
        return None
    kind, database, name = (
        node.value if (node := document.value.get(key)) else None for key in ("kind", "database", "name")
    )
    if kind == "Table" and database is not None and name is not None:
        return f"table/{database}.{name}"
    return f"{str(kind).lower()}/{name}" if kind in ("Instance", "Schema") and name is not None else None


def applies(overlay: Node, stack: str | None) -> bool:
    """Whether a document with `stack` is for this one; one without is for all."""
    assert isinstance(overlay.value, dict)  # noqa: S101
    node = overlay.value.get("stack")
    if node is None:
        return True
    return stack in [item.value for item in node.value] if isinstance(node.value, list) else node.value == stack


def apply_overlays(
    documents: Sequence[Node], overlays: Sequence[Node], stack: str | None, incomplete: bool, problems: list[Problem]
) -> list[Node]:
    """The documents with the overlays of this stack merged in, in their order. Targets of all overlays are checked."""
    merged_documents = list(documents)
    places = {address: index for index, document in enumerate(documents) if (address := address_of(document))}
    for overlay in overlays:
        assert isinstance(overlay.value, dict)  # noqa: S101
        target = overlay.value["target"]
        index = places.get(str(target.value))
        if index is None:
            near = nearest(target.value, tuple(places))
            if near or not incomplete:
                remedy = f"did you mean {near}?" if near else "name what is declared: table/DATABASE.NAME, schema/NAME"
                what = f"nothing is declared as `{target.value}`"
                problems.append(Problem(target.at, what, remedy, Rule.UNKNOWN_TARGET))
        elif applies(overlay, stack):
            merged_documents[index] = merged(merged_documents[index], overlay.value["set"])
    return merged_documents


def merged(base: Node, patch: Node) -> Node:
    """`base` with `patch` in it; each part has the place of the document that it comes from."""
    if isinstance(base.value, dict) and isinstance(patch.value, dict):
        values = dict(base.value)
        for key, node in patch.value.items():
            before = values.get(key)
            if node.value is None:
                values.pop(key, None)
            elif before is None or key in _REPLACED:
                values[key] = node
            else:
                values[key] = merged(before, node)
        return base._replace(value=values)
    if isinstance(base.value, list) and isinstance(patch.value, list):
        before_by_name, after_by_name = _by_name(base.value), _by_name(patch.value)
        if before_by_name is not None and after_by_name is not None:
            joined = {**before_by_name}
            for name, node in after_by_name.items():
                joined[name] = merged(joined[name], node) if name in joined else node
            return base._replace(value=list(joined.values()))
    return patch


def _by_name(items: Sequence[Node]) -> Mapping[str, Node] | None:
    """The items by their names; None unless all have one, each its own."""
    named = {
        str(item.value["name"].value): item for item in items if isinstance(item.value, dict) and "name" in item.value
    }
    return named if items and len(named) == len(items) else None
