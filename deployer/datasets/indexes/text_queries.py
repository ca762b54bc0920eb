"""Lance's full-text queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance.query import FullTextQuery


def words_query(words: str, columns: Sequence[str]) -> FullTextQuery:
    """Returns rows that have any of the words in a column; of several columns, the one with the highest score
    counts."""
    from lance.query import MatchQuery, MultiMatchQuery

    return MatchQuery(words, columns[0]) if len(columns) == 1 else MultiMatchQuery(words, list(columns))


def phrase_query(phrase: str, columns: Sequence[str]) -> FullTextQuery:
    """Returns rows that have the words of the phrase one after the other in a column; scores of several columns are
    added."""
    from lance.query import BooleanQuery, Occur, PhraseQuery

    queries: list[Any] = [PhraseQuery(phrase, column) for column in columns]
    return queries[0] if len(queries) == 1 else BooleanQuery([(Occur.SHOULD, each) for each in queries])


def descending(column: str) -> Any:
    """Returns Lance's ordering by a column: highest first, nulls last."""
    from lance.dataset import ColumnOrdering

    return ColumnOrdering(column, ascending=False, nulls_first=False)
