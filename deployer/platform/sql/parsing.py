"""Parses the SQL expressions that users write: conditions, `default:`, `using:` and the selects of a load.

Each is one complete expression up to its last token. `one_expression` checks the tokens first, because a text that is
too deep ends the process that parses it. The parser is DataFusion's. It resolves columns and functions after it has
parsed the whole text; these errors are ignored here, and reported when the expression is computed.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from deployer.platform.sql.one_expression import LONGEST, NotOneExpression, check_one_expression

#: an expression for every parser: a number, text, true, false or null; most defaults are one
_LITERAL = re.compile(r"\s*(?:[-+]?[0-9]+(?:\.[0-9]+)?|'(?:[^']|'')*'|true|false|null)\s*", re.IGNORECASE)
_SYNTAX = re.compile(r"SQL error: (?P<kind>\w+)(?:\(\"(?P<what>.*)\"\))?", re.DOTALL)
_PLACE = re.compile(r"(?P<what>.*) at Line: (?P<line>\d+), Column: (?P<column>\d+)", re.DOTALL)
_EXPECTED = re.compile(r"Expected: (?P<expected>.*?), found: (?P<found>.*)", re.DOTALL)


def check_expression(text: str, longest: int = LONGEST) -> None:
    """Raises NotOneExpression, with the place, for a text that is not one complete expression."""
    check_one_expression(text, longest)
    if _LITERAL.fullmatch(text):
        return
    try:
        _no_columns().parse_sql_expr(text)
    except Exception as failure:  # DataFusion does not document the kind of the exception
        if syntax := _SYNTAX.search(str(failure)):
            raise _syntax_error(text, syntax) from None


@cache
def _no_columns() -> Any:
    import pyarrow as pa  # takes 0.2 s with DataFusion, and most specs have only literals
    from datafusion import SessionContext

    return SessionContext().from_arrow(pa.table({}))


def _syntax_error(text: str, syntax: re.Match[str]) -> NotOneExpression:
    if syntax["kind"] == "RecursionLimitExceeded":
        return NotOneExpression("parts that are nested too deep", 1)
    what, at = syntax["what"] or syntax["kind"], len(text) + 1
    if place := _PLACE.fullmatch(what):
        before = text.split("\n")[: int(place["line"]) - 1]
        what, at = place["what"], sum(len(line) + 1 for line in before) + int(place["column"])
    if expected := _EXPECTED.fullmatch(what):
        found = "its end" if expected["found"] == "EOF" else f"`{expected['found']}`"
        what = f"{found} where {_named(expected['expected'])} is expected"
    return NotOneExpression(what, at)


def _named(expected: str) -> str:
    if expected == "end of expression":
        return "the end of the expression"
    return expected if " " in expected else f"`{expected}`"
