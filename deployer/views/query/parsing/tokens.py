"""The text of a query as tokens, cut by the tokenizer of `deployer.platform.sql`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from deployer.errors import InvalidInput
from deployer.platform.sql.one_expression import LONGEST, TOKEN

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_REFUSED: Mapping[str, str] = {
    "comment": "a comment without its end",
    "prefixed": "a string with a prefix",
    "quote": "a quote without its other half",
    "placeholder": "a placeholder",
    "other": "a character that no query has",
}
_PAIRS = {")": "(", "]": "["}


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the query. `at` is the position of its first character, counted from 0; `depth` is the number of
    brackets around it.

    An opening and a closing bracket have the depth of the text outside of them.
    """

    kind: str
    text: str
    at: int
    depth: int

    @property
    def end(self) -> int:
        return self.at + len(self.text)

    @property
    def word(self) -> str:
        """The word in small letters; empty for all other tokens, including names in quotes."""
        return self.text.lower() if self.kind == "word" else ""

    @property
    def name(self) -> str | None:
        """Returns the name that a word or a quoted name stands for; None for other tokens."""
        if self.kind == "name":
            return self.text[1:-1].replace(self.text[0] * 2, self.text[0])
        return self.word or None


def tokenize(query: str, where: str = "query") -> list[Token]:
    """Returns the tokens without blanks and comments, and without one `;` at the end.

    Raises InvalidInput, which names `where` and the position, for text that no query can contain.
    """
    if len(query) > LONGEST:
        raise InvalidInput(
            f"the query has more than {LONGEST:,} characters", where=where, remedy="make several views of it"
        )
    found, brackets, place = list[Token](), list[str](), 0
    end = len(query.rstrip().removesuffix(";"))
    while place < end:
        if comment := _COMMENT.match(query, place):
            place = comment.end()
            continue
        match = TOKEN.match(query, place)
        if match is None or match.lastgroup in _REFUSED:
            what = _REFUSED[str(match.lastgroup)] if match is not None else "a character that no query has"
            raise _unreadable(f"{what} (`{query[place : place + 1]}`)", place, where)
        kind, text = str(match.lastgroup), match[0]
        if kind == "close" and (not brackets or brackets.pop() != _PAIRS[text]):
            raise _unreadable(f"`{text}` without its other half", place, where)
        if kind != "blank":
            found.append(Token(kind, text, place, len(brackets)))
        if kind == "open":
            brackets.append(text)
        place = match.end()
    if brackets:
        last = next(each for each in reversed(found) if each.kind == "open" and each.depth == len(brackets) - 1)
        raise _unreadable(f"`{brackets[-1]}` without its other half", last.at, where)
    return found


def _unreadable(what: str, at: int, where: str) -> InvalidInput:
    what = f"the query cannot be read: {what} at character {at + 1:,}"
    return InvalidInput(what, where=where, remedy="give one SELECT")


def text_of(tokens: Sequence[Token]) -> str:
    """Returns the text of tokens. Text between two tokens, such as blanks and comments, becomes one blank."""
    return joined((token.text, token.at, token.end) for token in tokens)


def joined(pieces: Iterable[tuple[str, int, int]]) -> str:
    """Returns pieces of text as one text. Each piece has its start and end in the query; a gap becomes one blank."""
    parts, before = list[str](), None
    for text, start, end in pieces:
        if before is not None and start != before:
            parts.append(" ")
        parts.append(text)
        before = end
    return "".join(parts)


def split(tokens: Sequence[Token], separator: str) -> Iterator[list[Token]]:
    """Yields the parts between the separators, which are commas (`,`) or words (`and`) outside of further brackets.

    The AND of BETWEEN, and words between CASE and END, are not separators.
    """
    depth = min((token.depth for token in tokens), default=0)
    part, cases, betweens = list[Token](), 0, 0
    for token in tokens:
        at_depth = token.depth == depth
        if at_depth:
            cases += (token.word == "case") - (token.word == "end")
            betweens += token.word == "between" and not cases
        if at_depth and token.word == "and" and betweens and not cases:
            betweens -= 1
        elif at_depth and not cases and separator == (token.word or token.text):
            yield part
            part = []
            continue
        part.append(token)
    yield part


def has_word(tokens: Sequence[Token], word: str) -> bool:
    """Returns whether a word is among the tokens, outside of further brackets and not between CASE and END."""
    return len(list(split(tokens, word))) > 1


def closing(tokens: Sequence[Token], start: int) -> int:
    """Returns the index of the bracket that closes the one at index `start`."""
    depth = tokens[start].depth
    return next(
        place
        for place in range(start + 1, len(tokens))
        if tokens[place].kind == "close" and tokens[place].depth == depth
    )
