"""Finds the inputs and the type of an expression. DataFusion plans it over columns without rows; nothing is
computed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deployer.platform.sql.one_expression import names_in
from deployer.platform.sql.parsing import check_expression
from deployer.platform.sql.renaming import as_read_by_lance

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class PlannedExpression:
    """The columns that an expression reads, in the table's order, and the Arrow type of its values."""

    columns: tuple[str, ...]
    type: pa.DataType


_ROWS = {"AggregateFunction": "an aggregate", "WindowFunction": "a window function"}


class NotComputable(ValueError):
    """An expression cannot be computed from the columns. The message is the end of a sentence."""


def plan_expression(text: str, schema: pa.Schema) -> PlannedExpression:
    """Returns the inputs and the type of an expression over columns.

    Raises NotOneExpression as `check_expression` does, and NotComputable for unknown columns and functions, and for
    values of several rows.
    """
    check_expression(text)
    kind = _planned(text, schema)
    mentioned = names_in(text)
    candidates = [name for name in schema.names if name in mentioned]
    return PlannedExpression(tuple(name for name in candidates if _needs(text, schema, name)), kind)


def condition_fault(text: str, schema: pa.Schema) -> str:
    """Returns the certain fault of a condition on columns, as the end of a sentence: it names no column, or its value
    is not true or false. The text is empty for other conditions, including those with functions that only Lance may
    have.
    """
    try:
        kind = _planned(as_read_by_lance(text, schema.names), schema)
    except NotComputable as wrong:
        missing = re.match(r'no field named "?([^".]+)', str(wrong))
        return f"the column `{missing[1]}`, which the table does not have" if missing else ""
    return "" if str(kind) == "bool" else f"a value of type {kind}, which is not true or false"


def _planned(text: str, schema: pa.Schema) -> pa.DataType:
    from datafusion import SessionContext

    frame: Any = SessionContext().from_arrow(schema.empty_table())
    try:
        expression = frame.parse_sql_expr(text)
        kind: pa.DataType = frame.select(expression.alias("value")).schema().field("value").type
    except Exception as failure:  # DataFusion does not document the kind of the exception
        raise NotComputable(reason_of(failure)) from None
    if found := _ROWS.keys() & _kinds(expression):
        raise NotComputable(f"it has {_ROWS[min(found)]}, and the value of a row cannot depend on other rows")
    return kind


def _kinds(expression: Any) -> set[str]:
    """Returns the kinds of the parts of an expression, as far as DataFusion shows them."""
    kind = str(expression.variant_name())
    if kind in ("Column", "Literal"):  # these return themselves as their parts
        return {kind}
    try:
        parts = expression.rex_call_operands()
    except Exception:  # a kind whose parts DataFusion does not show
        return {kind}
    return {kind}.union(*map(_kinds, parts))


def _needs(text: str, schema: pa.Schema, name: str) -> bool:
    """Returns the columns that an expression needs. A name may also be a function or a type: if the expression can be
    planned without the column, it does not read the column."""
    try:
        _planned(text, schema.remove(schema.get_field_index(name)))
    except NotComputable:
        return True
    return False


def reason_of(failure: BaseException) -> str:
    """Returns DataFusion's reason for an expression that it cannot plan, without the text around it."""
    text = re.sub(
        r"\bc[0-9a-f]{32}\.", "", str(failure).splitlines()[0]
    )  # the name of the columns' table in this module
    for noise in ("DataFusion error: ", "Arrow error: ", "SQL error: ", "Schema error: ", "Error during planning: "):
        text = text.replace(noise, "")
    text = text.partition(" Valid fields are")[0].partition(" No function matches")[0].rstrip(".")
    return text[:1].lower() + text[1:]
