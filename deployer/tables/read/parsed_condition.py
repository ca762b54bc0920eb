"""Parses users' SQL conditions with DataFusion, whose parser Lance also uses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from datafusion import DataFrame
    from datafusion.expr import Expr

TEXT = re.compile(r"'(?:[^']|'')*'|`[^`]*`")  #: a text literal, or a name in backticks
_READ_DIFFERENTLY = re.compile(r'["\[#;]|--|/\*')  # characters whose meaning depends on the dialect of SQL
_LONGEST = 10_000  #: characters of a condition; the time to analyze it grows with the square of its length


def is_read_alike(where: str, schema: pa.Schema) -> bool:
    """Returns whether the condition certainly has the same meaning in DataFusion as in Lance, and is short enough to be
    analyzed."""
    if len(where) > _LONGEST or "\\" in where or _READ_DIFFERENTLY.search(TEXT.sub("''", where)):
        return False
    return len({name.lower() for name in schema.names}) == len(schema)


def parse_condition(where: str, schema: pa.Schema, *, structs: bool = False) -> Expr:
    """Returns the parsed condition on columns of the schema, except those of nested types. With `structs`, the
    condition may also use fields of structs.

    Raises an Exception, of a kind that DataFusion does not document, for text that is not a condition on these columns.
    """
    return no_rows(schema, structs=structs).parse_sql_expr(where)


def no_rows(schema: pa.Schema, *, structs: bool = False) -> DataFrame:
    """Returns an empty table of these columns in DataFusion, without those of nested types; `structs` keeps structs."""
    from datafusion import SessionConfig, SessionContext

    options = {  # the dialect with names in backticks and without escapes in strings, as Lance's
        "datafusion.sql_parser.dialect": "sqlite",
        "datafusion.sql_parser.enable_ident_normalization": "false",
    }
    known = [
        field for field in schema if not pa.types.is_nested(field.type) or (structs and pa.types.is_struct(field.type))
    ]
    return SessionContext(SessionConfig(options)).from_arrow(pa.Table.from_batches([], pa.schema(known)))


def variant(expression: Any) -> Any:
    """Returns the expression, or the node of a plan, as its own class; None for one that DataFusion's Python does not
    know."""
    try:
        return expression.to_variant()
    except Exception:  # of a kind that DataFusion does not document
        return None
