"""Adds and changes columns from the arguments of the table API: SQL, functions and dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.columns.definitions.add import add_columns, check_new_columns
from deployer.columns.definitions.alter import Alteration, alter_columns, check_alterations
from deployer.columns.definitions.checked import live_spec
from deployer.columns.definitions.drop import known_column
from deployer.columns.definitions.transforms import MadeColumn, SaveFunction, columns_of_transforms, saved, transformed
from deployer.errors import InvalidFunction, InvalidInput
from deployer.functions.packages.stored import save_function
from deployer.platform.system.processes import local_user
from deployer.specs.types.arrow import column_of
from deployer.specs.types.parser import parse_type

if TYPE_CHECKING:
    from deployer.functions.binding import Transforms
    from deployer.specs.types.types import Column, ColumnType
    from deployer.tables.open_table import OpenTable

_PARTS = ("path", "udf", "rename", "nullable", "data_type", "using", "on_load")


def add_transformed(table: OpenTable, transforms: Transforms, *, on_load: bool = False) -> None:
    """Adds the columns that transforms define (see `Table.add_columns`)."""
    made = columns_of_transforms(table.schema, transforms)
    columns = [_with_on_load(each.column, on_load) for each in made]
    try:
        checked = check_new_columns(table, columns)
    except InvalidFunction:
        raise
    except InvalidInput as error:
        raise InvalidFunction(error.what, where=error.where, remedy=error.remedy) from None
    add_columns(table, saved(made, checked, _saver(table)))


def alter_transformed(table: OpenTable, alterations: Sequence[Mapping[str, Any]]) -> None:
    """Makes the alterations that dicts describe (see `Table.alter_columns`)."""
    spec = live_spec(table)
    columns = {column.name: column for column in spec.columns}
    found: list[Alteration] = []
    made: dict[int, MadeColumn] = {}
    for number, given in enumerate(alterations):
        if not isinstance(given, Mapping) or "path" not in given or len(given) < 2:
            what = f"{given!r} is not an alteration"
            raise InvalidInput(
                what, where=table.address, remedy='give {"path": "column", "udf": udf}, rename or others'
            )
        if unknown := [name for name in given if name not in _PARTS]:
            what = f"an alteration of {given['path']!r} has an unknown part {unknown[0]!r}"
            raise InvalidInput(what, where=table.address, remedy=f"use {', '.join(_PARTS[1:])}")
        column = columns[known_column(spec, given["path"])]
        computed = column.computed
        if "udf" in given:
            made[number] = transformed(column, table.schema, given["udf"])
            computed = made[number].column.computed
        if "on_load" in given:
            if computed is None:
                what = f"column {column.name} is not computed, so loads bring its values"
                raise InvalidInput(what, where=table.address, remedy="give it a `udf` too")
            computed = replace(computed, on_load=given["on_load"] is True)
        kind = _type(given["data_type"], column, table) if given.get("data_type") is not None else None
        found.append(
            Alteration(column.name, given.get("rename"), given.get("nullable"), kind, given.get("using"), computed)
        )
    check_alterations(table, found)
    save = _saver(table)
    for number, each in made.items():
        [column] = saved([each], [replace(each.column, computed=found[number].computed)], save)
        found[number] = replace(found[number], computed=column.computed)
    alter_columns(table, found)


def _saver(table: OpenTable) -> SaveFunction:
    return lambda udf: save_function(table.root, udf, local_user())


def _with_on_load(column: Column, on_load: bool) -> Column:
    if column.computed is None or not on_load:
        return column
    return replace(column, computed=replace(column.computed, on_load=True))


def _type(given: Any, column: Column, table: OpenTable) -> ColumnType:
    if isinstance(given, pa.DataType):
        return column_of(pa.field(column.name, given)).type
    if isinstance(given, str):
        return parse_type(given)
    what = f"{given!r} is not a type for column {column.name}"
    raise InvalidInput(what, where=table.address, remedy='use an Arrow type, or a text such as "float64"')
