"""Name resolution in a query: columns of tables become flat names, and each call of a function becomes a column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from deployer.errors import InvalidInput
from deployer.platform.sql.one_expression import NotOneExpression
from deployer.platform.sql.parsing import check_expression
from deployer.platform.sql.planning import reason_of
from deployer.platform.sql.renaming import is_word_of_sql
from deployer.specs.yaml.suggestions import nearest, reference_remedy
from deployer.views.query.model import FunctionSignature
from deployer.views.query.parsing.rejections import AGGREGATES, Rejections
from deployer.views.query.parsing.tokens import Token, closing, joined, split, text_of
from deployer.views.query.program import Call, Expression, quoted

_UNKNOWN = re.compile(r"No field named (.+?)\.(?: Valid| Did|\s|$)", re.IGNORECASE)
_BARE = re.compile(r"[a-z_][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, or the items of an UNNEST, with its columns by the names that the query may use for them."""

    alias: str
    path: tuple[str, ...]
    types: Mapping[str, pa.DataType]
    required: frozenset[str] = frozenset()  #: columns that are never null

    def flat(self, column: str) -> str:
        return f"{self.alias}.{column}"


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A call of an aggregate. Its value is the column `output` of groups. `argument` is None for `count(*)`."""

    function: str
    argument: Expression | None
    output: str


@dataclass(slots=True)
class Scope:
    """The tables of one SELECT that are known so far, and the calls that were found in its expressions.

    `where` is the place that errors name.
    """

    where: str
    functions: Mapping[str, FunctionSignature]
    rejections: Rejections
    relations: list[Relation] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    aggregates: list[AggregateCall] = field(default_factory=list)

    def types(self) -> dict[str, pa.DataType]:
        """Returns the types of all flat columns."""
        found = {each.flat(name): kind for each in self.relations for name, kind in each.types.items()}
        return found | {each.output: each.type for each in self.calls}

    def expression(self, tokens: Sequence[Token], *, aggregates: bool = False) -> Expression:
        """Returns an expression over flat columns. `aggregates` says that it may call aggregates; their values become
        columns.

        Raises InvalidInput for tokens that are not one expression, and for ambiguous columns.
        """
        pieces, columns, place = list[tuple[str, int, int]](), set[str](), 0
        while place < len(tokens):
            token = tokens[place]
            after = tokens[place + 1].text if place + 1 < len(tokens) else ""
            behind_dot = place > 0 and tokens[place - 1].text == "." and tokens[place - 1].end == token.at
            if token.word and after == "(" and not behind_dot:
                end = self._called(tokens, place, aggregates)
                if end is not None:
                    name, stop = end
                    columns.add(name)
                    pieces.append((quoted(name), token.at, tokens[stop].end))
                    place = stop + 1
                    continue
            elif token.name is not None and not behind_dot and not self._is_word(tokens, place):
                found = self._column(tokens, place)
                if found is not None:
                    flat, count = found
                    columns.add(flat)
                    pieces.append((quoted(flat), token.at, tokens[place + count - 1].end))
                    place += count
                    continue
            pieces.append((token.text, token.at, token.end))
            place += 1
        text = joined(pieces)
        try:
            check_expression(text)
        except NotOneExpression as failure:
            raise self.wrong(f"`{text_of(tokens)}` is not an expression: {failure.what}", "correct it") from None
        return Expression(text, frozenset(columns))

    def _is_word(self, tokens: Sequence[Token], place: int) -> bool:
        if tokens[place].kind == "name":
            return False
        first = max(0, place - 2)
        return is_word_of_sql([(each.kind, each.text) for each in tokens[first : place + 2]], place - first)

    def _column(self, tokens: Sequence[Token], place: int) -> tuple[str, int] | None:
        """Returns the flat column that is named at index `place`, and the number of tokens of its name; None where no
        column is named."""
        path = [str(tokens[place].name)]
        while place + 2 * len(path) < len(tokens) and tokens[place + 2 * len(path) - 1].text == ".":
            name = tokens[place + 2 * len(path)].name
            if name is None:
                break
            path.append(name)
        for each in self.relations:
            if len(path) > 2 and each.path == tuple(path[:2]) and each.alias == each.path[-1] and path[2] in each.types:
                return each.flat(path[2]), 5
            if len(path) > 1 and each.alias == path[0] and path[1] in each.types:
                return each.flat(path[1]), 3
        holders = [each for each in self.relations if path[0] in each.types]
        if len(holders) > 1:
            named = " or ".join(f"{each.alias}.{path[0]}" for each in holders)
            raise self.wrong(f"the column {path[0]!r} is in several tables", f"write {named}")
        return (holders[0].flat(path[0]), 1) if holders else None

    def _called(self, tokens: Sequence[Token], place: int, aggregates: bool) -> tuple[str, int] | None:
        """Returns the column of a call, and the index of its last token; None for a function of SQL and for a rejected
        call."""
        token, stop = tokens[place], closing(tokens, place + 1)
        inner = tokens[place + 2 : stop]
        arguments = list(split(inner, ",")) if inner else []
        if token.word in self.functions:
            return self._function(token, arguments), stop
        if token.word not in AGGREGATES:
            return None
        if not aggregates:
            self.rejections.add(
                f"the aggregate {token.word} in WHERE, ON, GROUP BY, UNNEST or an argument",
                token,
                "aggregate in a view, and use its values in a view of that",
            )
            return None
        return self._aggregate(tokens, token, arguments, stop)

    def _function(self, token: Token, arguments: Sequence[Sequence[Token]]) -> str:
        signature = self.functions[token.word]
        if not arguments:
            raise self.wrong(f"{token.word} is called without values", f"give it columns: {token.word}(column)")
        if signature.form != "batch" and len(arguments) != len(signature.parameters):
            raise self.wrong(
                f"{token.word} has {len(signature.parameters)} parameters ({', '.join(signature.parameters)}), and "
                f"{len(arguments)} values are given",
                "give a value for each parameter",
            )
        values = tuple(self.expression(each) for each in arguments)
        for value in values:
            self.field_of(value)  # raises where a column does not exist
        names = tuple(str(each[-1].name or f"argument_{number}") for number, each in enumerate(arguments))
        names = names if signature.form == "batch" else ()
        for each in self.calls:
            if (each.function, each.arguments, each.names) == (token.word, values, names):
                return each.output
        output = f"__call{len(self.calls)}"
        self.calls.append(Call(token.word, values, output, signature.type, names))
        return output

    def _aggregate(
        self, tokens: Sequence[Token], token: Token, arguments: Sequence[Sequence[Token]], stop: int
    ) -> tuple[str, int]:
        function = "avg" if token.word == "mean" else token.word
        whole = function == "count" and len(arguments) == 1 and text_of(arguments[0]) in ("*", "1")
        if len(arguments) != 1:
            raise self.wrong(f"{function} takes one value, and {len(arguments)} are given", "give one")
        argument = None if whole else self.expression(arguments[0])
        if stop + 2 < len(tokens) and tokens[stop + 1].word == "filter" and tokens[stop + 2].text == "(":
            end = closing(tokens, stop + 2)
            condition = self.expression(tokens[stop + 4 : end])
            value = argument or Expression("1")
            sql = f"CASE WHEN {condition.sql} THEN {value.sql} END"
            argument, stop = Expression(sql, condition.columns | value.columns), end
        for each in self.aggregates:
            if (each.function, each.argument) == (function, argument):
                return each.output, stop
        output = f"__a{len(self.aggregates)}"
        self.aggregates.append(AggregateCall(function, argument, output))
        return output, stop

    def field_of(self, expression: Expression, types: Mapping[str, pa.DataType] | None = None) -> pa.Field:
        """Returns a field with the type of an expression's values and whether they may be null. `types` has the types
        of the columns; None uses all flat columns. Raises InvalidInput for columns and functions that do not exist, and
        for wrong types."""
        known = self.types() if types is None else types
        required = {each.flat(name) for each in self.relations for name in each.required}
        fields = [pa.field(name, known[name], name not in required) for name in known if name in expression.columns]
        schema = pa.schema(fields)
        try:
            frame = _frame(schema)
            found: pa.Field = frame.select(frame.parse_sql_expr(expression.sql).alias("value")).schema().field("value")
        except Exception as failure:  # of what kind DataFusion does not say
            raise self._explained(expression, failure) from None
        if pa.types.is_null(found.type):
            raise self.wrong(f"`{self.readable(expression.sql)}` has no type", "give it one: CAST(NULL AS BIGINT)")
        return found.with_type(stored_type(found.type))

    def _explained(self, expression: Expression, failure: Exception) -> InvalidInput:
        if found := _UNKNOWN.search(str(failure).splitlines()[0]):
            name = found[1].replace('"', "").removeprefix("value.")
            parts = name.split(".")
            if len(parts) > 1 and not any(each.alias == parts[0] for each in self.relations):
                aliases = [each.alias for each in self.relations]
                return self.wrong(
                    f"there is no table or column {parts[0]!r} in the query",
                    reference_remedy(parts[0], aliases, f"its tables are {', '.join(aliases)}"),
                )
            known = sorted({column for each in self.relations for column in each.types})
            remedy = reference_remedy(parts[-1], known, f"the columns are {', '.join(known)}")
            if (near := nearest(parts[-1], known)) is not None and not _BARE.fullmatch(near):
                remedy = f'did you mean "{near}"? Write names with other characters than a-z, 0-9 and _ in quotes'
            return self.wrong(f"there is no column {name!r}", remedy)
        return self.wrong(f"`{self.readable(expression.sql)}`: {reason_of(failure)}", "correct the expression")

    def readable(self, sql: str) -> str:
        """Returns the text of an expression with plain column names, for messages."""
        for each in self.relations:
            for column in each.types:
                sql = sql.replace(quoted(each.flat(column)), column)
        return sql

    def wrong(self, what: str, remedy: str) -> InvalidInput:
        return InvalidInput(what, where=self.where, remedy=remedy)


def _frame(schema: pa.Schema) -> Any:
    from datafusion import SessionContext

    return SessionContext().from_arrow(schema.empty_table(), "value")


def stored_type(kind: pa.DataType) -> pa.DataType:
    """Returns the type that is stored for a type of DataFusion: string views become strings, and binary views
    binary."""
    if kind == pa.string_view():
        return pa.string()
    if kind == pa.binary_view():
        return pa.binary()
    return kind
