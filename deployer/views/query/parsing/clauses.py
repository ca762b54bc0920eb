"""The clauses of a query, as tokens: selected values, tables, conditions and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from deployer.errors import InvalidInput
from deployer.views.query.parsing.rejections import CLAUSES, Rejections, ends_operand
from deployer.views.query.parsing.tokens import Token, closing, split, text_of

JoinKind = Literal["inner", "left"]
_JOIN_WORDS = frozenset(("natural", "inner", "left", "right", "full", "cross", "join", "asof", "outer", "semi", "anti"))
_NOT_JOINED = {
    "right": "put the table whose rows all come first, and use LEFT JOIN",
    "full": "make two views, or use LEFT JOIN",
    "natural": "write JOIN … ON with the columns",
    "asof": "write JOIN … ON with the row keys",
    "semi": "use INNER JOIN",
    "anti": "use LEFT JOIN and WHERE … IS NULL",
    "cross": "write JOIN … ON with the row keys of the table",
}


@dataclass(frozen=True, slots=True)
class TableText:
    """A table in FROM or JOIN: the parts of its name, and the alias that its columns are named by."""

    path: tuple[str, ...]
    alias: str
    at: Token


@dataclass(frozen=True, slots=True)
class JoinText:
    """A join with the condition of its ON."""

    kind: JoinKind
    table: TableText
    on: list[Token]


@dataclass(frozen=True, slots=True)
class UnnestText:
    """An UNNEST: `CROSS JOIN UNNEST(value) [WITH ORDINALITY] AS alias[(columns)]`."""

    value: list[Token]
    ordinality: bool
    alias: str
    columns: tuple[str, ...]
    at: Token


@dataclass(frozen=True, slots=True)
class ItemText:
    """One entry of the SELECT list. `name` is the name after AS."""

    tokens: list[Token]
    name: str | None


@dataclass(frozen=True, slots=True)
class SelectText:
    """One SELECT of the query. `where` and `group` are empty if the SELECT does not have these clauses."""

    items: list[ItemText]
    table: TableText
    joins: list[JoinText]
    unnest: UnnestText | None
    where: list[Token]
    group: list[list[Token]]


def split_query(tokens: Sequence[Token], rejections: Rejections) -> list[SelectText]:
    """Returns the parts of UNION ALL, or one part for a query without it.

    Raises InvalidInput for a text that is not a query of tables, and for parts that cannot be maintained.
    """
    first = tokens[0].word if tokens else ""
    if first == "with":
        rejections.add("WITH", tokens[0], "make it a view of its own, and name that")
        rejections.raise_any()
    if first != "select":
        if tokens and tokens[0].text == "(":
            raise _wrong(rejections, "it begins with a bracket", "leave the brackets around SELECT out")
        raise _wrong(rejections, f"it begins with {tokens[0].text!r}" if tokens else "it is empty", "give one SELECT")
    parts, start = list[Sequence[Token]](), 0
    for place, token in enumerate(tokens):
        if token.word == "union" and not token.depth and ends_operand(tokens, place - 1):
            if place + 1 == len(tokens) or tokens[place + 1].word != "all":
                rejections.add("UNION without ALL", token, "write UNION ALL, or GROUP BY in a view of this one")
            parts.append(tokens[start:place])
            start = place + 1 + (tokens[place + 1 : place + 2] != [] and tokens[place + 1].word in ("all", "distinct"))
    parts.append(tokens[start:])
    found = [_Select(part, rejections).parsed() for part in parts]
    rejections.raise_any()
    return [each for each in found if each is not None]


def _wrong(rejections: Rejections, what: str, remedy: str) -> InvalidInput:
    return InvalidInput(f"the query cannot be read: {what}", where=rejections.where, remedy=remedy)


class _Select:
    """The parser of one SELECT, which reads from left to right."""

    def __init__(self, tokens: Sequence[Token], rejections: Rejections) -> None:
        self._tokens, self._rejections = tokens, rejections

    def parsed(self) -> SelectText | None:
        """Returns the clauses; None where a rejected part of FROM makes the tables unknown."""
        if not self._tokens or self._tokens[0].word != "select":
            raise _wrong(self._rejections, "a part of UNION ALL is not a SELECT", "leave out brackets around it")
        clauses = self._clauses()
        if "from" not in clauses:
            raise _wrong(self._rejections, "it has no FROM", "name the table: SELECT … FROM database.table")
        selected = clauses["select"]
        if selected and selected[0].word == "distinct":
            self._rejections.add("SELECT DISTINCT", selected[0], "GROUP BY the columns")
            selected = selected[1:]
        elif selected and selected[0].word == "all":
            selected = selected[1:]
        source = _From(clauses["from"], self._rejections).parsed()
        if source is None:
            return None
        items = [self._item(part) for part in split(selected, ",")]
        group = list(split(clauses["group"], ",")) if "group" in clauses else []
        for name, part in (("WHERE", clauses.get("where")), ("GROUP BY", clauses.get("group"))):
            if part is not None and not part:
                raise _wrong(self._rejections, f"{name} is empty", f"give what is behind {name}, or leave it out")
        table, joins, unnest = source
        return SelectText(items, table, joins, unnest, clauses.get("where", []), group)

    def _clauses(self) -> dict[str, list[Token]]:
        found: dict[str, list[Token]] = {"select": []}
        current, place = "select", 1
        while place < len(self._tokens):
            token = self._tokens[place]
            after = self._tokens[place + 1].word if place + 1 < len(self._tokens) else ""
            here = not token.depth and ends_operand(self._tokens, place - 1)
            if here and (token.word in ("from", "where") or (token.word, after) == ("group", "by")):
                current = token.word
                if current in found:
                    raise _wrong(self._rejections, f"it has {current.upper()} twice", "write each clause once")
                found[current] = []
                place += 2 if current == "group" else 1
                continue
            if here and any((token.word, after)[: len(words)] == words for words in CLAUSES):
                break  # this clause is rejected already, and the remaining tokens belong to it
            found[current].append(token)
            place += 1
        return found

    def _item(self, tokens: list[Token]) -> ItemText:
        if not tokens:
            raise _wrong(self._rejections, "a column of SELECT is empty", "remove the comma that is too many")
        if len(tokens) > 2 and tokens[-2].word == "as" and tokens[-2].depth == tokens[-1].depth == tokens[0].depth:
            if tokens[-1].name is None:
                raise _wrong(self._rejections, f"AS {tokens[-1].text} names nothing", "give a name behind AS")
            return ItemText(tokens[:-2], tokens[-1].name)
        return ItemText(tokens, None)


class _From:
    """The parser of FROM, which reads from left to right."""

    def __init__(self, tokens: list[Token], rejections: Rejections) -> None:
        self._tokens, self._rejections, self._place = tokens, rejections, 0

    def parsed(self) -> tuple[TableText, list[JoinText], UnnestText | None] | None:
        table, joins, unnests = self._table(), list[JoinText](), list[UnnestText]()
        ok = table is not None
        while self._place < len(self._tokens):
            token = self._tokens[self._place]
            words = self._join_words()
            if token.text == "," or words:
                self._place += 1 if token.text == "," else len(words)
            else:
                raise self._unexpected(token)
            if self._word() == "lateral":
                self._place += 1
            if self._word() == "unnest":
                found = self._unnest(token, words)
                ok = ok and found is not None
                unnests += [found] if found is not None else []
                continue
            join = self._join(token, words)
            ok = ok and join is not None
            joins += [join] if join is not None else []
        for extra in unnests[1:]:
            self._rejections.add("a second UNNEST", extra.at, "unnest it in a view of this one")
        return (table, joins, unnests[0] if unnests else None) if ok and table is not None else None

    def _join_words(self) -> list[str]:
        """Returns the words that introduce a join at the current token; empty where no join begins there."""
        words = list[str]()
        for token in self._tokens[self._place :]:
            if token.word not in _JOIN_WORDS or token.depth:
                return []
            words.append(token.word)
            if token.word == "join":
                return words
        return []

    def _join(self, at: Token, words: list[str]) -> JoinText | None:
        table = self._table()
        keyword, start = self._word(), self._place
        self._place += keyword in ("on", "using")
        condition = self._until_next()
        rejected = [word for word in words if word in _NOT_JOINED]
        if at.text == ",":
            self._rejections.add("tables with a comma between them", at, _NOT_JOINED["cross"])
        elif rejected:
            name = " ".join([word for word in words if word != "join"] + ["join"]).upper()
            self._rejections.add(name, at, _NOT_JOINED[rejected[-1]])
        elif keyword == "using":
            self._rejections.add("USING", self._tokens[start], "write ON with the columns of both tables")
        elif keyword != "on" or not condition:
            self._rejections.add("JOIN without ON", at, _NOT_JOINED["cross"])
        elif table is not None:
            return JoinText("left" if "left" in words else "inner", table, condition)
        return None

    def _until_next(self) -> list[Token]:
        start = self._place
        while self._place < len(self._tokens):
            token = self._tokens[self._place]
            if not token.depth and (token.text == "," or self._join_words()):
                break
            self._place += 1
        return self._tokens[start : self._place]

    def _table(self) -> TableText | None:
        if self._place >= len(self._tokens):
            raise _wrong(self._rejections, "the name of a table is missing", "name it: FROM database.table")
        start = self._tokens[self._place]
        if start.text == "(":  # a subquery, which is rejected already, or tables in brackets
            inner = self._tokens[self._place + 1 : self._place + 2]
            if inner and inner[0].word != "select":
                self._rejections.add("tables in brackets", start, "write the joins one behind the other")
            self._place = closing(self._tokens, self._place) + 1
            self._alias()
            return None
        path = list[str]()
        while True:
            token = self._tokens[self._place] if self._place < len(self._tokens) else None
            if token is None or token.name is None:
                raise self._unexpected(token or start)
            path.append(token.name)
            self._place += 1
            if self._place >= len(self._tokens) or self._tokens[self._place].text != ".":
                break
            self._place += 1
        if self._place < len(self._tokens) and self._tokens[self._place].text == "(":
            self._rejections.add(f"the table function {'.'.join(path)}", start, "name a table")
            self._place = closing(self._tokens, self._place) + 1
            self._alias()
            return None
        return TableText(tuple(path), self._alias() or path[-1], start)

    def _alias(self) -> str | None:
        explicit = self._word() == "as"
        self._place += explicit
        token = self._tokens[self._place] if self._place < len(self._tokens) else None
        if token is not None and token.name is not None and (explicit or self._can_be_alias(token)):
            self._place += 1
            return token.name
        if explicit:
            raise self._unexpected(token or self._tokens[-1])
        return None

    def _can_be_alias(self, token: Token) -> bool:
        return token.word not in {*_JOIN_WORDS, "on", "using", "with", "lateral", "unnest"} or token.kind == "name"

    def _unnest(self, at: Token, words: list[str]) -> UnnestText | None:
        token = self._tokens[self._place]
        self._place += 1
        if self._place >= len(self._tokens) or self._tokens[self._place].text != "(":
            raise self._unexpected(token)
        end = closing(self._tokens, self._place)
        value = self._tokens[self._place + 1 : end]
        self._place = end + 1
        ordinality = [each.word for each in self._tokens[self._place : self._place + 2]] == ["with", "ordinality"]
        self._place += 2 * ordinality
        alias, columns = self._alias(), self._columns()
        condition = self._until_next()
        if at.text != "," and words != ["cross", "join"]:
            name = " ".join([word for word in words if word != "join"] + ["join"]).upper()
            self._rejections.add(f"{name} UNNEST", at, "write CROSS JOIN UNNEST(…) AS name")
            return None
        if alias is None or condition:
            raise self._unexpected(condition[0] if condition else token, "CROSS JOIN UNNEST(…) AS name(column)")
        return UnnestText(value, ordinality, alias, columns, token)

    def _columns(self) -> tuple[str, ...]:
        if self._place >= len(self._tokens) or self._tokens[self._place].text != "(":
            return ()
        end = closing(self._tokens, self._place)
        parts = list(split(self._tokens[self._place + 1 : end], ","))
        self._place = end + 1
        for part in parts:
            if len(part) != 1 or part[0].name is None:
                raise self._unexpected(part[0] if part else self._tokens[end], "names: AS name(column, position)")
        return tuple(str(part[0].name) for part in parts)

    def _word(self) -> str:
        return self._tokens[self._place].word if self._place < len(self._tokens) else ""

    def _unexpected(self, token: Token, expected: str = "FROM database.table [AS name] [JOIN …]") -> InvalidInput:
        return _wrong(self._rejections, f"`{text_of([token])}` at character {token.at + 1:,}", f"write {expected}")
