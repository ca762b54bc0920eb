"""Query texts: words, and phrases in double quotes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deployer.errors import InvalidInput
from deployer.search.target import SearchTarget


def read_text(query: Any, address: str) -> str:
    """Returns the text of a full-text query. Raises InvalidInput for another value, and for a text without words."""
    if not isinstance(query, str):
        raise InvalidInput(
            f"the query of a full-text search is of type {type(query).__name__}",
            where=address,
            remedy='give a string, or search a vector with query_type="vector"',
        )
    if not query.strip(' \t\r\n"'):
        raise InvalidInput("the query text is empty", where=address, remedy="give the words to search")
    return query


def phrase_of(text: str) -> str | None:
    """Returns the phrase of a text in double quotes; None for separate words."""
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else None


def require_positions(text: str, columns: Sequence[str], target: SearchTarget) -> None:
    """Raises InvalidInput for a phrase in a column whose index keeps no positions of words."""
    if phrase_of(text) is None:
        return
    for column in columns:
        index = target.text_indexes.get(column)
        if index is not None and not index.parameters.get("with_position"):
            raise InvalidInput(
                f"index {index.index.name!r} of column {column!r} keeps no positions of words, which a phrase needs",
                where=target.address,
                remedy="build it with `with_position: true`, or search the words without quotes",
            )
