"""Reads YAML text as nodes with positions.

Scalars are resolved by the core schema of YAML 1.2 (section 10.3.2), so `no`, `on`, `1_000` and `1:30` are text.
Anchors, aliases and merge keys work. Ambiguous forms, such as duplicate keys and tabs, are problems.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined]
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from deployer.errors import Position, Problem
from deployer.specs.yaml.syntax_errors import MAX_DEPTH, OverLimit, stray_tabs, syntax_problem

MAX_BYTES = 16 * 1024 * 1024
MAX_VALUES = 1_000_000  # a value takes about 400 bytes of memory, and every second character of a file may be a value
# limits of the values and text that aliases add to a file, against documents that expand to very many or long values
MAX_ALIASED_NODES = 100_000
MAX_ALIASED_CHARACTERS = 1_000_000


class Node(NamedTuple):
    """A value with its place. Lines and columns count from 1. `key_line` is 0 for a node that is not a mapping's
    value."""

    value: Value
    file: str
    line: int
    column: int
    key_line: int = 0
    key_column: int = 0
    quoted: bool = False

    @property
    def at(self) -> Position:
        return Position(self.file, self.line, self.column)

    @property
    def key_at(self) -> Position:
        """The place of the key before this value, or of the value itself where it has no key."""
        return Position(self.file, self.key_line, self.key_column) if self.key_line else self.at

    def plain(self) -> Any:
        """Returns the value without places, in the form of JSON."""
        return _plain(self.value)


def _plain(value: Value) -> Any:
    if isinstance(value, dict):
        return {key: _plain(child[0]) for key, child in value.items()}
    if isinstance(value, list):
        return [_plain(child[0]) for child in value]
    return value


_new = tuple.__new__  # skips the keyword handling of Node(…), which takes half the time of making a node

Value = None | bool | int | float | str | list[Node] | dict[str, Node]


class ParsedFile(NamedTuple):
    """The documents of one file without the empty ones.

    `truncated`: the text could not be read to its end. `values` is the number of values in the file, where each key,
    scalar, list and mapping counts as one.
    """

    documents: tuple[Node, ...]
    problems: tuple[Problem, ...]
    truncated: bool
    values: int = 0


def parse_yaml(data: bytes, file: str) -> ParsedFile:
    """Returns every document of a file. `file` is the file's name in positions. Content of `data` that cannot be read
    is a problem of the result, never an exception."""
    if len(data) > MAX_BYTES:
        problem = Problem(Position(file), f"the file has more than {MAX_BYTES:,} bytes", "split it", "yaml-limit")
        return ParsedFile((), (problem,), True)
    problems: list[Problem] = []
    documents: list[Node] = []
    roots: list[Any] = []
    truncated = False
    composer = None
    try:
        composer = _Composer(data)
        while composer.check_node():
            roots.append(composer.get_node())
    except (yaml.MarkedYAMLError, yaml.reader.ReaderError, OverLimit) as error:
        problems.append(syntax_problem(error, data, file))
        truncated = True
    for root in roots:
        reader = _Reader(file, has_aliases=b"*" in data and b"&" in data)
        try:
            node = reader.node(root)
        except _Stop as stop:
            problems.append(stop.problem)
            truncated = True
            continue
        problems += reader.problems
        if node.value is not None:
            documents.append(node)
    if b"\t" in data and not truncated:
        problems += stray_tabs(data.decode(errors="replace"), roots, file)
    return ParsedFile(tuple(documents), tuple(problems), truncated, composer.values if composer is not None else 0)


class _Composer(CParser):
    """libyaml's parser, which returns a graph of nodes. `_Reader` resolves the types of scalars without a tag."""

    def __init__(self, data: bytes) -> None:
        CParser.__init__(self, data)
        self.depth = self.values = 0

    def resolve(self, kind: type, value: str, implicit: Any) -> str:
        return _PLAIN if kind is ScalarNode and implicit[0] else _TEXT

    def descend_resolver(self, parent: Any, index: Any) -> None:
        self.depth += 1
        self.values += 1
        if self.depth > MAX_DEPTH:
            raise OverLimit(parent.start_mark, f"values are nested more than {MAX_DEPTH} deep", "flatten them")
        if self.values > MAX_VALUES:
            mark = parent.start_mark if parent is not None else None  # None for the top value of a document
            raise OverLimit(mark, f"the file has more than {MAX_VALUES:,} values", "split it")

    def ascend_resolver(self) -> None:
        self.depth -= 1


_PLAIN, _TEXT = "plain", "text"
_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "seq", "map")}
_STR_TAG = "tag:yaml.org,2002:str"

_CONSTANTS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + inf: float(sign + "inf") for sign in ("", "+", "-") for inf in (".inf", ".Inf", ".INF")},
}
_NUMBER = re.compile(
    r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
)
_MAYBE_NUMBER = frozenset("+-.0123456789")


