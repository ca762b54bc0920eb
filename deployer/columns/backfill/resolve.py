"""Finds the definition of a column: in the table's metadata, or from a function that is given instead."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

from deployer.columns.backfill.definition import (
    Definition,
    FunctionDefinition,
    SqlDefinition,
    refuse_unknown_inputs,
)
from deployer.errors import InvalidFunction, InvalidInput
from deployer.functions.binding import bind_inputs
from deployer.functions.defined import defined_function
from deployer.functions.model import UDF
from deployer.functions.packages.needed import require_modules
from deployer.platform.isolation.trusted_functions import TrustedFunctions
from deployer.platform.sql.one_expression import NotOneExpression
from deployer.platform.sql.planning import NotComputable, plan_expression
from deployer.specs.types.arrow import arrow_field, columns_of
from deployer.specs.types.computed import ComputedBySql, ComputedByUdf
from deployer.specs.types.types import Column, format_type, holds_blob
from deployer.tables.open_table import ReadTable
from deployer.tables.read.key_values import unknown_column

FindFunction = Callable[[ReadTable, Column, ComputedByUdf], UDF]


def definition_of(table: ReadTable, name: str, udf: UDF | None, find: FindFunction) -> Definition:
    """Returns the definition that computes the column: `udf` if it is given, or else the column's own definition.

    `find` returns the function that a definition names. Other columns that the same calls of the function make are
    computed too. Raises InvalidInput for columns that do not exist or are not computed, for keys and blobs, and for
    functions that do not fit the column or the table.
    """
    columns = {column.name: column for column in columns_of(table.schema)}
    column = computable_column(table, name, is_given=udf is not None)
    if udf is not None:
        return _given(table, column, udf)
    match column.computed:
        case ComputedBySql() as computed:
            return SqlDefinition(
                computed.sql, column, _read(table, column, computed), computed.identity, computed.version
            )
        case ComputedByUdf() as computed:
            refuse_unknown_inputs(computed.inputs, table.schema.names, f"the function of column {name}", table.address)
            return _declared(table, columns, column, computed, find(table, column, computed))
        case None:
            raise _not_computed(table, name)


def computable_column(table: ReadTable, name: str, *, is_given: bool = False) -> Column:
    """Returns the column with that name. Raises InvalidInput as `definition_of` does. With `is_given`, the column needs
    no definition of its own."""
    columns = {column.name: column for column in columns_of(table.schema)}
    if name not in columns:
        raise unknown_column(name, table.schema.names, table.address)
    column = columns[name]
    if name in {*table.row_keys, *table.sort_keys}:
        raise InvalidInput(
            f"column {name} is a row key or sort key, by which files are arranged",
            where=table.address,
            remedy="compute another column from it",
        )
    if holds_blob(column.type):
        raise InvalidInput(
            f"column {name} holds blobs, which cannot be computed", where=table.address, remedy="use binary values"
        )
    if column.computed is None and not is_given:
        raise _not_computed(table, name)
    return column


def _not_computed(table: ReadTable, name: str) -> InvalidInput:
    return InvalidInput(
        f"column {name} is not computed: it has neither SQL nor a function",
        where=table.address,
        remedy="declare `computed:` for it, or pass udf=",
    )


def _read(table: ReadTable, column: Column, computed: ComputedBySql) -> tuple[str, ...]:
    """Returns the columns that the SQL reads. Where it reads none, returns another column of the table, from which the
    number of rows is known."""
    try:
        found = computed.inputs or plan_expression(computed.sql, table.schema).columns
    except (NotOneExpression, NotComputable) as wrong:
        raise InvalidInput(
            f"the SQL of column {column.name} cannot be computed: {wrong}",
            where=table.address,
            remedy="correct the expression",
        ) from None
    refuse_unknown_inputs(found, table.schema.names, f"the SQL of column {column.name}", table.address)
    return found or (next(name for name in table.schema.names if name != column.name),)


def _given(table: ReadTable, column: Column, udf: UDF) -> FunctionDefinition:
    if not isinstance(udf, UDF):  # programs without type checks may pass anything
        raise InvalidFunction(
            f"udf={udf!r} is not a function that computes a column",
            where=f"column `{column.name}`",
            remedy="decorate the function by @udf; SQL goes to alter_columns",
        )
    if udf.is_multiple:
        raise InvalidInput(
            f"the function `{udf.name}` makes several columns, and {column.name} is one",
            where=table.address,
            remedy="give a function that returns one value, or add its columns by add_columns and backfill one of them",
        )
    inputs = bind_inputs(udf, None, {each.name: each for each in columns_of(table.schema)}, f"column `{column.name}`")
    computed = column.computed
    is_own = isinstance(computed, ComputedByUdf) and (computed.version, computed.inputs) == (udf.version, inputs)
    own = computed.identity if is_own and computed is not None else _identity(udf, inputs)
    return _fitting(table, column, udf, 0, inputs, own)


def _identity(udf: UDF, inputs: tuple[str, ...]) -> str:
    """Returns the identity of a function that is not the column's own."""
    text = json.dumps([udf.name, udf.version, *inputs], ensure_ascii=False)
    return f"{udf.version}-given{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _declared(
    table: ReadTable, every: Mapping[str, Column], column: Column, computed: ComputedByUdf, udf: UDF
) -> FunctionDefinition:
    if udf.form != "batch" and len(udf.inputs) != len(computed.inputs):
        raise InvalidInput(
            f"the function of column {column.name} has {len(udf.inputs)} parameters, and its definition names "
            f"{len(computed.inputs)} columns",
            where=table.address,
            remedy="declare a column per parameter",
        )
    if not udf.is_multiple:
        own = _fitting(table, column, udf, 0, computed.inputs, computed.identity)
        return replace(own, declared=computed.version)
    places = {str(each.name): place for place, each in enumerate(udf.outputs)}
    if computed.output not in places:
        raise InvalidInput(
            f"the function of column {column.name} makes {', '.join(places)}, not {computed.output!r}",
            where=table.address,
            remedy="declare one of these as its output",
        )
    own = _fitting(table, column, udf, places[computed.output], computed.inputs, computed.identity)
    made = [
        (each, places[each.computed.output], each.computed.identity)
        for each in every.values()
        if isinstance(each.computed, ComputedByUdf)
        and each.computed.is_same_call(computed)
        and each.computed.output in places
        and _makes(udf, places[each.computed.output], each)
    ]
    columns, outputs, identities = zip(*made, strict=True)  # the column itself is one of them
    return replace(own, columns=columns, outputs=outputs, ids=identities, declared=computed.version)


