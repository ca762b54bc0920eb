"""Expressions as tokens: one text for those that differ only in how they are written, and other names for columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from deployer.platform.sql.one_expression import TOKEN

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def canonical_expression(text: str) -> str:
    """Returns a text that is equal for expressions that differ only in blanks, capitals and quotes of names."""
    return " ".join(_written(name) if name is not None else piece for _, piece, name in _pieces(text) if piece.strip())


def rename_in_expression(text: str, renames: Mapping[str, str]) -> str:
    """Returns the expression with the new names of columns, by the old ones, in each place that may mean a column.

    That is a name at the beginning of a path, neither a type (`AS date`) nor followed by `(`. It may be a word of SQL,
    too: the caller plans the result, and compares what it reads with what the expression read before.
    """
    pieces = list(_pieces(text))
    written: list[str] = []
    previous = ""
    for number, (kind, piece, name) in enumerate(pieces):
        following = next((each for what, each, _ in pieces[number + 1 :] if what != "blank"), "")
        means = name in renames and previous.lower() not in (".", "::", "as") and following != "("
        written.append(_written(renames[str(name)]) if means else piece)
        previous = previous if kind == "blank" else piece
    return "".join(written)


def _pieces(text: str) -> Iterator[tuple[str, str, str | None]]:
    """Yields the kind and the text of each token, and the name that it means, as SQL reads it."""
    for found in TOKEN.finditer(text):
        kind, piece = str(found.lastgroup), found[0]
        name = piece[1:-1].replace(piece[0] * 2, piece[0]) if kind == "name" else None
        yield kind, piece, piece.lower() if kind == "word" else name


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'