def resolve_plain(text: str) -> bool | int | float | str | None:
    """Returns the value of an unquoted scalar, by the core schema of YAML 1.2."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _MAYBE_NUMBER or not (found := _NUMBER.fullmatch(text)):
        return text
    if found["float"]:
        return float(text)
    if len(text) > 400:  # larger than any type allows, and Python refuses much longer ones
        return text
    return int(text[2:], 16 if text[1] == "x" else 8) if text[1:2] in ("x", "o") else int(text)


class _Stop(Exception):
    def __init__(self, at: Position, rule: str, what: str, remedy: str) -> None:
        self.problem = Problem(at, what, remedy, rule)


class _Reader:
    """The conversion of the composed nodes of one document to `Node`s."""

    def __init__(self, file: str, *, has_aliases: bool) -> None:
        self.file, self.has_aliases = file, has_aliases
        self.problems: list[Problem] = []
        self.seen: set[int] = set()
        self.open: set[int] = set()
        self.aliased = 0  # the number of nodes that aliases repeat
        self.characters = 0  # the number of characters in the scalars that aliases repeat

    def at(self, node: Any) -> Position:
        return Position(self.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def report(self, node: Any, rule: str, what: str, remedy: str) -> None:
        self.problems.append(Problem(self.at(node), what, remedy, rule))

    def node(self, node: Any, key: Any = None) -> Node:
        mark = node.start_mark
        tag = node.tag
        quoted = tag is not _PLAIN
        value: Value
        if node.__class__ is ScalarNode:
            if self.has_aliases:
                self.count_scalar(node)
            value = resolve_plain(node.value) if tag is _PLAIN else self.scalar(node)
        else:
            if tag is not _TEXT:
                self.check_tag(node)
            value = self.collection(node)
        if key is None:
            return _new(Node, (value, self.file, mark.line + 1, mark.column + 1, 0, 0, quoted))
        behind = key.start_mark
        return _new(
            Node, (value, self.file, mark.line + 1, mark.column + 1, behind.line + 1, behind.column + 1, quoted)
        )

    def scalar(self, node: Any) -> Value:
        text: str = node.value
        if node.tag in (_TEXT, _STR_TAG):
            return text
        self.check_tag(node)
        return resolve_plain(text)

    def check_tag(self, node: Any) -> None:
        if node.tag not in _TAGS:
            self.report(node, "unknown-tag", f"unknown tag `{node.tag}`", "remove it, as specs are plain YAML")

    def collection(self, node: Any) -> Value:
        identity = id(node)
        if identity in self.open:
            raise _Stop(self.at(node), "alias-cycle", "an alias refers to a value that contains it", "remove the alias")
        again = identity in self.seen
        self.seen.add(identity)
        if again:
            self.count(node)
        self.open.add(identity)
        value: Value = (
            [self.node(item) for item in node.value] if isinstance(node, SequenceNode) else self.mapping(node)
        )
        self.open.discard(identity)
        return value

    def count(self, node: Any) -> None:
        self.aliased += len(node.value) + 1
        if self.aliased > MAX_ALIASED_NODES:
            what = f"aliases expand to more than {MAX_ALIASED_NODES:,} nodes"
            raise _Stop(self.at(node), "alias-limit", what, "write fewer aliases of aliases")

    def count_scalar(self, node: Any) -> None:
        if id(node) not in self.seen:
            self.seen.add(id(node))
            return
        self.characters += len(node.value)
        if self.characters > MAX_ALIASED_CHARACTERS:
            what = f"aliases expand to more than {MAX_ALIASED_CHARACTERS:,} characters"
            raise _Stop(self.at(node), "alias-limit", what, "shorten the text that they repeat")

    def mapping(self, node: Any) -> dict[str, Node]:
        own: dict[str, Node] = {}
        merges: list[Any] = []
        for key, value in node.value:
            if key.__class__ is ScalarNode:
                if key.tag is _PLAIN and key.value == "<<":
                    merges.append((key, value))
                    continue
                if self.has_aliases:
                    self.count_scalar(key)
            name = self.key(key)
            if name is None:
                continue
            if name in own:
                first = own[name].key_line
                self.report(key, "duplicate-key", f"`{name}` is already set in line {first}", "keep one of the two")
                continue
            own[name] = self.node(value, key)
        for _, value in merges[:1]:
            own = self.merged(value) | own
        for key, _ in merges[1:]:
            what = "`<<` is already set in this mapping"
            self.report(key, "duplicate-key", what, "merge several at once: `<<: [*a, *b]`")
        return own

    def key(self, key: Any) -> str | None:
        if key.__class__ is not ScalarNode:
            self.report(key, "bad-key", "a mapping or list is used as a key", "use text as the key")
            return None
        if key.tag is _TEXT or key.tag == _STR_TAG:
            return str(key.value)
        if key.tag is not _PLAIN:
            self.check_tag(key)
        value = resolve_plain(key.value)
        if isinstance(value, str):
            return value
        shown = f"`{key.value}`" if key.value else "an empty key"
        self.report(key, "bad-key", f"{shown} is not text, and keys must be", f'write "{key.value}" in quotes')
        return None

    def merged(self, node: Any) -> dict[str, Node]:
        sources = node.value if isinstance(node, SequenceNode) else [node]
        merged: dict[str, Node] = {}
        for source in sources:
            if not isinstance(source, MappingNode):
                self.report(
                    source,
                    "bad-merge",
                    "`<<` merges something that is not a mapping",
                    "refer to a mapping: `<<: *name`",
                )
                continue
            value = self.collection(source)
            if isinstance(value, dict):
                merged = value | merged
        return merged
