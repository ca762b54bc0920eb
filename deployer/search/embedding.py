"""Computes the vector of a text, by the embedding function that a table declares."""

from __future__ import annotations

from typing import Any

from deployer.errors import InvalidInput
from deployer.search.target import SearchTarget
from deployer.search.vectors import Vector, fitted, read_vector

_OTHERWISE = '; query_type="fts" searches the words without it'


def embedded(text: str, column: str, target: SearchTarget) -> Vector:
    """Returns the vector of the text for that column of vectors.

    The function gets a list of texts and returns a vector for each. Raises Refused for a function that is not trusted.
    Raises InvalidInput where the column has no function, or the function fails or returns another value.
    """
    embedding = target.embedding
    if embedding is None or embedding.vector != column:
        raise InvalidInput(
            f"column {column!r} has no embedding function, so a text cannot be searched in it",
            where=target.address,
            remedy='declare `embedding:` for it, give a vector, or search the words with query_type="fts"',
        )
    what = "the embedding function"
    function = target.trusted.load(embedding.function, what=what, where=target.address, otherwise=_OTHERWISE)
    try:
        vectors = function([text])
    except Exception as failure:  # the user's function may raise any exception
        raise InvalidInput(
            f"{what} `{embedding.function}` failed: {type(failure).__name__}: {failure}",
            where=target.address,
            remedy="correct the function, or give a vector",
        ) from failure
    try:
        return fitted(read_vector(_only(vectors), target.address), column, target)
    except InvalidInput as wrong:
        raise InvalidInput(
            f"{what} `{embedding.function}` did not return one vector for column {column!r}: {wrong.what}",
            where=target.address,
            remedy="it gets a list of texts, and returns a list with a vector for each",
        ) from None


def _only(vectors: Any) -> Any:
    """Returns the one vector of a result for one text."""
    try:
        count = len(vectors)
    except TypeError:
        raise InvalidInput(f"it is of type {type(vectors).__name__}") from None
    if count != 1:
        raise InvalidInput(f"it has {count} items for 1 text")
    try:
        return vectors[0]
    except (KeyError, IndexError, TypeError):
        raise InvalidInput(f"it is of type {type(vectors).__name__}") from None
