"""Hybrid searches join both results by reciprocal rank fusion, or by a reranker that is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lancedb.rerankers import LinearCombinationReranker
from lancedb.rerankers import RRFReranker as LanceDbRrf

from deployer.errors import InvalidInput
from deployer.search import RRFReranker, SearchBuilder
from deployer.table import Table
from tests.search.articles import WORDS, documents
from tests.search.conftest import Opened
from tests.tables.indexed import SIZE
from tests.tables.lakes import Lake


def result(name: str, *rows: tuple[int, float]) -> pa.Table:
    return pa.table({"id": [row for row, _ in rows], "_rowid": [row for row, _ in rows], name: [v for _, v in rows]})


def test_reciprocal_rank_fusion_is_the_result_by_hand() -> None:
    near = result("_distance", (7, 0.1), (3, 0.2), (5, 0.9))
    with_words = result("_score", (5, 9.0), (8, 4.0), (7, 1.0))
    joined = RRFReranker(return_score="all").rerank_hybrid("", near, with_words).to_pylist()
    by_hand = {7: 1 / 61 + 1 / 63, 5: 1 / 63 + 1 / 61, 3: 1 / 62, 8: 1 / 62}
    assert [row["id"] for row in joined] == [7, 5, 3, 8]
    assert [row["_relevance_score"] for row in joined] == pytest.approx(list(by_hand.values()), rel=1e-6)
    assert [row["_distance"] for row in joined] == [0.1, 0.9, 0.2, None]
    assert [row["_score"] for row in joined] == [1.0, 9.0, None, 4.0]
    small = RRFReranker(1).rerank_hybrid("", near, with_words)
    assert small.column_names == ["id", "_rowid", "_relevance_score"]
    assert small["_relevance_score"].to_pylist() == pytest.approx([1 / 2 + 1 / 4, 1 / 4 + 1 / 2, 1 / 3, 1 / 3])


def test_one_empty_result_leaves_the_other() -> None:
    near, nothing = result("_distance", (7, 0.1), (3, 0.2)), result("_score", (5, 1.0)).slice(1)
    assert RRFReranker().rerank_hybrid("", near, nothing)["id"].to_pylist() == [7, 3]
    assert RRFReranker().rerank_hybrid("", near.slice(2), nothing).num_rows == 0


@pytest.fixture
def table(opened: Opened) -> Table:
    written, table = opened(WORDS)
    written.add(400)
    written.add(30, 400, indexes=False)
    return table


QUERY = [float(x) for x in np.linspace(-1, 1, SIZE)]


def hybrid(table: Table) -> SearchBuilder:
    return table.search(query_type="hybrid").vector(QUERY).text("delayed 12")


def test_a_hybrid_search_is_the_fusion_of_both(articles: Table, lake: Lake) -> None:
    lake.ingest(lake.file(documents(400)), table="articles")
    with_scores = articles.search("w3 w5 w9", fts_columns="remark").select(["id"]).limit(9).to_list()
    assert len({row["_score"] for row in with_scores}) == 9  # rows of equal scores come in any order
    with_words = [row["id"] for row in with_scores[:8]]
    near = [row["id"] for row in articles.search(QUERY).select(["id"]).limit(8).to_list()]
    scores: dict[int, float] = {}
    for ids in (near, with_words):
        for rank, row in enumerate(ids, 1):
            scores[row] = scores.get(row, 0) + 1 / (60 + rank)
    wanted = sorted(scores, key=lambda row: (-scores[row], row not in near, [*near, *with_words].index(row)))
    search = articles.search(query_type="hybrid", fts_columns="remark").vector(QUERY).text("w3 w5 w9")
    found = search.select(["id"]).limit(6).offset(2).to_list()
    assert [row["id"] for row in found] == wanted[2:8]
    assert [row["_relevance_score"] for row in found] == pytest.approx([scores[row] for row in wanted[2:8]], rel=1e-6)
    assert found[0].keys() == {"id", "_relevance_score"}
    assert all(part in search.explain_plan() for part in ("KNN", "Full-text search:"))


def test_conditions_and_ids_are_of_both_parts(table: Table) -> None:
    found = hybrid(table).where("id >= 300").rerank(RRFReranker(return_score="all")).with_row_id().limit(50).to_list()
    assert {row["id"] >= 300 for row in found} == {True}
    assert {row["_rowid"] is None for row in found} == {False}
    assert {(row["_distance"] is None, row["_score"] is None) for row in found} >= {(False, True)}


@pytest.mark.parametrize("normalize", ["score", "rank"])
@pytest.mark.parametrize(
    "peer", [lambda: LanceDbRrf(return_score="all"), lambda: LinearCombinationReranker(return_score="all")]
)
def test_rerankers_of_lancedb_take_the_place_of_our_own(table: Table, peer: Callable[[], Any], normalize: Any) -> None:
    found = hybrid(table).rerank(peer(), normalize).limit(20).to_arrow()
    relevance = found["_relevance_score"].to_pylist()
    assert relevance == sorted(relevance, reverse=True)
    distances = {row["id"]: row["_distance"] for row in table.search(QUERY).limit(20).to_list()}
    for row in found.to_pylist():
        assert row["_distance"] is None or row["_distance"] == distances[row["id"]]
    if isinstance(peer(), LanceDbRrf):
        own = hybrid(table).rerank(RRFReranker(return_score="all")).limit(20).to_arrow()
        assert own["_relevance_score"].to_pylist() == relevance


class ByNumber:
    """Puts the highest id first."""

    def __init__(self) -> None:
        self.queries: list[str] = []

    def rerank_vector(self, query: str, vector_results: pa.Table) -> pa.Table:
        self.queries.append(query)
        ids = vector_results["id"].cast(pa.float32())
        return vector_results.append_column("_relevance_score", ids).sort_by([("_relevance_score", "descending")])

    def rerank_fts(self, query: str, fts_results: pa.Table) -> pa.Table:
        return self.rerank_vector(query, fts_results)


def test_results_of_one_search_are_reranked(articles: Table, lake: Lake) -> None:
    lake.ingest(lake.file(documents(400)), table="articles")
    reranker, words = ByNumber(), "w3 w5 w9"
    plain = [row["id"] for row in articles.search(words, fts_columns="remark").limit(6).to_list()]
    found = articles.search(words, fts_columns="remark").rerank(reranker).limit(4).offset(2).to_list()
    assert [row["id"] for row in found] == sorted(plain, reverse=True)[2:]
    articles.search(QUERY).rerank(reranker, query_string="words").to_list()
    assert reranker.queries == [words, "words"]


def test_what_cannot_rerank_is_refused(table: Table) -> None:
    with pytest.raises(InvalidInput, match="ByNumber cannot rerank a hybrid search; give an object with the method"):
        hybrid(table).rerank(ByNumber())
    with pytest.raises(InvalidInput, match="RRFReranker cannot rerank a vector search"):
        table.search(QUERY).rerank()
    with pytest.raises(InvalidInput, match="the reranker needs the words of the query"):
        table.search(QUERY).rerank(ByNumber())
    with pytest.raises(InvalidInput, match="normalize is 'ranks'; did you mean rank"):
        hybrid(table).rerank(RRFReranker(), "ranks")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="k of reciprocal rank fusion is 0"):
        RRFReranker(0)

    class Broken:
        def rerank_hybrid(self, query: str, vector_results: pa.Table, fts_results: pa.Table) -> pa.Table:
            return vector_results

    with pytest.raises(InvalidInput, match=r"the reranker Broken returned columns .*_relevance_score"):
        hybrid(table).rerank(Broken()).to_list()


def test_both_parts_are_needed(table: Table) -> None:
    with pytest.raises(InvalidInput, match="the hybrid search has no text"):
        table.search(QUERY, query_type="hybrid").to_list()
    with pytest.raises(InvalidInput, match="column 'embedding' has no embedding function"):
        table.search("delayed", query_type="hybrid").to_list()
    with pytest.raises(InvalidInput, match="vector is for a search of kind hybrid, and this one is fts"):
        table.search("delayed").vector(QUERY)
