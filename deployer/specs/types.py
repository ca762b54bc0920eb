"""Column types as values: a small closed union that needs no Arrow to compare, print or hash."""

from __future__ import annotations

from dataclasses import dataclass, field

from deployer.errors import Position


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without children; `args` are its parameters: `Scalar("decimal128", (10, 2))`."""

    name: str
    args: tuple[int | str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of any length; `large` has 64-bit offsets."""

    item: Column
    large: bool = False


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """Vectors: every value has exactly `size` items."""

    item: Column
    size: int


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields, each a column of its own with nullability and description."""

    fields: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class MapOf:
    """Keys (never null) to values."""

    key: Column
    value: Column


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Values stored once and referred to by an integer index."""

    index: Scalar
    value: Scalar


@dataclass(frozen=True, slots=True)
class Blob:
    """Large binary values that Lance stores apart and reads lazily."""


ColumnType = Scalar | ListOf | FixedSizeList | Struct | MapOf | Dictionary | Blob


@dataclass(frozen=True, slots=True)
class Column:
    """A named column, or a field of a nested type. `at` is where it was declared and takes no part in equality."""

    name: str
    type: ColumnType
    nullable: bool = True
    description: str = ""
    renamed_from: str | None = None
    at: Position | None = field(default=None, compare=False, repr=False)
