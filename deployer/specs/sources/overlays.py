"""Merges overlays, the differences of one stack, into the documents that their `target` names.

Mappings are merged, and null removes a field, as in JSON Merge Patch (RFC 7386). Lists whose items have names (columns,
fields, clusters) are merged by name; `{name: x, remove: true}` removes an item. Other values are replaced. Every value
keeps its position in the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from deployer.errors import Problem
from deployer.specs.declarations.indexes import default_name
from deployer.specs.rules import Rule
from deployer.specs.yaml.nodes import Node
from deployer.specs.yaml.suggestions import nearest

_REMOVE = "remove"
_REPLACED = ("type",)  # a type is one value, even in its long form


def address_of(document: Node) -> str | None:
    """Returns the address of a document: `table/DATABASE.NAME`, `schema/NAME`, `dataset/NAME` or `instance/NAME`.

    Returns None for a document of another kind or without a name.
    """
    if not isinstance(document.value, dict):
        return None
    kind, database, name = (
        node.value if (node := document.value.get(key)) else None for key in ("kind", "database", "name")
    )
    if kind in ("Table", "View") and database is not None and name is not None:
        return f"table/{database}.{name}"
    return f"{str(kind).lower()}/{name}" if kind in ("Instance", "Schema", "Dataset") and name is not None else None


def applies(overlay: Node, stack: str | None) -> bool:
    """Returns whether a document is for the stack: its `stack` names the stack or lists it, or is missing."""
    assert isinstance(overlay.value, dict)  # noqa: S101
    node = overlay.value.get("stack")
    if node is None:
        return True
    return stack in [item.value for item in node.value] if isinstance(node.value, list) else node.value == stack


def apply_overlays(
    documents: Sequence[Node], overlays: Sequence[Node], stack: str | None, incomplete: bool, problems: list[Problem]
) -> list[Node]:
    """Returns the documents, in their order, with the overlays of `stack` merged in. Checks the targets of all
    overlays.

    `incomplete`: some documents could not be read, so an unknown target is a problem only where a similar one exists.
    """
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
    """Returns `base` with `patch` merged in. Each value keeps its position in the document that it comes from.

    Adds a problem to `problems` for an item that `patch` removes and `base` does not have.
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
    """Returns the items by their names; None unless every item has a name that no other item has.

    `given_none`: an index without a name has its default name.
    """
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
    """Returns a list without its items with `remove`, for a list that is not merged with another. Each such item is a
    problem, because there is nothing to remove. Returns other nodes unchanged."""
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
    """Yields the problems of list items with `remove` that are not exactly `{name: x, remove: true}`."""
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
