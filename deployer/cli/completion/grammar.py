"""The kind of name that fits a word being typed, from the command and the words before it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a word: the `kind` of name, the text `before` the part that is completed, that `part`, and the words
    that were `given` before, by kind (`table`, `stack`, `project`, `specs`)."""

    kind: str
    before: str
    part: str
    given: Mapping[str, str] = field(default_factory=dict)


def grammar() -> Node:
    """Returns the commands: groups have `commands`; a command has `options` by their names, and `arguments`.

    The value of an option is the kind of names that it takes: empty for any text, None for a flag. An argument is its
    kind; a kind that ends in `…` may be repeated.
    """
    found: Node = json.loads((files("deployer.cli.completion") / "grammar.json").read_text(encoding="utf-8"))
    return found


def place_of(root: Node, words: Sequence[str], incomplete: str) -> Place | None:
    """Returns the place of the incomplete word after `words`; None where no live name is expected."""
    node, pending, given, numbers = root, None, dict[str, str](), list[str]()
    only_arguments = False
    for word in words:
        if pending is not None:
            given[pending] = word
            pending = None
        elif word.startswith("-") and len(word) > 1 and not only_arguments:
            if word == "--":
                only_arguments = True
                continue
            name, equals, value = word.partition("=")
            kind = node["options"].get(name)
            if kind is not None and equals:
                given[kind] = value
            elif kind is not None:
                pending = kind
        elif "commands" in node:
            if word not in node["commands"]:
                return None
            node = node["commands"][word]
        else:
            numbers.append(word)
    for kind, word in zip(_kinds(node, len(numbers)), numbers, strict=False):
        given.setdefault(kind, word)
    if pending is not None:
        return _place(pending, "", incomplete, given)
    if incomplete.startswith("-") and not only_arguments:
        name, equals, value = incomplete.partition("=")
        kind = node["options"].get(name)
        return _place(kind, f"{name}=", value, given) if kind and equals else None
    if "commands" in node:
        return None
    kinds = _kinds(node, len(numbers) + 1)
    return _place(kinds[len(numbers)], "", incomplete, given) if len(kinds) > len(numbers) else None


def _kinds(node: Node, number: int) -> list[str]:
    """Returns the kinds of the first arguments of a command."""
    declared: list[str] = list(node.get("arguments", ()))
    while declared and declared[-1].endswith("…") and len(declared) < number:
        declared.append(declared[-1])
    return [each.removesuffix("…") for each in declared]


def _place(kind: str, before: str, text: str, given: Mapping[str, str]) -> Place | None:
    if kind not in ("table", "address", "column", "columns", "service", "new-service", "stack"):
        return None
    if kind == "columns":
        start, comma, last = text.rpartition(",")
        return Place("column", before + start + comma, last, given)
    return Place(kind, before, text, given)
