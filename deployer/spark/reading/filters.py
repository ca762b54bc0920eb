"""Converts filters of Spark to conditions of Lance.

Spark filters every row again, so a condition may return more rows. Filters on floating-point columns are not converted:
for Spark, NaN equals itself and 0.0 equals -0.0; for Lance they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from deployer.errors import DeployerError
from deployer.specs.types.column_names import name_fault, quoted
from deployer.tables.read.key_values import from_python
from deployer.tables.read.predicate import speaks_sql, sql_literal

_OPERATORS = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
MOST_VALUES = 1000  #: values of an `IN`; with more, parsing the condition takes longer than it saves


def conditions(filters: Iterable[Any], schema: pa.Schema, *, truncates: bool = False) -> Iterator[str]:
    """Returns SQL conditions that are true for all rows that pass the filters (`pyspark.sql.datasource.Filter`s).

    `schema` is the table's schema. `truncates`: Spark gets times without the digits below a microsecond. Filters
    without such a condition are left out.
    """
    for each in filters:
        path: tuple[str, ...] = getattr(each, "attribute", ())
        if len(path) != 1 or path[0] not in schema.names or name_fault(path[0]) is not None:
            continue
        field = schema.field(path[0])
        if not speaks_sql(field.type) or (truncates and getattr(field.type, "unit", "") == "ns"):
            continue
        if (found := _condition(each, field)) is not None:
            yield found


def _condition(found: Any, field: pa.Field) -> str | None:
    kind, name = type(found).__name__, quoted(field.name)  # by name: release 4.0 has no filters
    if kind == "IsNull" or (kind == "EqualNullSafe" and found.value is None):
        return f"{name} IS NULL"
    if kind == "IsNotNull":
        return f"{name} IS NOT NULL"
    if kind == "In":
        literals = [_literal(field, value) for value in found.value if value is not None]
        if not literals or len(literals) > MOST_VALUES or None in literals:
            return None
        return f"{name} IN ({', '.join(map(str, literals))})"
    if kind == "StringStartsWith":
        return _starting(name, field, found.value)
    literal = _literal(field, found.value) if kind in _OPERATORS else None
    return None if literal is None else f"{name} {_OPERATORS[kind]} {literal}"


def _literal(field: pa.Field, value: Any) -> str | None:
    """Returns the value as SQL; None for one that is not exactly a value of the column's type."""
    if pa.types.is_integer(field.type) and isinstance(value, Decimal) and value == int(value):
        value = int(value)
    try:
        known = from_python(field, value)
        if pa.array([value], field.type)[0].as_py() != value:
            return None
        return sql_literal(field.type, known)
    except (DeployerError, ValueError, TypeError, OverflowError):
        return None


def _starting(name: str, field: pa.Field, prefix: str) -> str | None:
    """Returns the range of texts with the prefix, by which files are chosen; it has no upper bound unless the prefix
    ends in ASCII."""
    low = _literal(field, prefix)
    if not prefix or low is None:
        return None
    above = f"{name} >= {low}"
    if ord(prefix[-1]) < 0x7F:
        above += f" AND {name} < {_literal(field, prefix[:-1] + chr(ord(prefix[-1]) + 1))}"
    return above
