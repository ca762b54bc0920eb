"""Overlays: what differs in one stack, merged into the document that `target` names.

Mappings are merged, null removes (as in JSON Merge Patch, RFC 7386), lists of things with names (columns, fields,
clusters) are merged by name, where `{name: x, remove: true}` removes one, anything else is replaced. Every value keeps
its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from deployer.errors import Problem
from deployer.specs.declarations.indexes import default_name
from deployer.specs.rules import Rule
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest

_REMOVE = "remove"
_REPLACED = ("type",)  # a type is one value, in its long form too


def address_of(document: Node) -> str | None:
    """Returns `table/DATABASE.NAME`, `schema/NAME`, `dataset/NAME` or `instance/NAME`; None when the document has no
    usable name."""
    if not isinstance(document.value, dict):
        return None
    kind, database, name = (
        node.value if (node := document.value.get(key)) else None for key in ("kind", "database", "name")
    )
    if kind in ("Table", "View") and database is not None and name is not None:
        return f"table/{database}.{name}"
    return f"{str(kind).lower()}/{name}" if kind in ("Instance", "Schema", "Dataset") and name is not None else None


def applies(overlay: Node, stack: str | None) -> bool:
    """Returns whether a document with `stack` is for this one; one without is for all."""
    assert isinstance(overlay.value, dict)  # noqa: S101
    node = overlay.value.get("stack")
    if node is None:
        return True
    return stack in [item.value for item in node.value] if isinstance(node.value, list) else node.value == stack


def apply_overlays(
    documents: Sequence[Node], overlays: Sequence[Node], stack: str | None, incomplete: bool, problems: list[Problem]
) -> list[Node]:
    """Returns the documents with the overlays of this stack merged in, in their order. Targets of all overlays are
    checked."""
    merged_documents = list(documents)
    places = {address: index for index, document in enumerate(documents) if (address := address_of(document))}
    for overlay in overlays:
        assert isinstance(overlay.value, dict)  # noqa: S101
        target = overlay.value["target"]
        problems += _bad_removals(overlay.value["set"])
        index = places.get(str(target.value))
        if index is None:
            near = nearest(target.value, tuple(places))
            if near or not incomplete:
                remedy = (
                    f"did you mean {near}?"
                    if near
                    else "name what is declared: table/DATABASE.NAME, schema/NAME, dataset/NAME"
                )
                what = f"nothing is declared as `{target.value}`"
                problems.append(Problem(target.at, what, remedy, Rule.UNKNOWN_TARGET))
        elif applies(overlay, stack):
            merged_documents[index] = merged(merged_documents[index], overlay.value["set"], problems)
    return merged_documents


def merged(base: Node, patch: Node, problems: list[Problem]) -> Node:
    """`base` with `patch` in it; each part has the place of the document that it comes from.

    What is to be removed and is not there is one of the `problems`.
    """
    if isinstance(base.value, dict) and isinstance(patch.value, dict):
        values = dict(base.value)
        for key, node in patch.value.items():
            before = values.get(key)
            if node.value is None:
                values.pop(key, None)
            elif before is None or key in _REPLACED:
                values[key] = _without_removals(node, problems)
            else:
                values[key] = merged(before, node, problems)
        return base._replace(value=values)
    if isinstance(base.value, list) and isinstance(patch.value, list):
        removes = any(map(_removes, patch.value))
        before_by_name = _by_name(base.value, given_none=removes)
        after_by_name = _by_name(patch.value, given_none=removes)
        if before_by_name is not None and after_by_name is not None:
            joined = {**before_by_name}
            for name, node in after_by_name.items():
                if not _removes(node):
                    joined[name] = merged(joined[name], node, problems) if name in joined else node
                elif name in joined:
                    del joined[name]
                else:
                    problems.append(_not_there(node, tuple(joined)))
            return base._replace(value=list(joined.values()))
    return _without_removals(patch, problems)


def _by_name(items: Sequence[Node], *, given_none: bool = False) -> Mapping[str, Node] | None:
    """Returns the items by their names; None unless all have one, each its own. `given_none`: indexes may have none of
    their own."""
    named = {}
    for item in items:
        properties = item.value if isinstance(item.value, dict) else {}
        kind, columns = properties.get("kind"), properties.get("columns")
        if "name" in properties:
            named[str(properties["name"].value)] = item
        elif given_none and kind is not None and columns is not None and isinstance(columns.value, list):
            named[default_name([str(column.value) for column in columns.value], str(kind.value))] = item
    return named if items and len(named) == len(items) else None


def _removes(item: Node) -> bool:
    return isinstance(item.value, dict) and _REMOVE in item.value


def _without_removals(node: Node, problems: list[Problem]) -> Node:
    """Returns a list that replaces another, or of none, where nothing can be removed."""
    if not isinstance(node.value, list) or not any(map(_removes, node.value)):
        return node
    problems += [_not_there(item, ()) for item in node.value if _removes(item)]
    return node._replace(value=[item for item in node.value if not _removes(item)])


def _not_there(item: Node, names: Sequence[str]) -> Problem:
    assert isinstance(item.value, dict)  # noqa: S101
    name = item.value["name"].value if "name" in item.value else ""
    near = nearest(name, names)
    remedy = f"did you mean {near}?" if near else "leave it out, or name what the target declares itself"
    return Problem(item.at, f"`{name}` does not exist, so it cannot be removed", remedy, Rule.BAD_REMOVAL)


def _bad_removals(node: Node) -> Iterator[Problem]:
    """Items of lists that would remove something and say more, or less, than what."""
    for child in node.value.values() if isinstance(node.value, dict) else ():
        yield from _bad_removals(child)
    for item in node.value if isinstance(node.value, list) else ():
        yield from _bad_removals(item)
        if not _removes(item):
            continue
        assert isinstance(item.value, dict)  # noqa: S101
        others = [key for key in item.value if key not in ("name", _REMOVE)]
        if item.value[_REMOVE].value is not True:
            at, what = item.value[_REMOVE].at, "`remove` is not true"
            yield Problem(at, what, "write `remove: true`, or leave it out", Rule.BAD_REMOVAL)
        elif "name" not in item.value:
            yield Problem(
                item.at, "`remove` does not name anything", "write `{name: x, remove: true}`", Rule.BAD_REMOVAL
            )
        elif others:
            what = f"what is removed has `{others[0]}`"
            yield Problem(item.value[others[0]].key_at, what, "leave it out", Rule.BAD_REMOVAL)
