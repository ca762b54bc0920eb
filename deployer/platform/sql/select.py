"""A SELECT over several tables, as in views: the tables that it reads, and DataFusion's plan without rows.

Functions of the caller are not available for the plan. A call of one is planned as a value of the function's result
type, which reads the arguments of the call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from deployer.platform.sql.one_expression import TOKEN, NotOneExpression
from deployer.platform.sql.renaming import canonical_expression

if TYPE_CHECKING:
    import pyarrow as pa

LONGEST_SELECT = 100_000  #: characters
DEEPEST_BRACKETS = 40
MOST_IN_A_ROW = 250  #: names and operators between two commas or brackets; more end the process that plans them
_COMMENT = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`)|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_CLAUSES = frozenset(("select", "from", "where", "group", "having", "order", "limit", "union", "join", "on", "with"))
#: Words before a bracket that is not one of a call: `FROM (`, `IN (`, `AS (`.
_NO_FUNCTIONS = _CLAUSES | {"as", "in", "exists", "and", "or", "not", "all", "by", "using", "then", "else", "when"}


class NotOneSelect(ValueError):
    """A text is not one SELECT. The message is the end of a sentence."""


def without_comments(text: str) -> str:
    """Returns a statement without its comments; quoted text is unchanged."""
    return _COMMENT.sub(lambda found: found[1] or " ", text)


@lru_cache(64)  # a refresh compares the query of the view several times
def canonical_select(text: str) -> str:
    """Returns a text that is equal for statements that differ only in blanks, comments, and capitals and quotes of
    names."""
    return canonical_expression(without_comments(text))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "name")

    @property
    def name(self) -> str:
        """The name as SQL reads it: a name without quotes is in small letters."""
        if self.kind == "name":
            return self.text[1:-1].replace(self.text[0] * 2, self.text[0])
        return self.text.lower()

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind == "word" else ""


def check_select(text: str) -> None:
    """Raises NotOneSelect for a text that is not one SELECT by its tokens, or one that is too long or too deep to plan.
    The planner checks that it is correct SQL."""
    if len(text) > LONGEST_SELECT:
        raise NotOneSelect(f"it has more than {LONGEST_SELECT:,} characters")
    tokens = _tokens(text)
    if not tokens or tokens[0].word not in ("select", "with"):
        raise NotOneSelect("it does not begin with SELECT")
    depth, in_a_row = 0, 0
    for token in tokens:
        if token.kind == "open":
            depth += 1
        elif token.kind == "close":
            depth -= 1
        in_a_row = 0 if token.kind in ("open", "close", "comma") or token.word in _CLAUSES else in_a_row + 1
        if depth > DEEPEST_BRACKETS:
            raise NotOneSelect(f"more than {DEEPEST_BRACKETS} brackets are inside of each other")
        if in_a_row > MOST_IN_A_ROW:
            raise NotOneSelect(f"an expression has more than {MOST_IN_A_ROW} names and operators in a row")


def _tokens(text: str) -> list[_Token]:
    """Returns the tokens except blanks. Raises NotOneSelect for tokens that end a statement, and for unclosed
    quotes."""
    text = without_comments(text)
    found = []
    place = 0
    while place < len(text):
        piece = TOKEN.match(text, place)
        if piece is None:
            raise NotOneSelect(f"it has the character {text[place]!r}")
        kind = str(piece.lastgroup)
        if kind == "other" and piece[0] == ";":
            raise NotOneSelect("it has the end of a statement (`;`)")
        if kind == "quote":
            raise NotOneSelect(f"it has `{piece[0]}` without its other half")
        if kind in ("prefixed", "placeholder", "other"):
            raise NotOneSelect(f"it has {piece[0]!r}, which SQL of views does not have")
        if kind != "blank":
            found.append(_Token(kind, piece[0], piece.start(), piece.end()))
        place = piece.end()
    return found


@dataclass(frozen=True, slots=True)
class NamedTables:
    """The tables that a statement names after FROM and JOIN: by full names, and by single names. Names that the
    statement itself defines (`WITH name AS`) are left out."""

    full: tuple[str, ...]
    bare: tuple[str, ...]


def named_tables(text: str) -> NamedTables:
    """Returns the tables of a statement that passed `check_select`, each once, in their order."""
    tokens = _tokens(text)
    given = {
        tokens[place].name
        for place in range(1, len(tokens) - 2)
        if tokens[place].is_name
        and tokens[place + 1].word == "as"
        and tokens[place + 2].kind == "open"
        and (tokens[place - 1].word in ("with", "recursive") or tokens[place - 1].kind == "comma")
    }
    full: dict[str, None] = {}
    bare: dict[str, None] = {}
    calls: list[bool] = []  # for each open bracket, whether it belongs to a call
    in_from = [False]  # for each depth, whether a comma separates tables
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else None
        if token.kind == "open":
            calls.append(before is not None and before.is_name and before.word not in _NO_FUNCTIONS)
            in_from.append(False)
        elif token.kind == "close" and calls:
            calls.pop()
            in_from.pop()
        elif token.word in ("from", "join") and not (calls and calls[-1]):
            in_from[-1] = True
            _add_table(tokens, place + 1, given, full, bare)
        elif token.kind == "comma" and in_from[-1]:
            _add_table(tokens, place + 1, given, full, bare)
        elif token.word in _CLAUSES:
            in_from[-1] = token.word == "on" and in_from[-1]
    return NamedTables(tuple(full), tuple(bare))


def _add_table(tokens: list[_Token], place: int, given: set[str], full: dict[str, None], bare: dict[str, None]) -> None:
    path: list[str] = []
    while place < len(tokens) and tokens[place].is_name:
        path.append(tokens[place].name)
        place += 1
        if place >= len(tokens) or tokens[place].text != ".":
            break
        place += 1
    follows = tokens[place].kind if place < len(tokens) else ""
    if not path or follows == "open" or tokens[place - 1].word in ("lateral", "unnest"):
        return
    if len(path) == 1:
        if path[0] not in given:
            bare[path[0]] = None
    else:
        full[".".join(path)] = None


@dataclass(frozen=True, slots=True)
class PlannedSelect:
    """The inputs and outputs of a SELECT: its columns with their types, the columns of each table that it reads, and
    the source columns of each of its columns."""

    schema: pa.Schema
    reads: Mapping[str, tuple[str, ...]]
    lineage: Mapping[str, tuple[tuple[str, str], ...]]


class NotPlanned(ValueError):
    """A SELECT cannot be planned. The message is the end of a sentence. `column` is a column that no table has; `place`
    is the place of a fault in the text: the line and the column, from 1."""

    def __init__(self, what: str, column: str = "") -> None:
        self.column = column
        super().__init__(what)


def plan_select(text: str, tables: Mapping[str, pa.Schema], functions: Mapping[str, pa.DataType]) -> PlannedSelect:
    """Returns the inputs and outputs of a SELECT over tables, by full names. `functions` are the result types of
    functions that DataFusion does not have. Raises NotOneSelect, and NotPlanned where DataFusion refuses it."""
    import datafusion
    from datafusion.catalog import Schema

    from deployer.platform.sql.lineage import lineage_of

    check_select(text)
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    names: dict[str, str] = {}
    for number, (full_name, schema) in enumerate(tables.items()):
        database, _, name = full_name.partition(".")
        if database not in context.catalog().names():
            context.catalog().register_schema(database, Schema.memory_schema())
        scanned = f"source_{number}"
        names[scanned] = full_name
        view = context.from_arrow(schema.empty_table(), scanned).into_view()
        context.catalog().schema(database).register_table(name, view)
    for name, kind in functions.items():
        context.register_udf(datafusion.udf(_never_called, [], kind, "stable", _stand_in(name)))
    only_reads = datafusion.SQLOptions().with_allow_ddl(False).with_allow_dml(False).with_allow_statements(False)
    try:
        frame: Any = context.sql_with_options(_with_stand_ins(without_comments(text), functions), only_reads)
        found: pa.Schema = frame.schema()
        reads, lineage = lineage_of(frame.logical_plan(), found.names, names)
    except Exception as failure:  # DataFusion does not document the kind of the exception
        raise _not_planned(failure) from None
    return PlannedSelect(found, reads, lineage)


def _never_called() -> None:
    raise NotOneExpression("a call while it is planned", 1)


def _stand_in(name: str) -> str:
    return f"deployer_planned_{name.lower()}"


def _with_stand_ins(text: str, functions: Mapping[str, object]) -> str:
    """Returns the statement; each call of one of the functions is replaced by a value that reads the arguments of the
    call."""
    known = {name.lower() for name in functions}
    if not known:
        return text
    tokens = _tokens(text)
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(place)
        elif token.kind == "close" and opened:
            pairs[opened.pop()] = place

    def written(start: int, end: int, at: int) -> str:
        """Returns the text of the tokens from `start` to before `end`, which begins at the character `at`."""
        parts: list[str] = []
        place = start
        while place < end:
            token = tokens[place]
            closing = pairs.get(place + 1)
            if token.is_name and token.name.lower() in known and closing is not None:
                parts.append(text[at : token.start])
                inside = written(place + 2, closing, tokens[place + 1].end)
                call = f"{_stand_in(token.name)}()"
                parts.append(f"(CASE WHEN struct({inside}) IS NULL THEN {call} ELSE {call} END)" if inside else call)
                at, place = tokens[closing].end, closing + 1
            else:
                place += 1
        until = tokens[end].start if end < len(tokens) else len(text)
        return "".join([*parts, text[at:until]])

    return written(0, len(tokens), 0)


def _not_planned(failure: BaseException) -> NotPlanned:
    text = str(failure).splitlines()[0] if str(failure) else type(failure).__name__
    if re.search(r"(DDL|DML|Statement) not supported", text):
        return NotPlanned("it is not a SELECT")
    for noise in ("DataFusion error: ", "Arrow error: ", "Schema error: ", "Error during planning: "):
        text = text.replace(noise, "")
    if missing := re.search(r"No field named (.+?)\.(?:\s|$)", text):
        name = missing[1].replace('"', "")
        return NotPlanned(f"no table that it reads has a column `{name}`", name.rsplit(".", 1)[-1])
    if parsing := re.search(r'SQL error: ParserError\("(.*?)"\)', text):
        return NotPlanned(f"the SQL cannot be read: {parsing[1]}")
    text = re.sub(r"deployer_planned_(\w+)", r"\1", text).partition(" No function matches")[0].rstrip(".")
    return NotPlanned(text[:1].lower() + text[1:])
