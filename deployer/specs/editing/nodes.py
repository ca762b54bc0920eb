"""Parts of ruamel's spec documents: columns and nested fields by name, and the comments after each. ruamel attaches a
comment on its own line to the value above it, so a moved or removed value has to pass its comments on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark
from ruamel.yaml.tokens import CommentToken

from deployer.errors import DeployerError, Position
from deployer.specs.sources.variables import has_variable

ColumnPath = tuple[str, ...]
_SHORT = 90  #: largest characters of a list in one line


class Uneditable(DeployerError):
    """A change of specs cannot be made by an edit in place."""

    kind = "Uneditable"


@dataclass(frozen=True, slots=True)
class Slot:
    """A column or a part of one: its type is `container[key]`; `owner` has its other properties, None for a bare type.

    `owner` is None for an element of a list or map that is only a type; it gets its properties with `owned`.
    """

    container: Any
    key: Any
    owner: Any

    @property
    def form(self) -> Any:
        """The type: text, or the long form."""
        return self.container[self.key]

    def owned(self) -> Any:
        """Returns the mapping of its properties; a bare type is put into a new one."""
        if self.owner is not None:
            return self.owner
        self.container[self.key] = CommentedMap({"type": self.form})
        return self.container[self.key]

    def part(self, name: str) -> Slot | None:
        """Returns the field or element of that name; None where the type is text."""
        form = self.form
        if not isinstance(form, CommentedMap):
            return None
        [kind] = form
        if kind == "struct":
            return column_slot(named(form[kind], name))
        container, key = (form, kind) if kind in ("list", "large_list") else (form[kind], name)
        element = container[key]
        whole = isinstance(element, CommentedMap) and "type" in element
        return Slot(element, "type", element) if whole else Slot(container, key, None)


def column_slot(item: Any) -> Slot:
    """Returns the slot of a column or field."""
    return Slot(item, "type", item)


def named(items: Any, name: str) -> Any:
    """Returns the item of a list that has this name. Raises Uneditable without one."""
    found = next((item for item in items or () if item.get("name") == name), None)
    if found is None:
        raise Uneditable(f"{name} is not declared here", remedy="edit it by hand")
    return found


def insert_named(items: Any, form: Mapping[str, Any], after: str | None) -> None:
    """Adds an item to a list of named items: after the item `after`, first when that is None, last when it does not
    exist."""
    names = [item.get("name") for item in items]
    place = names.index(after) + 1 if after in names else 0 if after is None else len(names)
    flow = any(isinstance(other, CommentedMap) and other.fa.flow_style() for other in items)
    items.insert(place, as_node(form, flow=flow))
    if place:
        _add_below(items, place, _take_below(items, place - 1))


def remove_item(items: Any, item: Any) -> None:
    """Removes an item from its list; comment lines below it stay."""
    place = next(index for index, each in enumerate(items) if each is item)
    below = _take_below(items, place)
    del items[place]
    if place:
        _add_below(items, place - 1, below)
    elif items:
        _add_above(items, below)


def order_named(items: Any, names: Sequence[str], at: Position) -> None:
    """Brings items in the order of `names`, with their comments; the others stay where they are."""
    known = {item.get("name"): index for index, item in enumerate(items)}
    if not known.keys() >= set(names):
        raise Uneditable("the columns come from several documents", where=at, remedy="reorder them by hand")
    below = [_take_below(items, index) for index in range(len(items))]
    above = ["", *below[:-1]]  # a comment on its own line belongs to the next value
    old = [(item, items.ca.items.pop(index, None)) for index, item in enumerate(items)]
    places = [index for index, item in enumerate(items) if item.get("name") in names]
    source = {
        **{index: index for index in range(len(items))},
        **dict(zip(places, (known[n] for n in names), strict=True)),
    }
    for index in range(len(items)):
        items[index], comment = old[source[index]]
        if comment is not None:
            items.ca.items[index] = comment
    _add_above(items, above[source[0]])
    for index in range(len(items)):
        _add_below(items, index, above[source[index + 1]] if index + 1 < len(items) else below[-1])


def put(mapping: Any, name: str, value: Any, at: Position) -> None:
    """Sets a property, or removes it (None). Mappings are merged, so that equal parts stay unchanged."""
    if name in mapping:
        refuse_shared(mapping, name, mapping[name], at)
    if value is None:
        _remove(mapping, name)
    elif name in mapping and isinstance(value, Mapping) and isinstance(mapping[name], CommentedMap):
        for key in [key for key in mapping[name] if key not in value]:
            _remove(mapping[name], key)
        for key, item in value.items():
            if mapping[name].get(key) != item:
                put(mapping[name], key, item, at)
    elif name not in mapping and isinstance(mapping, CommentedMap) and len(mapping):
        last = list(mapping)[-1]
        _append(mapping, last, name, as_node(value))
    else:
        before = mapping.get(name)
        flow = isinstance(before, CommentedMap | CommentedSeq) and bool(before.fa.flow_style())
        mapping[name] = as_node(value, flow=flow)


def _remove(mapping: Any, name: str) -> None:
    """Removes a property; empty lines and comments below it stay, after the previous property."""
    names = list(mapping)
    if name not in names:
        return
    place = names.index(name)
    comment = mapping.ca.items.get(name)
    del mapping[name]
    before = names[place - 1] if place else None
    if not comment or not _is_below(comment) or before is None:
        return
    own = mapping.ca.items.get(before)
    if own is None:
        mapping.ca.items[before] = comment
    elif len(own) > 2 and own[2] is not None and str(own[2].value).endswith("\n"):
        own[2].value += comment[2].value.removeprefix("\n")


def _append(mapping: CommentedMap, last: str, name: str, value: Any) -> None:
    """Adds a property at the end; comments and empty lines after the last property stay there."""
    comment = mapping.ca.items.pop(last, None) if not isinstance(mapping[last], CommentedMap | CommentedSeq) else None
    mapping[name] = value
    if comment is not None:
        mapping.ca.items[name if _is_below(comment) else last] = comment


def _is_below(comment: Sequence[Any]) -> bool:
    """Returns whether a comment starts on a line of its own, and so is not about the value before it."""
    token = comment[2] if len(comment) > 2 else None
    return token is not None and str(token.value).startswith("\n")


def _last_place(container: Any, key: Any) -> tuple[Any, Any]:
    """Returns where ruamel stores the comment after a value: at the last value inside of it."""
    value = container[key]
    if isinstance(value, CommentedMap | CommentedSeq) and value and not value.fa.flow_style():
        return _last_place(value, len(value) - 1 if isinstance(value, CommentedSeq) else list(value)[-1])
    return container, key


def _take_below(items: Any, index: int) -> str:
    """Cuts off the lines below an item, comments and empty ones; the rest of its last line stays."""
    container, key = _last_place(items, index)
    comment, place = container.ca.items.get(key), 2 if isinstance(container, CommentedMap) else 0
    token = comment[place] if comment and len(comment) > place else None
    if token is None:
        return ""
    own, _, below = str(token.value).partition("\n")
    if own:
        token.value = f"{own}\n"
    else:
        comment[place] = None
        if not any(comment):
            del container.ca.items[key]
    return below


def _add_below(items: Any, index: int, text: str) -> None:
    if not text:
        return
    container, key = _last_place(items, index)
    place = 2 if isinstance(container, CommentedMap) else 0
    comment = container.ca.items.setdefault(key, [None] * 4 if place else [None, None])
    if comment[place] is None:
        comment[place] = CommentToken(f"\n{text}", CommentMark(0), None)
    else:
        comment[place].value += text


def _add_above(items: Any, text: str) -> None:
    """Puts comments above the first item; empty lines are left out."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if lines:
        column = items[0].lc.col if isinstance(items[0], CommentedMap) and items[0].lc.col else items.lc.col
        comment = items.ca.items.setdefault(0, [None, None])
        tokens = [CommentToken(f"{line}\n", CommentMark(max(column - 2, 0)), None) for line in lines]
        comment[1] = tokens + list(comment[1] or ())


