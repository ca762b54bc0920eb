"""The rejection of the parts of a query that cannot be maintained from changes.

One error reports all of these parts, with what to write instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache

from deployer.errors import InvalidInput
from deployer.views.query.parsing.tokens import Token, closing

AGGREGATES = ("count", "sum", "min", "max", "avg", "mean", "approx_distinct")  #: constructs that can be maintained
POSSIBLE = (
    "a view can have columns, SQL expressions and functions of a row, WHERE, INNER and LEFT JOIN with a table by its "
    "unique row keys, CROSS JOIN UNNEST, UNION ALL, and GROUP BY with count, sum, min, max, avg and approx_distinct"
)
_NOW = "have the time in a column of the source, or compare it when you read the view"
_OWN_VIEW = "make it a view of its own, and name that"
_READ = "give it when you read the view"

#: Rejected clauses, which can begin only after a complete operand: their first words, their name, and what to do
#: instead.
CLAUSES: dict[tuple[str, ...], tuple[str, str]] = {
    ("having",): ("HAVING", "give the condition as WHERE when you read the view"),
    ("order", "by"): ("ORDER BY", "declare sort keys of the view, or order the rows when you read it"),
    ("sort", "by"): ("SORT BY", "declare sort keys of the view, or order the rows when you read it"),
    ("cluster", "by"): ("CLUSTER BY", "declare sort keys of the view"),
    ("distribute", "by"): ("DISTRIBUTE BY", "declare partitions of the view"),
    ("limit",): ("LIMIT", _READ),
    ("offset",): ("OFFSET", _READ),
    ("fetch",): ("FETCH", _READ),
    ("qualify",): ("QUALIFY", _READ),
    ("window",): ("a WINDOW clause", "compute it when you read the view"),
    ("intersect",): ("INTERSECT", "use an INNER JOIN by row keys"),
    ("except",): ("EXCEPT", "use WHERE, or name the columns"),
    ("minus",): ("MINUS", "use WHERE"),
    ("tablesample",): ("TABLESAMPLE", "use a condition on a hash of the row keys"),
}
_OPERATOR_WORDS = frozenset(
    (
        *("all", "and", "as", "between", "by", "case", "distinct", "else", "escape", "from", "ilike", "in", "is"),
        *("join", "like", "not", "on", "or", "select", "then", "to", "union", "when", "where"),
    )
)


@dataclass(slots=True)
class Rejections:
    """The constructs of one query that are rejected so far, each with its position and what to do instead."""

    where: str  #: for the error
    found: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, what: str, token: Token, remedy: str) -> None:
        self.found.append((token.at, what, remedy))

    def raise_any(self) -> None:
        """Raises InvalidInput that names all rejected constructs; does nothing where there are none."""
        if not self.found:
            return
        ordered = sorted(set(self.found))
        named = "; ".join(f"{what} at character {at + 1:,}" for at, what, _ in ordered)
        remedies = dict.fromkeys(remedy for _, _, remedy in ordered if remedy)
        raise InvalidInput(
            f"the query has parts that cannot be maintained from changes: {named}",
            where=self.where,
            remedy="; ".join((*remedies, POSSIBLE)),
        )


def reject_constructs(tokens: Sequence[Token], functions: Collection[str], rejections: Rejections) -> None:
    """Adds rejections of constructs that the tokens alone show, anywhere in the query. `functions` are the names of the
    view's own functions."""
    window_ends = -1
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else None
        if not token.word or (before is not None and before.text == ".") or place < window_ends:
            continue
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        called = following is not None and following.text == "("
        if token.word == "over" and before is not None and before.text == ")":
            rejections.add("a window function (OVER)", token, "compute it when you read the view")
            window_ends = closing(tokens, place + 1) if called else place
            continue
        _reject_word(tokens, place, called, rejections)
        if called and token.word not in functions:
            _reject_call(tokens, place, rejections)


def _reject_word(tokens: Sequence[Token], place: int, called: bool, rejections: Rejections) -> None:
    token, word = tokens[place], tokens[place].word
    after = tokens[place + 1].word if place + 1 < len(tokens) else ""
    if word == "select" and token.depth:
        rejections.add("a subquery", token, _OWN_VIEW)
    elif (word in ("rollup", "cube") and called) or (word, after) == ("grouping", "sets"):
        rejections.add(f"GROUP BY {word.upper()}", token, "make one view of each grouping")
    elif (word, after) == ("within", "group") or (token.depth and (word, after) == ("order", "by")):
        rejections.add("an aggregate that depends on the order of rows", token, "use min or max")
    elif word in ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp") and not called:
        rejections.add(f"{word}, whose value changes,", token, _NOW)
    elif not token.depth and ends_operand(tokens, place - 1) and not called:
        for words, (what, remedy) in CLAUSES.items():
            if word == words[0] and after == (words[1] if words[1:] else after):
                rejections.add(what, token, remedy)


def _reject_call(tokens: Sequence[Token], place: int, rejections: Rejections) -> None:
    token, word = tokens[place], tokens[place].word
    kinds = function_kinds()
    first = tokens[place + 2].word if place + 2 < len(tokens) else ""
    if word in kinds.volatile:
        remedy = _NOW if "now" in word or "current" in word else "have the value in a column of the source"
        rejections.add(f"{word}(), whose value changes,", token, remedy)
    elif word in AGGREGATES and first == "distinct":
        distinct = "use approx_distinct(…), or GROUP BY the column in a view and count in a view of that"
        rejections.add(f"{word}(DISTINCT …)", token, distinct)
    elif word in kinds.aggregates and word not in AGGREGATES:
        rejections.add(f"the aggregate {word}", token, f"use {', '.join(AGGREGATES[:-1])} or {AGGREGATES[-1]}")


def ends_operand(tokens: Sequence[Token], place: int) -> bool:
    """Returns whether a value or a name can end with the token at index `place`, so that a clause can begin after
    it."""
    if place < 0:
        return False
    token = tokens[place]
    return (
        token.kind in ("name", "number", "text", "close")
        or token.text == "*"
        or (bool(token.word) and token.word not in _OPERATOR_WORDS)
    )


@dataclass(frozen=True, slots=True)
class FunctionKinds:
    """The names of DataFusion's functions that are volatile (their values change), and of its aggregates."""

    volatile: frozenset[str]
    aggregates: frozenset[str]


@cache
def function_kinds() -> FunctionKinds:
    """Returns the kinds of DataFusion's own functions."""
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_information_schema(True))
    query = "SELECT routine_name, function_type, is_deterministic FROM information_schema.routines"
    rows = context.sql(query).to_pylist()

    def named(chosen: Callable[[dict[str, object]], bool]) -> frozenset[str]:
        return frozenset(str(row["routine_name"]) for row in rows if chosen(row))

    return FunctionKinds(
        named(lambda row: not row["is_deterministic"]),
        named(lambda row: row["function_type"] == "AGGREGATE"),
    )
