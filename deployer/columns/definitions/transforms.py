"""Makes columns from the arguments of `add_columns` and `alter_columns`: SQL and functions become definitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.errors import InvalidFunction
from deployer.functions.binding import BoundOutput, Transforms, UnpackedUDF, bind_transforms
from deployer.functions.model import UDF
from deployer.platform.sql.one_expression import NotOneExpression
from deployer.platform.sql.planning import NotComputable, plan_expression
from deployer.specs.types.arrow import column_of
from deployer.specs.types.computed import VERSION, ComputedBySql, ComputedByUdf
from deployer.specs.types.types import Column, format_type

if TYPE_CHECKING:
    from deployer.specs.types.types import ColumnType

SaveFunction = Callable[[UDF], str]  #: packages a function below the root, and returns the hash of the package
_UNSAVED = "0" * 32  #: stands for the hash of a function that is not saved yet
_PLAINER = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


@dataclass(frozen=True, slots=True)
class MadeColumn:
    """A column with its definition. `udf` is the function that computes it, which is not saved yet; None for SQL."""

    column: Column
    udf: UDF | None = None


def columns_of_transforms(schema: pa.Schema, transforms: Transforms) -> tuple[MadeColumn, ...]:
    """Returns the columns that transforms add to a table of this schema.

    Raises InvalidFunction, a ValueError, for transforms that do not fit. Warns (UserWarning) of parameters whose types
    are not checked.
    """
    return tuple(_made(each, schema) for each in bind_transforms(schema, transforms))


def transformed(column: Column, schema: pa.Schema, given: Any) -> MadeColumn:
    """Returns a column of the table with the definition that a transform gives it: SQL, a function, or a function and
    its input columns.

    A function that makes several columns keeps making this column by the same output. Raises InvalidFunction for a
    transform that does not fit, and for values of another type than the column's.
    """
    others = pa.schema([field for field in schema if field.name != column.name])
    where = f"column `{column.name}`"
    if isinstance(given, UDF) and given.is_multiple:
        bound = _same_output(column, bind_transforms(others, _apart(given, others)), given, where)
    else:
        [bound] = bind_transforms(others, {column.name: given})
    made = _made(bound, others)
    if made.udf is not None and made.column.type != column.type:
        raise InvalidFunction(
            f"`{made.udf.name}` makes {format_type(made.column.type)}, and the column is {format_type(column.type)}",
            where=where,
            remedy="let the function make the column's type, or add another column for it",
        )
    computed = made.column.computed
    if computed is not None and column.computed is not None:
        computed = replace(computed, on_load=column.computed.on_load)
    return replace(made, column=replace(column, computed=computed))


def saved(made: Sequence[MadeColumn], columns: Sequence[Column], save: SaveFunction) -> tuple[Column, ...]:
    """Returns the checked `columns` with the hashes of their functions. Saves each function once. `made` are the same
    columns before the check."""
    hashes: dict[int, str] = {}
    found = []
    for each, column in zip(made, columns, strict=True):
        computed = column.computed
        if each.udf is not None and isinstance(computed, ComputedByUdf):
            if id(each.udf) not in hashes:
                hashes[id(each.udf)] = save(each.udf)
            column = replace(column, computed=replace(computed, function=hashes[id(each.udf)]))
        found.append(column)
    return tuple(found)


def _apart(udf: UDF, others: pa.Schema) -> UnpackedUDF:
    """Returns the function with a prefix for its outputs, so that their names differ from those of all columns. The
    function may already make some of these columns."""
    there = {name.lower() for name in others.names}
    prefix = ""
    while any(f"{prefix}{each.name}".lower() in there for each in udf.outputs):
        prefix += "new_"
    return UnpackedUDF(udf, prefix)


def _same_output(column: Column, bound: Sequence[BoundOutput], udf: UDF, where: str) -> BoundOutput:
    wanted = column.computed.output if isinstance(column.computed, ComputedByUdf) else ""
    found = next((each for each in bound if each.output in (wanted or column.name, column.name)), None)
    if found is None:
        names = ", ".join(str(each.output) for each in bound)
        what = f"`{udf.name}` makes {names}, and not {wanted or column.name}"
        raise InvalidFunction(what, where=where, remedy="name the function's output as the column")
    return replace(found, name=column.name)


def _made(bound: BoundOutput, schema: pa.Schema) -> MadeColumn:
    if bound.udf is None or bound.type is None:
        return MadeColumn(column_of_sql(bound.name, bound.sql, schema))
    udf = bound.udf
    if not re.fullmatch(VERSION, udf.version):
        raise InvalidFunction(
            f"the version {udf.version!r} of `{udf.name}` cannot be kept",
            where=f"column `{bound.name}`",
            remedy="use up to 64 letters, digits and . _ + -",
        )
    computed = ComputedByUdf(udf.name, _UNSAVED, bound.inputs, udf.version, bound.output or "")
    return MadeColumn(Column(bound.name, bound.type, computed=computed), udf)


def column_of_sql(name: str, sql: str, schema: pa.Schema, *, on_load: bool = False) -> Column:
    """Returns a column with the type of the expression. Raises InvalidFunction for an expression that cannot be
    computed from the table's columns."""
    return Column(
        name,
        _type_of_sql(BoundOutput(name, None, sql=sql), schema),
        computed=ComputedBySql(sql.strip(), on_load=on_load),
    )


def _type_of_sql(bound: BoundOutput, schema: pa.Schema) -> ColumnType:
    where = f"column `{bound.name}`"
    try:
        kind = plan_expression(bound.sql, schema).type
    except NotOneExpression as wrong:
        what = f"{bound.sql!r} is not one SQL expression: it has {wrong}"
        raise InvalidFunction(what, where=where, remedy="write one value, such as distance * 1.609344") from None
    except NotComputable as wrong:
        remedy = f"use columns of the table: {', '.join(schema.names[:10])}"
        raise InvalidFunction(f"{bound.sql!r} cannot be computed: {wrong}", where=where, remedy=remedy) from None
    if pa.types.is_null(kind):
        what = f"{bound.sql!r} has no type, since all of its values are null"
        raise InvalidFunction(what, where=where, remedy="cast it: CAST(NULL AS VARCHAR)")
    return column_of(pa.field(bound.name, _PLAINER.get(kind, kind))).type