def as_node(value: Any, *, flow: bool = False) -> Any:
    """Returns plain values as ruamel's nodes; short lists of scalars are written in one line."""
    match value:
        case Mapping():
            found: Any = CommentedMap({key: as_node(item) for key, item in value.items()})
        case list() | tuple():
            found = CommentedSeq([as_node(item) for item in value])
            scalars = not any(isinstance(item, Mapping | list | tuple) for item in value)
            flow = flow or (scalars and len(str(value)) < _SHORT)
        case _:
            return value
    if flow:
        found.fa.set_flow_style()
    return found


def refuse_shared(mapping: Any, name: str, value: Any, at: Position) -> None:
    """Raises Uneditable for a value that an alias, a merge or a variable shares with others."""
    if isinstance(mapping, CommentedMap) and name not in dict(mapping.non_merged_items()):
        raise Uneditable(f"`{name}` is merged from an alias (<<)", where=at, remedy="edit it by hand")
    if anchor(value):
        raise Uneditable(f"`{name}` comes from the anchor &{anchor(value)}", where=at, remedy="edit it by hand")
    if isinstance(value, str) and has_variable(value):
        raise Uneditable(f"`{name}` comes from a variable: {value}", where=at, remedy="edit the variable by hand")


def anchor(value: Any) -> str | None:
    """Returns the name of the anchor (&) that a value has."""
    found = getattr(value, "anchor", None)
    return getattr(found, "value", None)
