"""Texts that a condition compares with dates and times, as literals of the column's type.

Lance compares no text with a timestamp, a date or a time of day, while DataFusion, and so `deployer sql`, converts the
text to the column's type. `arrow_cast` makes Lance convert it in the same way: a text with an offset is that instant,
and one without is local time of the column's zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.tables.read.parsed_condition import TEXT, is_read_alike, parse_condition, variant

if TYPE_CHECKING:
    from datafusion.expr import Expr

_COMPARISONS = frozenset(("=", "!=", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
_LEAVES = frozenset(("Column", "Literal", "ScalarVariable"))  # DataFusion gives them as operands of themselves
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}


def with_typed_texts(where: str, schema: pa.Schema) -> str:
    """Returns the condition with a typed literal in place of each text that is compared with a column of dates or
    times.

    This includes fields of structs. A condition that DataFusion cannot parse is unchanged; Lance reports the error.
    """
    if "'" not in where or not is_read_alike(where, schema) or not _has_times(schema):
        return where
    texts: list[str] = []

    def numbered(text: str) -> str:
        texts.append(text)
        return f"'{len(texts) - 1:08x}'"

    outline = TEXT.sub(lambda found: numbered(found[0]) if found[0][0] == "'" else found[0], where)
    try:
        types = dict(_compared(parse_condition(outline, schema, structs=True), schema))
    except Exception:  # then Lance reports the error
        return where
    if not types:
        return where
    numbers = iter(range(len(texts)))

    def typed(text: str) -> str:
        kind = types.get(f"{next(numbers):08x}")
        return text if kind is None else f" {_literal(text, kind)}"  # a keyword may precede it without a space

    return TEXT.sub(lambda found: typed(found[0]) if found[0][0] == "'" else found[0], where)


def _has_times(schema: pa.Schema) -> bool:
    pending = [field.type for field in schema]
    while pending:
        kind = pending.pop()
        if pa.types.is_struct(kind):
            pending += [kind.field(i).type for i in range(kind.num_fields)]
        elif _is_time(kind):
            return True
    return False


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind))


def _literal(text: str, kind: pa.DataType) -> str:
    """Returns the SQL of a value of that type. `text` includes its quotes. Type names are those of Arrow in Rust."""
    if pa.types.is_date32(kind):
        return f"DATE {text}"
    if pa.types.is_date(kind):
        name = "Date64"
    elif pa.types.is_time(kind):
        name = f"Time{kind.bit_width}({_UNITS[kind.unit]})"
    else:
        zone = "None" if kind.tz is None else f'Some("{kind.tz}")'
        name = f"Timestamp({_UNITS[kind.unit]}, {zone})"
    return f"arrow_cast({text}, '{name}')"


def _compared(condition: Expr, schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """Yields the texts that are compared with columns of dates and times, and the columns' types, wherever they
    occur."""
    from datafusion.expr import Between, BinaryExpr, InList

    pending = [condition]
    while pending:
        node = pending.pop()
        operands = node.rex_call_operands()
        whole = variant(node)
        if isinstance(whole, (Between, InList)) or (isinstance(whole, BinaryExpr) and whole.op() in _COMPARISONS):
            kinds = [kind for each in operands if (kind := _type_of(each, schema)) is not None and _is_time(kind)]
            if kinds:
                yield from ((text, kinds[0]) for each in operands if (text := _text(each)) is not None)
        if node.variant_name() not in _LEAVES:
            pending += operands


def _type_of(expression: Expr, schema: pa.Schema) -> pa.DataType | None:
    """Returns the type of a column or of a field of a struct; None for everything else."""
    from datafusion.expr import Column

    path: list[str] = []
    while expression.variant_name() == "ScalarFunction" and expression.rex_call_operator() == "get_field":
        expression, name = expression.rex_call_operands()
        path.append(_text(name) or "")
    column = variant(expression)
    if not isinstance(column, Column) or column.name() not in schema.names:
        return None
    kind = schema.field(column.name()).type
    while path:
        position = kind.get_field_index(path.pop()) if pa.types.is_struct(kind) else -1
        if position < 0:
            return None
        kind = kind.field(position).type
    return kind


def _text(expression: Expr) -> str | None:
    from datafusion.expr import Literal

    if not isinstance(variant(expression), Literal):
        return None
    value = expression.python_value()
    text = value.as_py() if isinstance(value, pa.Scalar) else value
    return text if isinstance(text, str) else None
