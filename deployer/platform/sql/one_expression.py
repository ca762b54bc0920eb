"""The check that a text is one SQL expression up to its last character, so that it can be put into brackets.

Lance reads a condition as the end of a statement: it takes the WHERE and ignores the text after it, such as `)`, `; x`
or `LIMIT 1`. So `1=1) OR (1=1` ends the brackets around it. This module splits the text into tokens as Lance and
DataFusion do (sqlparser's generic dialect, with names in backticks). Text that their dialects may split differently is
refused: comments, strings with a prefix, `$...$`, placeholders. Brackets must be balanced. A parser then checks that
the text is an expression: `deployer.platform.sql.parsing.check_expression` does both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 1_000_000  #: characters of a condition
MOST_OPERATORS = 10_000  #: at most this many words such as AND and OR; a list of values has none
#: Operators below each other. Each takes stack frames of the parser and the planner, which bound the depth of brackets
#: alone: 1,000 in a row end the process (tried).
DEEPEST = 250

TOKEN = re.compile(
    r"""
    (?P<blank>\s+)
  | (?P<comment>--|/\*|\#)
  | (?P<prefixed>(?:b|r|n|e|q|br|rb|nq|u&)['"])
  | (?P<text>'(?:[^']|'')*')
  | (?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
  | (?P<quote>['"`])
  | (?P<word>[^\W\d]\w*)
  | (?P<number>\d[\w.]*)
  | (?P<open>[(\[])
  | (?P<close>[)\]])
  | (?P<comma>,)
  | (?P<cast>::)
  | (?P<placeholder>[:?$@](?!>))
  | (?P<other>[;\\{}\x00])
  | (?P<operator>[-+*/%|&^~<>=!.@]+?)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_COMMENT = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`)|--[^\n]*|/\*.*?\*/""", re.DOTALL)
_NEXT = re.compile(r"\s*(\S)")
_PAIRS = {")": "(", "]": "["}
_CONNECTIVES = frozenset(("and", "or", "when", "then", "else"))
# The depth that each operator adds. Chains of AND and OR are cheaper; BETWEEN copies its left side twice.
_WORD, _OPERATOR, _CONNECTIVE, _BETWEEN = 4, 8, 1, 250


class NotOneExpression(ValueError):
    """The text is not one expression. `at` is the place of the fault in the text, counted from 1."""

    def __init__(self, what: str, at: int) -> None:
        self.what, self.at = what, at
        super().__init__(f"{what} at character {at:,}")


@dataclass(slots=True)
class _Level:
    """An open pair of brackets: its place, and the depth below it so far."""

    bracket: str = ""
    at: int = 0
    connectives: int = 0
    betweens: int = 0  #: open BETWEEN words, whose AND has not come yet
    here: int = 0  #: depth of the operand since the last AND, OR or comma
    inner: int = 0  #: of the deepest brackets in it
    deepest: int = 0

    def end_operand(self) -> None:
        self.deepest = max(self.deepest, self.here + self.inner)
        self.here = self.inner = 0

    def depth(self) -> int:
        self.end_operand()
        return self.deepest + self.connectives

    def add_word(self, word: str) -> None:
        if word == "between":
            self.betweens += 1
            self.here += _BETWEEN
        elif word == "and" and self.betweens:
            self.betweens -= 1
        elif word in _CONNECTIVES:
            self.end_operand()
            self.connectives += _CONNECTIVE
        else:
            self.here += _WORD


def check_one_expression(text: str, longest: int = LONGEST, *, lenient: bool = False) -> None:
    """Raises NotOneExpression when the text is not one expression, or one that is too long or too deep to compute.

    `lenient`: it may contain comments and a name for the value, as in texts that earlier releases stored.
    """
    if lenient:
        text = _COMMENT.sub(lambda found: found[1] or " ", text)
    if len(text) > longest:
        raise NotOneExpression(f"more than {longest:,} characters", longest + 1)
    levels, operators, before = [_Level()], 0, "open"
    place = 0
    while place < len(text):
        found = TOKEN.match(text, place)
        if found is None:
            raise NotOneExpression(f"the character {text[place]!r}", place + 1)
        kind, piece = str(found.lastgroup), found[0]
        _refuse(kind, piece, place + 1)
        if not lenient and before == "open" and _opens_subquery(kind, piece, text, found.end(), len(levels)):
            raise NotOneExpression(f"a subquery (`{piece}`)", place + 1)
        is_sign = kind == "operator" and before in ("open", "comma")
        if kind in ("word", "operator", "cast") and not is_sign:
            operators += 1
            if operators > MOST_OPERATORS:
                raise NotOneExpression(f"more than {MOST_OPERATORS:,} names and operators", place + 1)
        if not (lenient and len(levels) == 1 and piece.lower() == "as"):
            _count(levels, kind, piece, place + 1)
        before = before if kind == "blank" else kind
        place = found.end()
    if len(levels) > 1:
        raise NotOneExpression(f"`{levels[-1].bracket}` without its other half", levels[-1].at)
    if before == "open":
        raise NotOneExpression("no expression", 1)
    if levels[0].depth() > DEEPEST * _OPERATOR:
        raise NotOneExpression(f"more than {DEEPEST} operators that depend on each other", 1)


def names_in(text: str) -> frozenset[str]:
    """Returns the names in an expression that may be columns, as SQL reads them: names without quotes are in small
    letters.

    The result also has names of functions and words of SQL.
    """
    found = [(str(each.lastgroup), each[0]) for each in TOKEN.finditer(text)]
    quoted = (piece[1:-1].replace(piece[0] * 2, piece[0]) for kind, piece in found if kind == "name")
    return frozenset((*quoted, *(piece.lower() for kind, piece in found if kind == "word")))


def _refuse(kind: str, piece: str, at: int) -> None:
    match kind:
        case "comment":
            raise NotOneExpression(f"a comment (`{piece}`)", at)
        case "prefixed":
            raise NotOneExpression(f"a string with the prefix `{piece[:-1]}`", at)
        case "quote":
            raise NotOneExpression(f"`{piece}` without its other half", at)
        case "placeholder":
            raise NotOneExpression(f"the placeholder `{piece}`", at)
        case "other":
            raise NotOneExpression("the end of a statement (`;`)" if piece == ";" else f"the character {piece!r}", at)


def _opens_subquery(kind: str, piece: str, text: str, end: int, depth: int) -> bool:
    """Returns whether brackets contain a query at the place of a value; `values` and `with` may be names of columns
    too."""
    if kind != "word" or depth == 1:
        return False
    following = _NEXT.match(text, end)
    match piece.lower():
        case "select":
            return True
        case "values":
            return following is not None and following[1] == "("
        case "with" | "table":
            return following is not None and (following[1].isalnum() or following[1] in '_"`')
        case _:
            return False


def _count(levels: list[_Level], kind: str, piece: str, at: int) -> None:
    level = levels[-1]
    match kind:
        case "open":
            levels.append(_Level(piece, at))
        case "close":
            if level.bracket != _PAIRS[piece]:
                raise NotOneExpression(f"`{piece}` without its other half", at)
            levels.pop()
            levels[-1].inner = max(levels[-1].inner, level.depth())
            levels[-1].here += _OPERATOR
        case "comma":
            if len(levels) == 1:
                raise NotOneExpression("a second expression after `,`", at)
            level.end_operand()
        case "word":
            if piece.lower() == "as" and len(levels) == 1:
                raise NotOneExpression("a name for the value (`AS`)", at)
            level.add_word(piece.lower())
        case "operator" | "cast":
            level.here += _OPERATOR
