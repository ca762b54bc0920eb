"""Reads types from their text: `int64`, `timestamp[us, UTC]`, `list<string>`, `struct<a: int32 not null, b: blob>`.

type    = name | name "[" args "]" | name "(" args ")" | name "<" children ">"
child   = type [ "not null" ]
field   = name ":" child                       a name that is not an identifier is in double quotes, as in JSON
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from deployer.errors import InvalidInput
from deployer.specs.types.names import (
    CONTAINERS,
    INSTEAD,
    INTEGERS,
    MAX_BINARY_SIZE,
    MAX_DEPTH,
    MAX_PRECISION,
    MAX_SIZE,
    NAMES,
    PLAIN,
    REFUSED_BY_LANCE,
    UNITS_OF,
)
from deployer.specs.types.types import (
    Blob,
    Column,
    ColumnType,
    Dictionary,
    FixedSizeList,
    ListOf,
    MapOf,
    Scalar,
    Struct,
)


@dataclass(frozen=True, slots=True)
class BadType:
    """The reason why a text is not a valid type: the rule that it breaks, what is wrong and what to do."""

    rule: str
    what: str
    remedy: str


def parse_type(text: str) -> ColumnType:
    """Returns the type that `text` names. Raises InvalidInput for an invalid type; the error names the fault."""
    read = read_type(text)
    if isinstance(read, BadType):
        raise InvalidInput(read.what, where=f"type `{text}`", remedy=read.remedy)
    return read


_SIMPLE: Mapping[str, ColumnType] = {**{name: Scalar(name) for name in PLAIN}, "blob": Blob()}


@lru_cache(maxsize=4096)
def read_type(text: str) -> ColumnType | BadType:
    """Returns the type that `text` names, or the reason why the text is not a valid type."""
    if simple := _SIMPLE.get(text):
        return simple
    try:
        parser = _Parser(text)
        column_type = parser.type()
        parser.end()
    except _Stop as stop:
        return stop.bad
    return column_type


class _Stop(Exception):
    def __init__(self, rule: str, what: str, remedy: str) -> None:
        self.bad = BadType(rule, what, remedy)


def _bad_syntax(what: str, remedy: str) -> _Stop:
    return _Stop("type-syntax", what, remedy)


def _bad_parameter(what: str, remedy: str) -> _Stop:
    return _Stop("type-parameter", what, remedy)


_TOKEN = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*|-?[0-9]+|"(?:[^"\\]|\\.)*"|[\[\](),:<>]|$|.)', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAMED = 'write struct<a: int32>, and names other than letters, digits and _ as in struct<"Total Amount": int32>'
_UNIT_ARGS = re.compile(r"\s*\[([^\[\]<>]*)\]")


class _Parser:
    """A recursive-descent parser of one type. `position` is the index after the last token that was taken."""

    def __init__(self, text: str) -> None:
        self.text, self.position, self.depth = text, 0, 0

    def peek(self) -> str:
        found = _TOKEN.match(self.text, self.position)
        return found[1] if found else ""

    def take(self) -> str:
        found = _TOKEN.match(self.text, self.position)
        if not found:
            return ""
        self.position = found.end()
        return found[1]

    def expect(self, token: str, example: str) -> None:
        at = self.position
        if (got := self.take()) != token:
            behind = f"behind `{self.text[:at].strip()}`" if self.text[:at].strip() else "at its start"
            what = f"`{token}` is missing {behind}" if not got else f"`{got}` {behind} should be `{token}`"
            raise _bad_syntax(f"type `{self.text}` is incomplete or misspelled: {what}", f"write {example}")

    def end(self) -> None:
        if rest := self.text[self.position :].strip():
            known = self.text[: self.position].strip()
            hint = "use `nullable: false` of the column" if rest == "not null" else f"write `{known}` alone"
            raise _bad_syntax(f"type `{self.text}` has `{rest}` behind its end", hint)

    def type(self) -> ColumnType:
        name = self.take()
        if not _NAME.fullmatch(name):
            got = f"has `{name}` where a type's name belongs" if name else "ends where a type's name belongs"
            raise _bad_syntax(f"type `{self.text}` {got}", "write a type such as int64, string or list<string>")
        if simple := _SIMPLE.get(name):
            return self.simple(simple, name)
        if name in UNITS_OF:
            return self.with_unit(name)
        if name in MAX_PRECISION:
            return self.decimal(name)
        if name == "fixed_size_binary":
            self.expect("[", "fixed_size_binary[16]")
            size = self.integer("fixed_size_binary[16]", "a size", 1, MAX_BINARY_SIZE)
            self.expect("]", "fixed_size_binary[16]")
            return Scalar(name, (size,))
        if name in CONTAINERS:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise _bad_parameter(f"the type is nested more than {MAX_DEPTH} deep", "flatten it")
            container = self.container(name)
            self.depth -= 1
            return container
        raise self.unknown(name)

    def unknown(self, name: str) -> _Stop:
        if name in REFUSED_BY_LANCE:
            return _Stop("unsupported-type", f"Lance does not store the type `{name}`", f"use {INSTEAD[name]}")
        if instead := INSTEAD.get(name.lower()):
            return _Stop("unknown-type", f"unknown type `{name}`", f"use {instead}")
        near = difflib.get_close_matches(name.lower(), NAMES, 1, 0.6)
        remedy = f"did you mean {near[0]}?" if near else "see docs/spec/types.md for all types"
        return _Stop("unknown-type", f"unknown type `{name}`", remedy)

    def simple(self, simple: ColumnType, name: str) -> ColumnType:
        if self.peek() in ("[", "(", "<"):
            opening = self.peek()
            raise _bad_parameter(f"type `{name}` takes no parameters, but `{opening}` follows", f"write {name}")
        return simple

    def with_unit(self, name: str) -> Scalar:
        units = UNITS_OF[name]
        zoned = name == "timestamp"
        example = f"{name}[us] or {name}[us, UTC]" if zoned else f"{name}[{units[0]}]"
        found = _UNIT_ARGS.match(self.text, self.position)
        if not found:
            raise _bad_parameter(f"type `{name}` needs a unit in square brackets", f"write {example}")
        self.position = found.end()
        args = [arg.strip() for arg in found[1].split(",")]
        if args[0] not in units:
            allowed = ", ".join(units)
            raise _bad_parameter(f"`{args[0]}` is not a unit of `{name}`", f"use one of {allowed}: {example}")
        if len(args) > (2 if zoned else 1) or "" in args:
            raise _bad_parameter(f"`{name}[{found[1]}]` does not have the parameters of `{name}`", f"write {example}")
        if args[1:] and args[1].startswith("tz="):
            raise _bad_parameter(f"`{args[1]}` is not a time zone", f"write {name}[{args[0]}, {args[1][3:]}]")
        return Scalar(name, tuple(args))

    def decimal(self, name: str) -> Scalar:
        example = f"{name}(10, 2)"
        self.expect("(", example)
        precision = self.integer(example, "a precision", 1, MAX_PRECISION[name])
        self.expect(",", example)
        scale = self.integer(example, "a scale", -precision, precision)
        self.expect(")", example)
        return Scalar(name, (precision, scale))

    def integer(self, example: str, what: str, low: int, high: int) -> int:
        token = self.take()
        if not token.lstrip("-").isdecimal():
            raise _bad_parameter(f"type `{self.text}` needs {what} where it has `{token}`", f"write {example}")
        if not low <= int(token) <= high:
            raise _bad_parameter(f"{token} is not {what} of `{self.text}`", f"use {low} to {high}")
        return int(token)

    def container(self, name: str) -> ColumnType:
        match name:
            case "list" | "large_list":
                self.expect("<", f"{name}<string>")
                item = self.child("item", f"{name}<string>")
                self.expect(">", f"{name}<string>")
                return ListOf(item, large=name == "large_list")
            case "fixed_size_list" | "vector":
                example = f"{name}<float32, 768>"
                self.expect("<", example)
                item = self.child("item", example)
                self.expect(",", example)
                size = self.integer(example, "a size", 1, MAX_SIZE)
                self.expect(">", example)
                return FixedSizeList(item, size)
            case "map":
                self.expect("<", "map<string, int64>")
                key = self.child("key", "map<string, int64>")
                self.expect(",", "map<string, int64>")
                value = self.child("value", "map<string, int64>")
                self.expect(">", "map<string, int64>")
                return MapOf(Column("key", key.type, nullable=False), value)
            case "dictionary":
                return self.dictionary()
            case _:
                return self.struct()

    def child(self, name: str, example: str) -> Column:
        column_type = self.type()
        nullable = True
        if self.peek() == "not":
            self.take()
            self.expect("null", f"{example} with `not null` behind the type")
            nullable = False
        return Column(name, column_type, nullable)

    def struct(self) -> Struct:
        example = "struct<a: int32, b: string not null>"
        self.expect("<", example)
        fields: list[Column] = []
        if self.peek() == ">":
            raise _bad_parameter(f"type `{self.text}` has a struct without fields", f"write {example}")
        while True:
            name = self.take()
            if name.startswith('"') and len(name) > 1:
                name = _unquoted(name)
            elif not _NAME.fullmatch(name):
                raise _bad_syntax(f"type `{self.text}` needs a field's name where it has `{name}`", _NAMED)
            self.expect(":", example)
            fields.append(self.child(name, example))
            if self.peek() != ",":
                break
            self.take()
        self.expect(">", example)
        names = [field.name for field in fields]
        if repeated := next((n for n in names if names.count(n) > 1), None):
            raise _Stop("duplicate-field", f"a struct has two fields `{repeated}`", "rename one of them")
        return Struct(tuple(fields))

    def dictionary(self) -> Dictionary:
        example = "dictionary<int32, string>"
        self.expect("<", example)
        index = self.type()
        self.expect(",", example)
        value = self.type()
        self.expect(">", example)
        if not isinstance(index, Scalar) or index.name not in INTEGERS:
            raise _bad_parameter(f"type `{self.text}` has an index type that is not an integer", f"write {example}")
        if not isinstance(value, Scalar):
            raise _bad_parameter(f"type `{self.text}` has values that are nested", f"write {example}")
        return Dictionary(index, value)


def _unquoted(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        raise _bad_syntax(f"{token} is not a quoted name", 'quote it as in JSON: "a \\"quoted\\" name"') from None
