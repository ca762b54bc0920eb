"""Rerankers, which reorder the results of searches, and reciprocal rank fusion, the default for hybrid searches.

A reranker is any object with the methods for its kinds of searches; LanceDB's rerankers have the same methods. A result
is an Arrow table with the column `_rowid`, and `_distance` or `_score`. A reranker's result has the column
`_relevance_score`, and the best row first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.errors import InvalidInput

ROW_ID, DISTANCE, SCORE, RELEVANCE = "_rowid", "_distance", "_score", "_relevance_score"
Normalize = Literal["score", "rank"]


@runtime_checkable
class HybridReranker(Protocol):
    """Joins the two results of a hybrid search.

    Distances and scores, or their ranks, are scaled to 0 to 1 within each result.
    """

    def rerank_hybrid(self, query: str, vector_results: pa.Table, fts_results: pa.Table) -> pa.Table: ...


@runtime_checkable
class VectorReranker(Protocol):
    """Orders the result of a vector search."""

    def rerank_vector(self, query: str, vector_results: pa.Table) -> pa.Table: ...


@runtime_checkable
class TextReranker(Protocol):
    """Orders the result of a full-text search."""

    def rerank_fts(self, query: str, fts_results: pa.Table) -> pa.Table: ...


Reranker = HybridReranker | VectorReranker | TextReranker


@dataclass(frozen=True, slots=True)
class RRFReranker:
    """Reciprocal rank fusion: the score of a row is the sum of 1 / (k + its rank) over the results that have it.

    Ranks count from 1. Among rows with equal scores, those that the vector search found come first. With
    `return_score="all"` the rows keep `_distance` and `_score` beside `_relevance_score`; null where only the other
    search found the row.
    """

    k: int = 60
    return_score: Literal["relevance", "all"] = "relevance"

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or isinstance(self.k, bool) or self.k <= 0:
            raise InvalidInput(f"k of reciprocal rank fusion is {self.k!r}", remedy="give a whole number above 0")
        if self.return_score not in ("relevance", "all"):
            raise InvalidInput(f"return_score is {self.return_score!r}", remedy='give "relevance" or "all"')

    def rerank_hybrid(self, query: str, vector_results: pa.Table, fts_results: pa.Table) -> pa.Table:
        """Returns both results as one, each row once, the highest `_relevance_score` first."""
        near, with_words = (each[ROW_ID].to_pylist() for each in (vector_results, fts_results))
        scores: dict[int, float] = {}
        for ids in (near, with_words):
            for rank, row in enumerate(ids, 1):
                scores[row] = scores.get(row, 0.0) + 1 / (self.k + rank)
        joined = _union(vector_results, fts_results)
        relevance = np.array([scores[row] for row in joined[ROW_ID].to_pylist()])
        order = np.argsort(-relevance, kind="stable")
        result = joined.append_column(RELEVANCE, pa.array(relevance, pa.float32())).take(pa.array(order, pa.int64()))
        return result if self.return_score == "all" else result.drop_columns([DISTANCE, SCORE])


def _union(near: pa.Table, with_words: pa.Table) -> pa.Table:
    """Returns the rows of both results, each once, with `_distance` and `_score`."""
    scores = pc.take(with_words[SCORE], pc.index_in(near[ROW_ID], with_words[ROW_ID].combine_chunks()))
    others = with_words.filter(pc.invert(pc.is_in(with_words[ROW_ID], near[ROW_ID].combine_chunks())))
    return pa.concat_tables([near.append_column(SCORE, scores), others], promote_options="default")


def fused(
    reranker: HybridReranker, query: str, near: pa.Table, with_words: pa.Table, normalize: Normalize, address: str
) -> pa.Table:
    """Returns the two results of a hybrid search, joined by the reranker, with their original distances and scores."""
    given = _normalized(near, DISTANCE, normalize), _normalized(with_words, SCORE, normalize)
    result = checked(reranker.rerank_hybrid(query, *given), reranker, address)
    for own, name in ((near, DISTANCE), (with_words, SCORE)):
        if name in result.column_names and ROW_ID in result.column_names:
            places = pc.index_in(result[ROW_ID], own[ROW_ID].combine_chunks())
            values = pc.take(own[name], places)
            result = result.set_column(result.column_names.index(name), name, values)
    return result


def checked(result: Any, reranker: object, address: str) -> pa.Table:
    """Returns the result of a reranker. Raises InvalidInput for a result that is not a table with
    `_relevance_score`."""
    if isinstance(result, pa.Table) and RELEVANCE in result.column_names:
        return result
    found = f"columns {', '.join(result.column_names)}" if isinstance(result, pa.Table) else type(result).__name__
    raise InvalidInput(
        f"the reranker {type(reranker).__name__} returned {found}",
        where=address,
        remedy=f"it must return an Arrow table with the column {RELEVANCE}",
    )


def _normalized(results: pa.Table, name: str, normalize: Normalize) -> pa.Table:
    """Returns the result with that column scaled: its lowest value is 0, its highest 1."""
    if not results.num_rows:
        return results
    values = results[name].to_numpy().astype(np.float32)
    if normalize == "rank":
        values = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float32)
    low, high = values.min(), values.max()
    scaled = (values - low) / (high - low if high > low else np.float32(1))
    return results.set_column(results.column_names.index(name), name, pa.array(scaled, pa.float32()))
