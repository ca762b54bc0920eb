"""Full-text searches find the rows with the words, in the order of BM25."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from deployer.errors import InvalidInput
from deployer.table import Table
from deployer.tables.append import open_appender
from tests.search.articles import WORDS, documents
from tests.search.conftest import Opened
from tests.tables.indexed import TEXT, TREE
from tests.tables.lakes import Lake

K1, B = 1.2, 0.75  #: as Lance's


def bm25(texts: Sequence[str], query: str) -> dict[int, float]:
    """The score of each text that has a word of the query, by its position."""
    documents = [Counter(text.lower().split()) for text in texts]
    mean = sum(sum(each.values()) for each in documents) / len(documents)
    scores: dict[int, float] = {}
    for word in query.lower().split():
        having = sum(word in each for each in documents)
        weight = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
        for place, each in enumerate(documents):
            if count := each[word]:
                size = 1 - B + B * sum(each.values()) / mean
                scores[place] = scores.get(place, 0) + weight * count * (K1 + 1) / (count + K1 * size)
    return scores


def found_scores(table: Table, query: str, **options: Any) -> dict[int, float]:
    found = table.search(query, **options).select(["id"]).limit(10_000).to_list()
    assert [row["_score"] for row in found] == sorted((row["_score"] for row in found), reverse=True)
    return {row["id"]: row["_score"] for row in found}


@pytest.mark.parametrize("query", ["w7", "w1 w30", "w2 w3 w4 w150", "W7 w7", "nothing"])
def test_rows_with_the_words_come_in_the_order_of_bm25(articles: Table, lake: Lake, query: str) -> None:
    lake.ingest(lake.file(documents(800)), table="articles")
    texts = articles.to_arrow(["remark"])["remark"].to_pylist()
    wanted = bm25(texts, " ".join(dict.fromkeys(query.lower().split())))
    found = found_scores(articles, query, fts_columns="remark")
    assert found.keys() == wanted.keys()
    order = sorted(wanted.values(), reverse=True)
    scale = order[0] / max(found.values()) if found else 1.0
    for place, score in found.items():
        assert score * scale == pytest.approx(wanted[place], rel=1e-4)
    top = articles.search(query, fts_columns="remark").select(["id"]).limit(10).to_list()
    assert [wanted[row["id"]] for row in top] == pytest.approx(order[:10], rel=1e-4)


def test_rows_that_are_not_indexed_yet_are_found_and_deleted_ones_are_not(opened: Opened) -> None:
    written, table = opened(WORDS)
    written.add(600)
    written.add(60, 600, indexes=False)
    assert table.search("diverted").limit(1_000).to_arrow().num_rows == 110
    assert {row["id"] for row in table.search('"by fog 20"').limit(1_000).to_list()} == {*range(20, 660, 40)}
    assert table.search("diverted").fast_search().limit(1_000).to_arrow().num_rows == 100
    written.dataset.delete("id >= 100 AND id < 630")
    left = [row["id"] for row in table.search("diverted").select(["id"]).limit(1_000).to_list()]
    assert sorted(left) == [*range(3, 100, 6), *range(633, 660, 6)]


def test_pages_of_a_search_are_its_rows(articles: Table, lake: Lake) -> None:
    """Rows of equal scores come in any order."""
    lake.ingest(lake.file(documents(800)), table="articles")
    whole = articles.search("w3 w5 w9", fts_columns="remark").limit(12).to_list()
    pages = [articles.search("w3 w5 w9", fts_columns="remark").limit(4).offset(n).to_list() for n in (0, 4, 8)]
    assert [row["_score"] for page in pages for row in page] == [row["_score"] for row in whole]


def test_a_condition_comes_before_the_search_or_after_it(opened: Opened) -> None:
    written, table = opened(WORDS, TREE)
    written.add(600)
    search = table.search("delayed fog").where("id < 60").select(["id"])
    assert {row["id"] for row in search.limit(10).to_list()} == {*range(0, 60, 6)}
    assert table.search("delayed").where("id >= 590", prefilter=False).limit(5).to_arrow().num_rows <= 5


def test_several_columns_are_searched_unless_some_are_named(articles: Table, lake: Lake) -> None:
    lake.ingest(lake.file(documents(300)), table="articles")
    remarks, titles = (found_scores(articles, "w5 w9", fts_columns=name) for name in ("remark", ["title"]))
    both = found_scores(articles, "w5 w9")
    assert both.keys() == {*remarks, *titles}
    assert both == found_scores(articles, "w5 w9", fts_columns=["remark", "title"])
    for place, score in both.items():
        assert score == pytest.approx(max(remarks.get(place, 0), titles.get(place, 0)), rel=1e-5)
    phrase = f'"{articles.to_arrow(["title"], "id = 7")["title"][0].as_py()}"'
    assert [row["id"] for row in articles.search(phrase).select(["id"]).to_list()] == [7]


def test_rows_with_the_words_come_in_the_order_of_another_column(articles: Table, lake: Lake) -> None:
    lake.ingest(lake.file(documents(300)), table="articles")
    having = found_scores(articles, "w5", fts_columns="remark")
    search = articles.search("w5", ordering_field_name="id", fts_columns="remark").select(["title"]).with_row_id()
    ids = articles.search("w5", ordering_field_name="id", fts_columns="remark").select(["id"]).limit(5).offset(2)
    assert [row["id"] for row in ids.to_list()] == sorted(having, reverse=True)[2:7]
    assert len(search.to_list()) == 10
    with pytest.raises(InvalidInput, match="there is no column 'ids'; did you mean 'id'"):
        articles.search("w5", ordering_field_name="ids")
    with pytest.raises(InvalidInput, match="ordering_field_name is for full-text searches, and this one is vector"):
        articles.search([1.0], ordering_field_name="id")


def test_text_that_is_added_is_found_at_once(articles: Table, lake: Lake) -> None:
    assert articles.search("anything").to_list() == []
    with_index = articles.add(documents(3)).job.rows
    writer = open_appender(lake.root, "articles")
    writer.append(pa.table({"id": [9], "remark": ["quite another text"], "title": ["Other"]}))
    writer.close()
    assert with_index == 3
    assert [row["id"] for row in articles.search("ANOTHER").to_list()] == [9]


def test_a_phrase_needs_positions(opened: Opened) -> None:
    written, table = opened(replace(TEXT, parameters={}))
    written.add(50)
    with pytest.raises(InvalidInput, match="index 'remark_inverted' of column 'remark' keeps no positions"):
        table.search('"by fog"')


def test_without_an_index_the_error_says_how_to_make_one(opened: Opened) -> None:
    written, table = opened()
    written.add(50)
    message = r'no column has a full-text index; create one: table\.create_fts_index\("carrier"\)'
    with pytest.raises(InvalidInput, match=message):
        table.search("delayed")
    with pytest.raises(InvalidInput, match=r"column 'remark' has no full-text index; .*create_fts_index\(\"remark\"\)"):
        table.search("delayed", fts_columns="remark")
