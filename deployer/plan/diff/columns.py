"""The difference between two lists of columns, nested fields included. Pure: the one place that compares columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from deployer.plan.changes import (
    AddColumn,
    ChangeColumnComputed,
    ChangeColumnDefault,
    ChangeColumnDescription,
    ChangeColumnSensitive,
    ChangeColumnSource,
    ColumnChange,
    ColumnPath,
    ConvertColumn,
    DropColumn,
    RelaxNullability,
    RenameColumn,
    ReorderColumns,
    TightenNullability,
    WidenColumn,
)
from deployer.specs.types.computed import succeeding, with_renamed_inputs
from deployer.specs.types.types import Column, ColumnType, Dictionary, FixedSizeList, ListOf, MapOf, Scalar, Struct


def diff_columns(
    address: str, live: Sequence[Column], desired: Sequence[Column], parent: ColumnPath = ()
) -> Iterator[ColumnChange]:
    """Returns the changes that turn `live` into `desired`; `deployer.plan.stages` orders them among all changes of a
    table.

    A desired column is the live column with its name, otherwise the live column that its `renamed_from` names,
    otherwise a new column.
    """
    if live == desired:
        return
    before = {column.name: column for column in live}
    wanted = {column.name for column in desired}
    origin: dict[str, Column] = {}
    for column in desired:
        if column.name in before:
            origin[column.name] = before[column.name]
        elif column.renamed_from in before and column.renamed_from not in wanted:
            origin[column.name] = before[column.renamed_from]
    kept = {column.name for column in origin.values()}
    for column in live:
        if column.name not in kept:
            yield DropColumn(address, (*parent, column.name))
    renames = {source.name: name for name, source in origin.items() if source.name != name}
    previous: str | None = None
    for column in desired:
        source = origin.get(column.name)
        if source is None:
            yield AddColumn(address, (*parent, column.name), column, previous)
        else:
            if not parent and source.computed is not None and renames:
                source = replace(source, computed=with_renamed_inputs(source.computed, renames))
            yield from _diff_column(address, source, column, parent)
        previous = column.name
    yield from _diff_order(address, live, desired, origin, parent)


def _diff_column(address: str, live: Column, desired: Column, parent: ColumnPath) -> Iterator[ColumnChange]:
    path = (*parent, desired.name)
    if live.name != desired.name:
        yield RenameColumn(address, (*parent, live.name), desired.name)
    inside = tuple(_diff_type(address, live.type, desired.type, path, desired.using))
    if desired.using and not parent and any(map(_wants_values, inside)):
        yield ConvertColumn(address, path, live.type, desired.type, desired.using)
    else:
        yield from inside
    if desired.nullable and not live.nullable:
        yield RelaxNullability(address, path)
    if live.nullable and not desired.nullable:
        yield TightenNullability(address, path)
    if live.description != desired.description:
        yield ChangeColumnDescription(address, path, live.description, desired.description)
    if live.default != desired.default:
        yield ChangeColumnDefault(address, path, live.default, desired.default)
    if live.source != desired.source:
        yield ChangeColumnSource(address, path, live.source, desired.source)
    if live.sensitive != desired.sensitive:
        yield ChangeColumnSensitive(address, path, live.sensitive, desired.sensitive)
    if live.computed != desired.computed:
        after = None if desired.computed is None else succeeding(live.computed, desired.computed)
        yield ChangeColumnComputed(address, path, live.computed, after)


def _wants_values(change: ColumnChange) -> bool:
    """Returns whether rows need values that only an expression can give. A column's expression also covers its nested
    fields."""
    return isinstance(change, ConvertColumn) or (isinstance(change, AddColumn) and not change.definition.nullable)


def _diff_type(
    address: str, live: ColumnType, desired: ColumnType, path: ColumnPath, using: str | None
) -> Iterator[ColumnChange]:
    match live, desired:
        case Struct(before), Struct(after):
            yield from diff_columns(address, before, after, path)
        case (ListOf(before), ListOf(after)) if live.large == desired.large:
            yield from _diff_child(address, before, after, path)
        case (FixedSizeList(before, size), FixedSizeList(after, length)) if size == length:
            yield from _diff_child(address, before, after, path)
        case MapOf(key, value), MapOf(other_key, other_value):
            yield from _diff_child(address, key, other_key, path)
            yield from _diff_child(address, value, other_value, path)
        case _:
            if live != desired:
                if is_widening(live, desired):
                    yield WidenColumn(address, path, live, desired)
                else:
                    yield ConvertColumn(address, path, live, desired, using)


def _diff_child(address: str, live: Column, desired: Column, path: ColumnPath) -> Iterator[ColumnChange]:
    """Compares children. Items of lists and maps have conventional names, which do not count as changes."""
    renamed = Column(
        live.name,
        desired.type,
        desired.nullable,
        desired.description,
        default=desired.default,
        sensitive=desired.sensitive,
    )
    yield from _diff_column(address, live, renamed, path)


def _diff_order(
    address: str, live: Sequence[Column], desired: Sequence[Column], origin: dict[str, Column], parent: ColumnPath
) -> Iterator[ColumnChange]:
    final = {source.name: name for name, source in origin.items()}
    before = tuple(final[column.name] for column in live if column.name in final)
    after = tuple(column.name for column in desired if column.name in origin)
    if before != after:
        yield ReorderColumns(address, parent, before, after)


# integers fit a wider integer, and a float whose mantissa can hold them (IEEE 754: 11, 24 and 53 bits)
_NUMBERS = {
    "int8": ("int16", "int32", "int64", "float16", "float32", "float64"),
    "int16": ("int32", "int64", "float32", "float64"),
    "int32": ("int64", "float64"),
    "int64": (),
    "uint8": ("uint16", "uint32", "uint64", "int16", "int32", "int64", "float16", "float32", "float64"),
    "uint16": ("uint32", "uint64", "int32", "int64", "float32", "float64"),
    "uint32": ("uint64", "int64", "float64"),
    "uint64": (),
    "float16": ("float32", "float64"),
    "float32": ("float64",),
    "string": ("large_string",),
    "binary": ("large_binary",),
    "date32": ("date64",),
}


def is_widening(before: ColumnType, after: ColumnType) -> bool:
    """Returns whether every value of `before` is a value of `after`."""
    match before, after:
        case Dictionary(_, value), _ if value == after:
            return True
        case Scalar(name, args), Scalar(other, other_args):
            if name.startswith("decimal") and other.startswith("decimal"):
                return _wider_decimal(before, after)
            return not args and not other_args and other in _NUMBERS.get(name, ())
        case _:
            return False


def _wider_decimal(before: Scalar, after: Scalar) -> bool:
    precision, scale = (int(arg) for arg in before.args)
    new_precision, new_scale = (int(arg) for arg in after.args)
    return new_scale >= scale and new_precision - new_scale >= precision - scale
