"""Expressions as tokens: a canonical text, which is equal for different spellings, and renaming of columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from deployer.platform.sql.one_expression import TOKEN

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
#: words that are columns only in quotes
_WORDS = frozenset(
    (
        *("all", "and", "as", "between", "case", "cast", "distinct", "else", "end", "exists", "false", "from", "ilike"),
        *("in", "is", "like", "not", "null", "or", "select", "then", "true", "try_cast", "when"),
    )
)


def canonical_expression(text: str) -> str:
    """Returns a text that is equal for expressions that differ only in blanks, capitals and quotes of names."""
    return " ".join(_canonical(*each) for each in _pieces(text) if each[1].strip())


def _canonical(kind: str, piece: str, name: str | None) -> str:
    if name is None:
        return piece
    return name if kind == "word" else _written(name)


def rename_in_expression(text: str, renames: Mapping[str, str]) -> str:
    """Returns the expression with the new names of columns, by the old ones, at each place that may be a column.

    Such a place is a name at the beginning of a path that is not recognizable as a word, function or type of SQL. The
    caller plans the result, and compares its inputs with the former ones.
    """
    pieces = list(_pieces(text))
    numbers = [number for number, (kind, _, _) in enumerate(pieces) if kind != "blank"]
    solid = [pieces[number][:2] for number in numbers]
    written = [piece for _, piece, _ in pieces]
    for place, number in enumerate(numbers):
        kind, _, name = pieces[number]
        if name is not None and name in renames and (kind == "name" or not is_word_of_sql(solid, place)):
            before = solid[place - 1][1] if place else ""
            if before != ".":
                written[number] = _written(renames[name])
    return "".join(written)


def as_read_by_lance(text: str, columns: Sequence[str]) -> str:
    """Returns a condition that DataFusion reads as Lance does: names of columns in any case, and texts in double
    quotes."""
    own = {name.casefold(): name for name in columns} | {name: name for name in columns}
    pieces = [(str(each.lastgroup), each[0]) for each in TOKEN.finditer(text)]
    solid = [number for number, (kind, _) in enumerate(pieces) if kind != "blank"]
    written = [piece for _, piece in pieces]
    for place, number in enumerate(solid):
        kind, piece = pieces[number]
        if kind == "name":
            inner = piece[1:-1].replace(piece[0] * 2, piece[0])
            quote = "'" if piece[0] == '"' else '"'
            written[number] = quote + inner.replace(quote, quote * 2) + quote
        elif kind == "word" and not is_word_of_sql([pieces[each] for each in solid], place):
            name = own.get(piece, own.get(piece.casefold(), ""))
            if name and (not place or pieces[solid[place - 1]][1] != "."):
                written[number] = '"' + name.replace('"', '""') + '"'
    return "".join(written)


def is_word_of_sql(pieces: Sequence[tuple[str, str]], place: int) -> bool:
    """Returns whether a name without quotes is not a column: `DATE '2020-01-01'`, `INTERVAL '1' day`, `AS date`,
    `extract(year FROM at)`, `year(at)`. `pieces` are the kinds and texts of the tokens around it."""

    def at(step: int) -> tuple[str, str]:
        inside = 0 <= place + step < len(pieces)
        return (pieces[place + step][0], pieces[place + step][1].lower()) if inside else ("", "")

    (kind_before, before), (kind_after, after) = at(-1), at(1)
    in_extract = (at(-2)[1], before, after) == ("extract", "(", "from")
    return (
        at(0)[1] in _WORDS
        or before in ("as", "::")
        or after == "("
        or "text" in (kind_before, kind_after)
        or in_extract
    )


def _pieces(text: str) -> Iterator[tuple[str, str, str | None]]:
    """Yields the kind and the text of each token, and the name that it means, as SQL reads it."""
    for found in TOKEN.finditer(text):
        kind, piece = str(found.lastgroup), found[0]
        name = piece[1:-1].replace(piece[0] * 2, piece[0]) if kind == "name" else None
        yield kind, piece, piece.lower() if kind == "word" else name


def _written(name: str) -> str:
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else '"' + name.replace('"', '""') + '"'
