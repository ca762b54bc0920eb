"""What does not fit a search is refused before it runs, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deployer.errors import InvalidInput
from deployer.table import Table
from tests.search.articles import WORDS
from tests.search.conftest import Opened
from tests.tables.indexed import SIZE

VECTOR = [0.5] * SIZE
CASES: dict[str, tuple[Callable[[Table], Any], str]] = {
    "dimension": (
        lambda table: table.search([1.0, 2.0]),
        r"the query vector has 2 values, and the vectors of column 'embedding' have 16",
    ),
    "null": (
        lambda table: table.search([None, *VECTOR[1:]]),
        r"1 of 16 values of the query vector are null, NaN or infinite \(positions 0\)",
    ),
    "NaN": (lambda table: table.search(np.full(SIZE, np.nan)), r"16 of 16 values .* \(positions 0, 1, 2, 3, 4, …\)"),
    "infinity": (lambda table: table.search([*VECTOR[1:], float("inf")]), r"\(positions 15\)"),
    "null of Arrow": (lambda table: table.search(pa.array([None, *VECTOR[1:]])), r"\(positions 0\)"),
    "null vector": (
        lambda table: table.search(pa.array([None], pa.list_(pa.float32(), SIZE))),
        r"the query is of type NoneType; give a list of numbers",
    ),
    "two vectors": (lambda table: table.search([VECTOR, VECTOR]), r"the query has 2 dimensions: 2 × 16; give one"),
    "ragged": (lambda table: table.search([[1.0], [1.0, 2.0]]), r"the query is not a vector of numbers; give a list"),
    "texts in a vector": (lambda table: table.search(["a", "b"]), r"the query vector has values that are not numbers"),
    "dates": (lambda table: table.search(np.array(["2020-01-01"], "M8[s]")), r"values of type datetime64"),
    "a number": (lambda table: table.search(5), r"the query is of type int; give a list .*; for words, give a text"),
    "no query": (lambda table: table.search(query_type="vector"), r"there is no query; give a vector"),
    "vector for fts": (
        lambda table: table.search(VECTOR, query_type="fts"),
        r'the query of a full-text search is of type list; give a string, or search a vector with query_type="vector"',
    ),
    "empty text": (lambda table: table.search("  "), r"the query text is empty; give the words to search"),
    "empty phrase": (lambda table: table.search('""'), r"the query text is empty"),
    "query_type": (
        lambda table: table.search("a", query_type="vectors"),
        r"query_type is 'vectors'; did you mean vector",
    ),
    "metric": (lambda table: table.search(VECTOR).metric("cosin"), r"the metric is 'cosin'; did you mean cosine"),
    "metric of words": (
        lambda table: table.search("fog").nprobes(3),
        r"nprobes is for a search of kind vector or hybrid, and this one is fts",
    ),
    "hamming": (lambda table: table.search(VECTOR).metric("hamming"), r"hamming does not fit column 'embedding'"),
    "unknown vector column": (
        lambda table: table.search(VECTOR, "embeding"),
        r"there is no column 'embeding'; did you mean 'embedding'",
    ),
    "no vectors": (
        lambda table: table.search(VECTOR, "remark"),
        r"column 'remark' of type string does not hold vectors; columns of vectors: embedding",
    ),
    "no text": (
        lambda table: table.search("fog", fts_columns="id"),
        r"column 'id' of type int64 does not hold text; columns of text: carrier, stops, remark, gate.hall",
    ),
    "unknown text column": (lambda table: table.search("fog", fts_columns=["remarks"]), r"did you mean 'remark'"),
    "no text columns": (
        lambda table: table.search("fog", fts_columns=[]),
        r"fts_columns are \[\]; give a list of names",
    ),
    "a number of text columns": (lambda table: table.search("fog", fts_columns=5), r"fts_columns are 5"),  # type: ignore[arg-type]
    "select nothing": (lambda table: table.search().select([]), r"no column is selected; give at least one name"),
    "fts_columns of a vector": (
        lambda table: table.search(VECTOR, fts_columns="remark"),
        r"fts_columns are for full-text searches, and this one is vector",
    ),
    "limit 0": (lambda table: table.search(VECTOR).limit(0), r"limit is 0; give a whole number that is at least 1"),
    "no limit": (lambda table: table.search(VECTOR).limit(None), r"limit is None"),
    "limit of text": (lambda table: table.search("fog").limit("5"), r"limit is '5'"),  # type: ignore[arg-type]
    "limit too large": (lambda table: table.search("fog").limit(2**63), r"limit is 9223372036854775808"),
    "offset": (lambda table: table.search(VECTOR).offset(-1), r"offset is -1; .* at least 0"),
    "nprobes": (lambda table: table.search(VECTOR).nprobes(0), r"nprobes is 0"),
    "refine_factor": (lambda table: table.search(VECTOR).refine_factor(-2), r"refine_factor is -2"),
    "ef": (lambda table: table.search(VECTOR).ef(True), r"ef is True"),
    "batch size": (lambda table: table.search(VECTOR).to_batches(0), r"batch_size is 0"),
    "range": (lambda table: table.search(VECTOR).distance_range(2, 1), r"no distance is at least 2 and below 1"),
    "bound": (lambda table: table.search(VECTOR).distance_range("1"), r"lower_bound is '1'"),  # type: ignore[arg-type]
    "select a text": (lambda table: table.search(VECTOR).select("id"), r"the columns are 'id'; give a list"),
    "select lists": (lambda table: table.search(VECTOR).select([["id"]]), r"the columns are \[\['id'\]\]"),  # type: ignore[list-item]
    "select unknown": (lambda table: table.search(VECTOR).select(["idd"]), r"no column 'idd'; did you mean 'id'"),
    "select a distance of a reading": (lambda table: table.search().select(["_distance"]), r"no column '_distance'"),
    "select two expressions": (
        lambda table: table.search(VECTOR).select({"x": "id, id"}),
        r"the SQL of column 'x' is not one expression",
    ),
    "select what fails": (
        lambda table: table.search(VECTOR).select({"x": "nope * 2"}).to_list(),
        r"the SQL of the columns cannot be used: .*nope.*; correct nope \* 2",
    ),
    "two conditions": (lambda table: table.search(VECTOR).where("id > 1; id > 2"), r"is not one SQL expression"),
    "a condition that is none": (lambda table: table.search(VECTOR).where(5), r"the condition is of type int"),  # type: ignore[arg-type]
    "a condition on no column": (
        lambda table: table.search(VECTOR).where("idd > 1").to_list(),
        r"there is no column 'idd'; did you mean 'id'",
    ),
    "rerank a reading": (lambda table: table.search().rerank(), r"a reading without a query has no order to change"),
}


@pytest.fixture
def table(opened: Opened) -> Table:
    written, table = opened(replace(WORDS))
    written.add(30)
    return table


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_and_the_message_says_what_to_do(table: Table, case: str) -> None:
    call, message = CASES[case]
    with pytest.raises(InvalidInput, match=message) as caught:
        call(table)
    assert caught.value.remedy or case == "rerank a reading"
    assert table.search(VECTOR).limit(1).to_arrow().num_rows == 1


def test_a_table_without_vectors_says_so(lake: Any) -> None:
    from deployer.table import connect

    lake.table()
    message = "the table has no column of vectors; add a column of a type such as"
    with connect(lake.root) as connection, pytest.raises(InvalidInput, match=message):
        connection.open_table("flights").search([1.0])


def test_an_empty_table_finds_nothing(opened: Opened) -> None:
    _, table = opened(WORDS)
    assert table.search(VECTOR).to_list() == []
    assert table.search("fog").to_list() == []
    assert table.search(query_type="hybrid").vector(VECTOR).text("fog").to_list() == []
    assert table.search().to_list() == []
