"""The number of bytes that the values of one column have in a table, from types and row counts alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

from deployer.live.model import TableStatistics
from deployer.plan import changes as c
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
    children,
)

#: Bytes of one value, after Arrow's columnar format: https://arrow.apache.org/docs/format/Columnar.html
_WIDTHS = {
    **dict.fromkeys(("null",), Fraction(0)),
    **dict.fromkeys(("bool",), Fraction(1, 8)),
    **dict.fromkeys(("int8", "uint8"), Fraction(1)),
    **dict.fromkeys(("int16", "uint16", "float16"), Fraction(2)),
    **dict.fromkeys(("int32", "uint32", "float32", "date32", "time32"), Fraction(4)),
    **dict.fromkeys(("int64", "uint64", "float64", "date64", "time64", "timestamp", "duration"), Fraction(8)),
    **dict.fromkeys(("decimal128", "uuid"), Fraction(16)),
    **dict.fromkeys(("decimal256",), Fraction(32)),
}


SizedChange = c.AddColumn | c.DropColumn | c.WidenColumn | c.ConvertColumn | c.ChangeColumnComputed


@dataclass(frozen=True, slots=True)
class Bytes:
    """A size; `about`: it is estimated as a share of the table's bytes, because the size of the values is unknown."""

    number: int
    about: bool = False


def column_bytes(
    change: SizedChange,
    statistics: TableStatistics,
    before: Sequence[Column],
    after: Sequence[Column],
) -> Bytes:
    """Returns the bytes that the change writes, or the bytes of the values that a drop deletes; at most those of the
    table.

    `before` and `after` are the table's columns. A change inside of a column writes the whole column.
    """
    changed = _changed(change, before, after)
    size = _bytes_of(changed, statistics, before)
    lost = isinstance(change, c.DropColumn)
    return Bytes(min(size.number, statistics.bytes)) if lost and not size.about else size


def values_bytes(name: str, rows: int, statistics: TableStatistics, columns: Sequence[Column]) -> Bytes:
    """Returns the bytes of values of a column in some of the table's rows."""
    size = _bytes_of(_at(columns, (name,)), statistics, columns)
    return Bytes(size.number * rows // max(statistics.rows, 1), size.about)


def _bytes_of(kind: ColumnType | None, statistics: TableStatistics, columns: Sequence[Column]) -> Bytes:
    """Returns the bytes of values of a type in all rows; None stands for a column of plain values."""
    width = _width(kind) if kind is not None else None
    if width is not None:
        return Bytes(int(statistics.rows * width))
    parts = 1 if kind is None else _parts(kind)
    whole = max(sum(_parts(column.type) for column in columns), parts)
    return Bytes(statistics.bytes * parts // whole, about=True)


def _changed(
    change: SizedChange,
    before: Sequence[Column],
    after: Sequence[Column],
) -> ColumnType | None:
    """Returns the type of the written or deleted values; None where it is unknown, or is inside of lists."""
    match change:
        case c.DropColumn(column=path):
            return _at(before, path)
        case c.AddColumn(column=(_,), definition=column):
            return column.type
        case c.WidenColumn(column=(_,), after=kind) | c.ConvertColumn(column=(_,), after=kind):
            return kind
        case (
            c.ChangeColumnComputed(column=path)
            | c.AddColumn(column=path)
            | c.WidenColumn(column=path)
            | c.ConvertColumn(column=path)
        ):
            return _at(after, path[:1])
        case _:
            assert_never(change)


def _at(columns: Sequence[Column], path: c.ColumnPath) -> ColumnType | None:
    found = next((column.type for column in columns if column.name == path[0]), None)
    for name in path[1:]:
        if not isinstance(found, Struct):
            return None
        found = next((field.type for field in found.fields if field.name == name), None)
    return found


def _width(kind: ColumnType) -> Fraction | None:
    """Returns bytes of each value; None where they differ."""
    match kind:
        case Scalar("fixed_size_binary", (size,)):
            return Fraction(size)
        case Scalar(name):
            return _WIDTHS.get(name)
        case FixedSizeList(item, size):
            width = _width(item.type)
            return None if width is None else width * size
        case Struct(fields):
            return _sum(_width(field.type) for field in fields)
        case Dictionary(index):
            return _width(index)
        case ListOf() | MapOf() | Blob():
            return None
        case _:
            assert_never(kind)


def _sum(widths: Iterable[Fraction | None]) -> Fraction | None:
    total = Fraction(0)
    for width in widths:
        if width is None:
            return None
        total += width
    return total


def _parts(kind: ColumnType) -> int:
    """Returns how many columns of plain values a type is, nested ones counted one by one."""
    return sum(_parts(child.type) for child in children(kind)) or 1