def _makes(udf: UDF, place: int, column: Column) -> bool:
    """Returns whether output number `place` of the function has the column's type."""
    return bool(arrow_field(Column(column.name, udf.outputs[place].type)).type == arrow_field(column).type)


def _fitting(
    table: ReadTable, column: Column, udf: UDF, place: int, inputs: tuple[str, ...], identity: str
) -> FunctionDefinition:
    if not _makes(udf, place, column):
        raise InvalidInput(
            f"the function `{udf.name}` makes {format_type(udf.outputs[place].type)}, and column {column.name} is "
            f"{format_type(column.type)}",
            where=table.address,
            remedy="give a function that returns the column's type",
        )
    if column.name in inputs:
        if udf.form != "batch":
            raise InvalidInput(
                f"column {column.name} is computed from itself", where=table.address, remedy="name other inputs"
            )
        inputs = tuple(name for name in inputs if name != column.name)
    require_modules(udf)
    return FunctionDefinition(udf, (column,), (place,), inputs, (identity,))


def finder(trusted: TrustedFunctions) -> FindFunction:
    """Returns a function that finds the functions of definitions in this process. It raises as `defined_function`
    does."""

    def find(table: ReadTable, column: Column, computed: ComputedByUdf) -> UDF:
        otherwise = "; or pass the function: backfill(…, udf=…)"
        return defined_function(table.root, column.name, computed, trusted, where=table.address, otherwise=otherwise)

    return find
