"""The ranges of columns that an SQL condition implies, so that files without any such row are not opened.

DataFusion parses the condition. Only ranges that certainly follow are used: comparisons of a column with a literal of
the same kind, joined by AND. DataFusion's optimizer converts the operands of timestamps, such as a local time of the
column's zone, to values of the column's type. Lance does the same, because it uses DataFusion's planner. Lance still
checks every row by the whole condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.tables.read.key_values import Interval, from_python
from deployer.tables.read.parsed_condition import is_read_alike, no_rows, variant

if TYPE_CHECKING:
    from datafusion.expr import Expr
    from datafusion.plan import LogicalPlan

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def ranges_in(where: str, schema: pa.Schema, names: Collection[str]) -> dict[str, Interval]:
    """Returns the intervals of these columns that follow from the condition; empty where none follow."""
    if not names or not is_read_alike(where, schema):
        return {}
    found: dict[str, Interval] = {}
    try:
        frame = no_rows(schema)
        condition = frame.parse_sql_expr(where)
        compared = [*_compared(condition)]
        if any(pa.types.is_timestamp(schema.field(name).type) for name in names):
            compared += _compared_timestamps(frame.filter(condition).optimized_logical_plan(), schema)
    except Exception:  # then Lance reports the error
        return {}
    for name, interval in compared:
        if name in names:
            fitting = _fitting(schema.field(name), interval)
            found[name] = _both(schema.field(name), found[name], fitting) if name in found else fitting
    return {name: each for name, each in found.items() if (each.low, each.high) != (None, None)}


def _compared_timestamps(plan: LogicalPlan, schema: pa.Schema) -> Iterator[tuple[str, Interval]]:
    """Yields columns of timestamps, with the values of their type to which an optimized plan compares them."""
    from datafusion.expr import Filter

    pending = [plan]
    while pending:
        node = pending.pop()
        pending += node.inputs()
        if isinstance(whole := variant(node), Filter):
            for name, interval in _compared(whole.predicate()):
                if pa.types.is_timestamp(schema.field(name).type):
                    yield name, interval


def _compared(expression: Expr) -> Iterator[tuple[str, Interval]]:
    """Yields the columns, with their intervals, of the comparisons that AND joins. The ends are Arrow's values or
    None."""
    from datafusion.expr import BinaryExpr

    pending = [expression]
    while pending:
        whole = variant(pending.pop())
        if isinstance(whole, BinaryExpr) and whole.op() == "AND":
            pending += [whole.left(), whole.right()]
        else:
            yield from _one_compared(whole)


def _one_compared(whole: Any) -> Iterator[tuple[str, Interval]]:
    from datafusion.expr import Between, BinaryExpr, InList

    if isinstance(whole, BinaryExpr) and whole.op() in _MIRRORED:
        for column, operator, other in (
            (whole.left(), whole.op(), whole.right()),
            (whole.right(), _MIRRORED[whole.op()], whole.left()),
        ):
            if (name := _name(column)) is not None and (value := _literal(other)) is not None:
                yield name, _beside(operator, value)
    elif isinstance(whole, BinaryExpr) and whole.op() == "OR":
        yield from _either(whole.left(), whole.right())
    elif isinstance(whole, Between) and not whole.negated():
        if (name := _name(whole.expr())) is not None:
            yield name, Interval(_literal(whole.low()), _literal(whole.high()))
    elif isinstance(whole, InList) and not whole.negated():
        values = [_literal(each) for each in whole.list()]
        known = [each for each in values if each is not None]
        alike = len(known) == len(values) and len({each.type for each in known}) == 1
        if (name := _name(whole.expr())) is not None and alike:
            yield name, Interval(min(known, key=_python), max(known, key=_python))


def _python(value: pa.Scalar) -> Any:
    return value.value if pa.types.is_timestamp(value.type) else value.as_py()


def _either(one: Expr, other: Expr) -> Iterator[tuple[str, Interval]]:
    """Yields the columns that both conditions compare, with the smallest interval that contains both intervals."""
    first, second = dict(_compared(one)), dict(_compared(other))
    for name in first.keys() & second.keys():
        each = (first[name], second[name])
        yield name, Interval(_outer(min, [at.low for at in each]), _outer(max, [at.high for at in each]))


def _outer(outer: Callable[..., pa.Scalar], ends: Sequence[pa.Scalar | None]) -> pa.Scalar | None:
    known = [end for end in ends if end is not None]
    comparable = len(known) == len(ends) and len({end.type for end in known}) == 1
    return outer(known, key=_python) if comparable else None


def _beside(operator: str, value: pa.Scalar) -> Interval:
    low = value if operator in ("=", ">", ">=") else None
    high = value if operator in ("=", "<", "<=") else None
    return Interval(low, high, operator != ">", operator != "<")


def _name(expression: Expr) -> str | None:
    from datafusion.expr import Column

    found = variant(expression)
    return found.name() if isinstance(found, Column) else None


def _literal(expression: Expr) -> pa.Scalar | None:
    """Returns the value of a literal, or of `DATE '…'` or `TIMESTAMP '…'`, which are casts of a text; None for other
    expressions."""
    from datafusion.expr import Cast, Literal

    found = variant(expression)
    if isinstance(found, Cast):
        target, text = re.search(r" AS (Date32|Timestamp\(\w+\))\)+$", str(expression)), _literal(found.expr())
        if target is None or text is None or not pa.types.is_string(text.type):
            return None
        try:
            return text.cast(pa.date32() if target[1] == "Date32" else pa.timestamp("ns"))
        except pa.ArrowInvalid:  # such as an offset, or a year outside of the range of nanoseconds
            return None
    if not isinstance(found, Literal):
        return None
    value = expression.python_value()
    return value if isinstance(value, pa.Scalar) and value.is_valid else None


def _fitting(field: pa.Field, interval: Interval) -> Interval:
    """Returns the interval with ends of the column's type. Ends of another kind, and ends that do not fit the type,
    become open."""
    low, high = (_of_type(field, each) for each in (interval.low, interval.high))
    return Interval(low, high, interval.low_included, interval.high_included)


def _of_type(field: pa.Field, value: pa.Scalar | None) -> pa.Scalar | None:
    types, kind = pa.types, field.type
    if value is None:
        return None
    same = (
        (types.is_integer(kind) and types.is_integer(value.type))
        or ((types.is_string(kind) or types.is_large_string(kind)) and types.is_string(value.type))
        or (types.is_boolean(kind) and types.is_boolean(value.type))
        or (types.is_date32(kind) and types.is_date32(value.type))
        or (types.is_timestamp(kind) and types.is_timestamp(value.type) and _same_clock(kind.tz, value.type.tz))
    )
    if not same:
        return None
    try:
        return value.cast(kind)
    except pa.ArrowInvalid:  # a value that does not fit the type
        return None


def _same_clock(of_column: str | None, of_value: str | None) -> bool:
    """Returns whether both are instants, or local times of the same zone. None means no zone, which counts as UTC."""
    return of_value is not None if of_column not in (None, "UTC") else of_value in (None, "UTC")


def _both(field: pa.Field, one: Interval, other: Interval) -> Interval:
    """Returns the interval of the values that are in both intervals."""
    lows = [
        (from_python(field, each.low), not each.low_included, each) for each in (one, other) if each.low is not None
    ]
    highs = [
        (from_python(field, each.high), each.high_included, each) for each in (one, other) if each.high is not None
    ]
    above = max(lows, key=lambda end: end[:2])[2] if lows else one
    below = min(highs, key=lambda end: end[:2])[2] if highs else one
    return Interval(above.low, below.high, above.low_included, below.high_included)
