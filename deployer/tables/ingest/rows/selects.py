"""Columns that SQL expressions over the fields of a file compute (`--select "EXPR AS column"`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.platform.sql.one_expression import NotOneExpression, names_in
from deployer.platform.sql.parsing import check_expression
from deployer.platform.sql.process import OverLimit, SqlFailed, compute
from deployer.specs.yaml.suggestions import nearest
from deployer.tables.conversion.sql_values import computed_here, reason_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_AS = re.compile(r'(.*\S)\s+AS\s+("(?:[^"]|"")+"|`[^`]+`|[^\s"`]+)\s*', re.IGNORECASE | re.DOTALL)
MOST_FAILING = 500  #: rows of one block for which an expression may fail; each of them is computed about ten times
_UNKNOWN = re.compile(r"No field named (.+?)\.(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Select:
    """A column and the expression that computes its values. `names` are the words of the expression that may be names
    of fields."""

    column: str
    expression: str

    @property
    def names(self) -> frozenset[str]:
        return names_in(self.expression)

    def __str__(self) -> str:
        return f"{self.expression} AS {_quoted(self.column)}"


def select_of(text: str) -> Select:
    """Returns the column and the expression of `EXPR AS name`. Raises InvalidInput for text that is not one expression
    with a name."""
    found = _AS.fullmatch(text)
    if found is None:
        raise InvalidInput(
            f"--select {text!r} does not name its column",
            remedy='write "EXPRESSION AS column", such as "CAST(price AS DOUBLE) * 2 AS total"',
        )
    expression, name = found[1].strip(), found[2]
    if name[0] in '"`':
        name = name[1:-1].replace('""', '"')
    try:
        check_expression(expression)
    except NotOneExpression as wrong:
        raise InvalidInput(
            f"--select {text!r} is not one SQL expression: it has {wrong}",
            remedy='write one value for each row, such as "upper(code) AS code"',
        ) from None
    return Select(name, expression)


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'


def selected_types(fields: pa.Schema, selects: Sequence[Select], where: str) -> pa.Schema:
    """Returns the columns that the expressions compute from these fields, with the types of their values.

    Raises InvalidInput where an expression cannot be computed from these fields.
    """
    nothing = pa.Table.from_batches([], _mentioned(fields, selects))
    return pa.schema([pa.field(select.column, _type(nothing, select, fields, where)) for select in selects])


def _type(nothing: pa.Table, select: Select, fields: pa.Schema, where: str) -> pa.DataType:
    try:
        values = compute(nothing, select.expression)
    except (SqlFailed, OverLimit) as failure:
        raise _not_computed(select, reason_of(failure), fields, where) from None
    if len(values):
        raise _not_computed(select, "it does not give one value for each row", fields, where)
    return values.type


def _not_computed(select: Select, reason: str, fields: pa.Schema, where: str) -> InvalidInput:
    unknown = _UNKNOWN.search(reason + ".")
    if unknown is None:
        hint = "; fields of CSV files are text: write CAST(field AS DOUBLE) for numbers"
        remedy = "write one SQL value over the file's fields" + (hint if "coerce" in reason.lower() else "")
        return InvalidInput(f"--select {select}: {reason}", where=where, remedy=remedy)
    name = unknown[1].strip('"')
    known = [*fields.names]
    near = nearest(name, known)
    remedy = (
        f"did you mean {_in_sql(near)}?"
        if near
        else f"the file has {', '.join(map(_in_sql, known[:50]))}" + (", …" if len(known) > 50 else "")
    )
    return InvalidInput(f"--select {select}: the file has no field {name!r}", where=where, remedy=remedy)


def _in_sql(name: str) -> str:
    """Returns the name of a field in the form for expressions: in quotes, unless it has only small letters, digits and
    _."""
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"' + name.replace('"', '""') + '"'


def _mentioned(fields: pa.Schema, selects: Sequence[Select]) -> pa.Schema:
    """Returns the fields that expressions may name. Returns at least one field, which carries the number of rows."""
    names = {name for select in selects for name in select.names}
    found = [each for each in fields if each.name in names]
    return pa.schema([each.remove_metadata() for each in found or [*fields][:1]])


@dataclass(frozen=True, slots=True)
class SelectedColumns:
    """The values of each column, and the rows for which its expression fails. The values of these rows are null."""

    values: Mapping[str, Any]
    failed: Mapping[str, NDArray[np.bool_]]


def selected(rows: pa.RecordBatch, selects: Sequence[Select]) -> SelectedColumns:
    """Returns the values of the expressions for rows of a file."""
    values: dict[str, Any] = {}
    failed: dict[str, NDArray[np.bool_]] = {}
    rows = rows.select(_mentioned(rows.schema, selects).names)
    for select in selects:
        try:
            values[select.column] = _computed(rows, select)
        except ValueError:
            values[select.column], failed[select.column] = _one_by_one(rows, select)
    return SelectedColumns(values, failed)


def _computed(rows: pa.RecordBatch, select: Select) -> Any:
    return _plain(computed_here(rows, select.expression))


def _plain(values: Any) -> Any:
    """Returns the values with string views as strings and binary views as binary, which the check of columns needs."""
    if pa.types.is_string_view(values.type):
        return values.cast(pa.string())
    return values.cast(pa.binary()) if pa.types.is_binary_view(values.type) else values


def _one_by_one(rows: pa.RecordBatch, select: Select) -> tuple[Any, NDArray[np.bool_]]:
    """Returns the values of an expression that fails for some rows, and a mask of these rows. Halves the rows
    repeatedly until each failing row is separate. Raises InvalidInput for more than `MOST_FAILING` failing rows."""
    failed = np.zeros(rows.num_rows, np.bool_)
    found: list[Any] = []
    pending = [(0, rows.num_rows)]
    while pending:
        start, count = pending.pop()
        try:
            found.append(_computed(rows.slice(start, count), select))
        except ValueError as failure:
            if count == 1:
                failed[start] = True
                if failed.sum() > MOST_FAILING:
                    raise InvalidInput(
                        f"--select {select} fails for more than {MOST_FAILING} rows, of which one says: {failure}",
                        remedy="write an expression that holds for most rows; TRY_CAST gives null where CAST fails",
                    ) from None
                found.append(None)
                continue
            half = count // 2
            pending += [(start + half, count - half), (start, half)]
    kinds = [part.type for part in found if part is not None]
    kind = kinds[0] if kinds else pa.null()
    return pa.concat_arrays([pa.nulls(1, kind) if part is None else part for part in found]), failed
