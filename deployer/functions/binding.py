"""The columns that transforms of `add_columns` make of a table, checked before anything runs.

{"name": "SQL"}            an expression
{"name": udf}              a function whose parameters are columns
{"name": (udf, ["a"])}     the same with other columns for its parameters, in order
udf                        one column per field of the Columns[T] that it returns
UnpackedUDF(udf, "img_")   the same with a prefix before the names
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from deployer.errors import InvalidFunction
from deployer.functions.model import UDF, Input
from deployer.functions.values.acceptance import accepts
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.column_names import alike, name_fault
from deployer.specs.types.lance_support import type_findings
from deployer.specs.types.types import Blob, Column, ColumnType, format_type
from deployer.specs.yaml.suggestions import nearest


@dataclass(frozen=True, slots=True)
class UnpackedUDF:
    """A function that returns `Columns[T]`, with a prefix before the names of its columns."""

    udf: UDF
    prefix: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.udf, UDF) or not self.udf.is_multiple:
            raise InvalidFunction(
                "it needs a function that returns Columns[T]", where="UnpackedUDF", remedy="annotate -> Columns[…]"
            )
        if not isinstance(self.prefix, str):
            raise InvalidFunction(
                f"prefix={self.prefix!r} is not a string", where="UnpackedUDF", remedy='use one such as "img_"'
            )


@dataclass(frozen=True, slots=True)
class BoundOutput:
    """A column that SQL or a function computes from columns of the table.

    `type` is None for SQL, whose planner finds it. `inputs` are the columns in the order of the function's parameters;
    empty for SQL. `output` is the function's name of the column, None where the function makes only one.
    """

    name: str
    type: ColumnType | None
    sql: str = ""
    udf: UDF | None = None
    inputs: tuple[str, ...] = ()
    output: str | None = None


Transforms = Mapping[str, "str | UDF | tuple[UDF, Sequence[str]]"] | UDF | UnpackedUDF


def bind_transforms(schema: pa.Schema | Sequence[Column], transforms: Transforms) -> list[BoundOutput]:
    """Returns the columns that the transforms add to a table with this schema.

    Raises InvalidFunction, a ValueError, for transforms that cannot work: see the module. Warns (UserWarning) of
    parameters without annotations, whose types are not checked.
    """
    columns = columns_of(schema) if isinstance(schema, pa.Schema) else tuple(schema)
    table = {column.name: column for column in columns}
    match transforms:
        case Mapping():
            if not transforms:
                raise InvalidFunction("no columns are given", where="add_columns", remedy='name one: {"speed": speed}')
            bound = [_bind_named(name, given, table) for name, given in transforms.items()]
        case UDF():
            bound = _bind_all(transforms, "", table)
        case UnpackedUDF():
            bound = _bind_all(transforms.udf, transforms.prefix, table)
        case _:
            raise InvalidFunction(
                f"{type(transforms).__name__} is not a transform",
                where="add_columns",
                remedy='give {"name": "SQL"}, {"name": udf}, {"name": (udf, ["column"])}, udf or UnpackedUDF(udf)',
            )
    _check_names(bound, table)
    return bound


def _bind_named(name: Any, given: Any, table: Mapping[str, Column]) -> BoundOutput:
    where = f"column `{name}`"
    match given:
        case str():
            if not given.strip():
                raise InvalidFunction("the SQL is empty", where=where, remedy='write an expression: "distance * 1.6"')
            return BoundOutput(name, None, sql=given)
        case UDF():
            return _bind_one(name, given, None, table, where)
        case (UDF() as function, columns):
            if isinstance(columns, str) or not isinstance(columns, list | tuple):
                raise InvalidFunction(
                    f"{columns!r} is not a list of columns", where=where, remedy='use (udf, ["a", "b"])'
                )
            return _bind_one(name, function, tuple(columns), table, where)
        case UnpackedUDF():
            raise InvalidFunction(
                "a function that makes several columns names them itself",
                where=where,
                remedy="pass it outside of the dict: add_columns(UnpackedUDF(udf))",
            )
        case _:
            undecorated = callable(given) or (isinstance(given, tuple) and given and callable(given[0]))
            remedy = "decorate the function by @udf" if undecorated else "give SQL, a udf or (udf, [columns])"
            raise InvalidFunction(f"{type(given).__name__} is not a transform", where=where, remedy=remedy)


def _bind_one(
    name: str, udf: UDF, columns: tuple[str, ...] | None, table: Mapping[str, Column], where: str
) -> BoundOutput:
    if udf.is_multiple:
        raise InvalidFunction(
            f"`{udf.name}` returns Columns[…], which makes several columns",
            where=where,
            remedy=f"pass it outside of the dict: add_columns({udf.name})",
        )
    inputs = bind_inputs(udf, columns, table, where)
    return BoundOutput(name, udf.outputs[0].type, udf=udf, inputs=inputs)


def _bind_all(udf: UDF, prefix: str, table: Mapping[str, Column]) -> list[BoundOutput]:
    if not udf.is_multiple:
        raise InvalidFunction(
            f"`{udf.name}` makes one column, which has no name",
            where="add_columns",
            remedy=f'name it: add_columns({{"{udf.name}": {udf.name}}}), or return Columns[…]',
        )
    inputs = bind_inputs(udf, None, table, f"function `{udf.name}`")
    return [
        BoundOutput(f"{prefix}{each.name}", each.type, udf=udf, inputs=inputs, output=each.name) for each in udf.outputs
    ]


def bind_inputs(udf: UDF, columns: Sequence[str] | None, table: Mapping[str, Column], where: str) -> tuple[str, ...]:
    """Returns the columns that a function reads, in the order of its parameters: the `given` ones, the declared ones,
    or those with the parameters' names. A function of batches reads all columns but blobs.

    Raises InvalidFunction for missing columns, a wrong number of columns, or columns of another type. Warns
    (UserWarning) of parameters whose types are not checked.
    """
    given = udf.input_columns if columns is None else tuple(columns)
    if udf.form == "batch":
        if given is not None:
            raise InvalidFunction(
                f"`{udf.name}` takes a RecordBatch, which has all columns, and input columns are given",
                where=where,
                remedy="leave the columns out, or take arrays: def f(a: pa.Array, b: pa.Array)",
            )
        return tuple(name for name, column in table.items() if not isinstance(column.type, Blob))
    names = udf.parameters if given is None else given
    if len(names) != len(udf.inputs):
        raise InvalidFunction(
            f"`{udf.name}` has {len(udf.inputs)} parameters ({', '.join(udf.parameters)}), and {len(names)} columns "
            "are given",
            where=where,
            remedy="name a column per parameter, in their order",
        )
    for name, each in zip(names, udf.inputs, strict=True):
        column = table.get(name) if isinstance(name, str) else None
        if column is None:
            raise _missing(udf, name, table, where, is_given=given is not None)
        _check_type(udf, each, column, where)
    if unchecked := [each.name for each in udf.inputs if each.annotation.type is None]:
        warnings.warn(
            f"function `{udf.name}`: no types of {', '.join(unchecked)} are annotated, so the columns' types are not "
            "checked",
            UserWarning,
            stacklevel=_frames_of_deployer(),
        )
    return tuple(names)


def _missing(udf: UDF, name: object, table: Mapping[str, Column], where: str, *, is_given: bool) -> InvalidFunction:
    near = nearest(name, tuple(table))
    advice = f"did you mean `{near}`? " if near else ""
    otherwise = "name a column of the table" if is_given else f'or name columns: ({udf.name}, ["column"])'
    remedy = f"{advice}{otherwise}" if advice else otherwise.removeprefix("or ")
    what = f"the table has no column `{name}`" + ("" if is_given else f", which is a parameter of `{udf.name}`")
    return InvalidFunction(what, where=where, remedy=remedy)


def _check_type(udf: UDF, parameter: Input, column: Column, where: str) -> None:
    wanted = parameter.annotation.type
    if wanted is None or accepts(wanted, column.type, exact=parameter.annotation.exact):
        return
    raise InvalidFunction(
        f"column `{column.name}` is {format_type(column.type)}, and the parameter `{parameter.name}` of `{udf.name}` "
        f"takes {format_type(wanted)}",
        where=where,
        remedy="name another column, or annotate the parameter with the column's type",
    )


def _check_names(bound: Sequence[BoundOutput], table: Mapping[str, Column]) -> None:
    """Raises InvalidFunction for names that exist already or are not valid, and for types that Lance does not store."""
    taken = {alike(name): f"the table has a column `{name}`" for name in table}
    for each in bound:
        where = f"column `{each.name}`"
        if not isinstance(each.name, str):
            raise InvalidFunction(f"{each.name!r} is not a name", where="add_columns", remedy="use a string")
        if fault := name_fault(each.name):
            raise InvalidFunction(fault.what, where="add_columns", remedy=fault.remedy)
        if first := taken.get(alike(each.name)):
            prefix = ', or UnpackedUDF(udf, prefix="new_")' if each.output is not None else ""
            raise InvalidFunction(f"{first} already", where=where, remedy=f"use another name{prefix}")
        taken[alike(each.name)] = f"another transform makes `{each.name}`"
        for finding in () if each.type is None else type_findings(Column(each.name, each.type)):
            raise InvalidFunction(finding.what, where=where, remedy=finding.remedy)


def _frames_of_deployer() -> int:
    """Returns the number of deployer's calls between the warning and the caller's code, which the warning names."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and _PACKAGE in frame.f_code.co_filename:
        frame, level = frame.f_back, level + 1
    return level


_PACKAGE = str(Path(__file__).parents[1])
