"""Column types as values of a small closed union, which can be compared, printed and hashed without Arrow.

`format_type` returns the text of a type, and `deployer.specs.types.parser` reads it. `deployer.specs.types.arrow`
converts types to Arrow.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import assert_never

from deployer.errors import Position
from deployer.specs.types.computed import Computed


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without children; `args` are its parameters: `Scalar("decimal128", (10, 2))`."""

    name: str
    args: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of any length. `large`: its offsets have 64 bits."""

    item: Column
    large: bool = False


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """A list, such as a vector, whose values all have exactly `size` items."""

    item: Column
    size: int


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct of named fields. Each field is a column with its own nullability and description."""

    fields: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from keys, which are never null, to values."""

    key: Column
    value: Column


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A dictionary: each distinct value is stored once, and rows refer to it by an integer index."""

    index: Scalar
    value: Scalar


@dataclass(frozen=True, slots=True)
class Blob:
    """Large binary values that Lance stores apart and reads lazily."""


ColumnType = Scalar | ListOf | FixedSizeList | Struct | MapOf | Dictionary | Blob


@dataclass(frozen=True, slots=True)
class Column:
    """A named column, or a field of a nested type. `at` is the place of its declaration, which comparisons ignore."""

    name: str
    type: ColumnType
    nullable: bool = True
    description: str = ""
    renamed_from: str | None = None
    at: Position | None = field(default=None, compare=False, repr=False)
    default: str = ""  #: SQL for the values of rows that are written without the column; top-level columns only
    using: str | None = None  #: SQL that converts the values to a narrower or other type; plans use it for nothing else
    source: str | None = None  #: the name that the column has in files, which may be empty; top-level columns only
    computed: Computed | None = None  #: how its values are computed from other columns; top-level columns only
    sensitive: bool = False  #: pages and reports do not show its values; items, keys and values are never sensitive


_BARE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def format_type(column_type: ColumnType) -> str:
    """Returns the canonical text of a type, which `parse_type` reads. The text has no descriptions."""
    match column_type:
        case Scalar(name, ()):
            return name
        case Scalar(name, args):
            text = ", ".join(str(arg) for arg in args)
            return f"{name}({text})" if name.startswith("decimal") else f"{name}[{text}]"
        case ListOf(item, large):
            return f"{'large_list' if large else 'list'}<{_format_child(item)}>"
        case FixedSizeList(item, size):
            return f"fixed_size_list<{_format_child(item)}, {size}>"
        case Struct(fields):
            return f"struct<{', '.join(f'{_format_name(f.name)}: {_format_child(f)}' for f in fields)}>"
        case MapOf(key, value):
            return f"map<{format_type(key.type)}, {_format_child(value)}>"
        case Dictionary(index, value):
            return f"dictionary<{format_type(index)}, {format_type(value)}>"
        case Blob():
            return "blob"
        case _:
            assert_never(column_type)


def _format_child(column: Column) -> str:
    return format_type(column.type) + ("" if column.nullable else " not null")


def _format_name(name: str) -> str:
    return name if _BARE_NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def children(column_type: ColumnType) -> tuple[Column, ...]:
    """Returns the fields, items, keys and values directly inside a type."""
    match column_type:
        case Scalar() | Dictionary() | Blob():  # first, because most types are one of these
            return ()
        case ListOf(item) | FixedSizeList(item):
            return (item,)
        case Struct(fields):
            return fields
        case MapOf(key, value):
            return (key, value)
        case _:
            assert_never(column_type)


def holds_blob(column_type: ColumnType) -> bool:
    """Returns whether the type is a blob or contains one in a nested field."""
    return isinstance(column_type, Blob) or any(holds_blob(each.type) for each in children(column_type))
