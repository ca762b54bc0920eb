"""Vector searches find what comparing all vectors finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deployer.errors import InvalidInput
from deployer.specs.model import IndexSpec
from deployer.table import Table
from tests.search.conftest import Opened
from tests.tables.indexed import GRAPH, PQ, SIZE, TREE

FLAT = IndexSpec("flat", ("embedding",), "ivf_flat", {"num_partitions": 4})
GRAPH_PQ = IndexSpec("graph_pq", ("embedding",), "ivf_hnsw_pq", {"num_sub_vectors": 8})
COUNT = 3_000


def near(random: np.random.Generator, vectors: Any) -> Any:
    """A query beside one of the vectors."""
    return vectors[random.integers(len(vectors))] + random.normal(size=SIZE).astype(np.float32) / 10


def vectors_of(table: Table) -> tuple[Any, Any]:
    found = table.to_arrow(["id", "embedding"])
    return found["id"].to_numpy(), found["embedding"].combine_chunks().flatten().to_numpy().reshape(-1, SIZE)


def distances(vectors: Any, query: Any, metric: str) -> Any:
    match metric:
        case "l2":
            return ((vectors - query) ** 2).sum(axis=1)
        case "cosine":
            return 1 - vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
        case _:
            return 1 - vectors @ query


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("index", [None, FLAT, PQ, GRAPH, GRAPH_PQ], ids=lambda index: index.kind if index else "none")
@pytest.mark.parametrize("metric", ["l2", pytest.param("cosine", marks=pytest.mark.full), "dot"])
def test_ten_nearest_are_found_in_indexed_and_new_rows(opened: Opened, index: IndexSpec | None, metric: str) -> None:
    indexes = [replace(index, parameters={**index.parameters, "metric": metric})] if index else []
    written, table = opened(*indexes)
    written.add(COUNT - 500)
    written.add(500, COUNT - 500, indexes=False)
    ids, vectors = vectors_of(table)
    random, hits, searches = np.random.default_rng(3), 0, 30
    for _ in range(searches):
        query = near(random, vectors)
        search = table.search(query).distance_type(metric).select(["id"]).limit(10)
        if index is not None:
            search = search.nprobes(4).refine_factor(20).ef(200)
            assert "ANN" in search.explain_plan()
        found = search.to_arrow()
        assert found["_distance"].to_pylist() == sorted(found["_distance"].to_pylist())
        exact = distances(vectors, query, metric)
        best = ids[np.argsort(exact)[:10]]
        hits += len({*found["id"].to_pylist()} & {*best.tolist()})
        of_row = dict(zip(ids.tolist(), exact.tolist(), strict=True))
        for row in found.to_pylist():
            assert row["_distance"] == pytest.approx(of_row[row["id"]], rel=1e-3, abs=1e-3)
    assert hits >= 0.95 * 10 * searches


def test_the_metric_is_that_of_the_index_unless_given(opened: Opened) -> None:
    written, table = opened(replace(FLAT, parameters={**FLAT.parameters, "metric": "cosine"}))
    written.add(500)
    query = vectors_of(table)[1][7]
    assert table.search(query).limit(1).to_list()[0]["_distance"] == pytest.approx(0, abs=1e-6)
    other = table.search(query * 3).limit(1)
    assert other.to_list()[0]["_distance"] == pytest.approx(0, abs=1e-6)
    assert other.metric("L2").to_list()[0]["_distance"] > 1
    assert "ANN" not in other.explain_plan()
    assert "ANN" not in table.search(query).bypass_vector_index().explain_plan()


def test_a_condition_comes_before_the_search_or_after_it(opened: Opened) -> None:
    written, table = opened(FLAT, TREE)
    written.add(1_000)
    ids, vectors = vectors_of(table)
    query = vectors[0]
    order = ids[np.argsort(((vectors - query) ** 2).sum(axis=1))].tolist()
    before = table.search(query).where("id >= 500").where("id < 900").select(["id"]).nprobes(4).limit(10)
    assert [row["id"] for row in before.to_list()] == [i for i in order if 500 <= i < 900][:10]
    after = table.search(query).where("id >= 500", prefilter=False).select(["id"]).nprobes(4).limit(10)
    assert [row["id"] for row in after.to_list()] == [i for i in order[:10] if i >= 500]


def test_pages_of_a_search_are_its_rows(opened: Opened) -> None:
    written, table = opened(FLAT)
    written.add(1_000)
    query = vectors_of(table)[1][0]
    whole = table.search(query).nprobes(4).limit(20).select(["id"]).to_list()
    pages = [
        table.search(query).nprobes(4).limit(5).offset(start).select(["id"]).to_list() for start in range(0, 20, 5)
    ]
    assert [row for page in pages for row in page] == whole
    assert len(table.search(query).to_list()) == 10


def test_rows_of_a_distance_range_are_found(opened: Opened) -> None:
    written, table = opened()
    written.add(300)
    ids, vectors = vectors_of(table)
    exact = ((vectors - vectors[0]) ** 2).sum(axis=1)
    low, high = np.sort(exact)[[3, 8]]
    found = table.search(vectors[0]).distance_range(float(low), float(high)).limit(300).to_list()
    assert {row["id"] for row in found} == {*ids[(exact >= low) & (exact < high)].tolist()}


def test_rows_that_are_deleted_are_not_found(opened: Opened) -> None:
    written, table = opened(FLAT)
    written.add(500)
    query = vectors_of(table)[1][7]
    best = table.search(query).select(["id"]).limit(1).to_list()[0]["id"]
    written.dataset.delete(f"id = {best}")
    assert best not in [row["id"] for row in table.search(query).nprobes(4).limit(500).to_list()]
    assert table.search(query).nprobes(4).limit(500).to_arrow().num_rows == 499


def test_a_builder_keeps_its_version_and_a_new_search_has_the_newest(opened: Opened) -> None:
    written, table = opened()
    written.add(100)
    search = table.search(vectors_of(table)[1][0]).limit(1_000)
    written.add(50, 100)
    assert search.to_arrow().num_rows == 100
    assert table.search(vectors_of(table)[1][0]).limit(1_000).to_arrow().num_rows == 150


def test_sizes_beyond_the_table_find_all_rows(opened: Opened) -> None:
    """Lance reserves memory for as many rows as it is asked for, and ends the process when it gets none."""
    written, table = opened(PQ)
    written.add(600)
    search = table.search(vectors_of(table)[1][0]).limit(2**60).refine_factor(2**60).nprobes(2**60).ef(2**60)
    assert search.to_arrow().num_rows == 600
    assert table.search(vectors_of(table)[1][0]).limit(5).offset(2**60).to_list() == []


FORMS: dict[str, Any] = {
    "list": lambda vector: vector.tolist(),
    "tuple of numbers of NumPy": tuple,
    "float64": lambda vector: vector.astype(np.float64),
    "array": pa.array,
    "chunked array": lambda vector: pa.chunked_array([vector[:4], vector[4:]]),
    "value of a column": lambda vector: pa.FixedSizeListArray.from_arrays(pa.array(vector), SIZE)[0],
    "column of one row": lambda vector: pa.chunked_array([pa.FixedSizeListArray.from_arrays(pa.array(vector), SIZE)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_query_may_be_a_vector_of_any_of_these_forms(opened: Opened, form: str) -> None:
    written, table = opened()
    written.add(50)
    ids, vectors = vectors_of(table)
    found = table.search(FORMS[form](vectors[7])).limit(1).to_list()
    assert (found[0]["id"], found[0]["_distance"]) == (ids[7], 0)


def test_rows_come_in_each_form(opened: Opened) -> None:
    written, table = opened()
    written.add(50)
    search = table.search(vectors_of(table)[1][7]).select({"id": "id", "twice": "id * 2"}).limit(3).with_row_id()
    found = search.to_list()
    assert found[0].keys() == {"id", "twice", "_distance", "_rowid"}
    assert [row["twice"] for row in found] == [row["id"] * 2 for row in found]
    assert search.to_pandas()["id"].tolist() == [row["id"] for row in found]
    assert search.to_batches(2).read_all().to_pylist() == found
    read = table.search().where("id > 45").select(["id"])
    assert read.query_type == "scan"
    assert [row["id"] for batch in read.to_batches(2) for row in batch.to_pylist()] == [46, 47, 48, 49]
    assert read.limit(2).offset(1).to_list() == [{"id": 47}, {"id": 48}]


def test_vectors_of_other_types_are_searched(lake: Any) -> None:
    from deployer.table import connect

    values = np.random.default_rng(1).normal(size=(40, 8))
    types = {"half": pa.float16(), "double": pa.float64(), "bits": pa.uint8()}
    arrays = {
        name: pa.FixedSizeListArray.from_arrays(
            pa.array((np.abs(values) * 50).astype(kind.to_pandas_dtype()).ravel()), 8
        )
        for name, kind in types.items()
    }
    schema = pa.schema([pa.field(name, pa.list_(kind, 8)) for name, kind in types.items()])
    lake.table(schema, (), splits=())
    lake.ingest(lake.file_arrow(pa.table(list(arrays.values()), schema=schema)))
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for name, array in arrays.items():
            found = table.search(array[3].as_py(), name).limit(1).to_list()
            assert found[0]["_distance"] == pytest.approx(0, abs=1e-6)
            assert found[0][name] == array[3].as_py()
        with pytest.raises(InvalidInput, match=r"3 columns of vectors: half \(8 values\), double"):
            table.search([1.0] * 8)
        with pytest.raises(InvalidInput, match=r"the metric l2 does not fit column 'bits'.*use hamming"):
            table.search([1] * 8, "bits").metric("l2")
        with pytest.raises(InvalidInput, match=r"300 in position 0 .* is not a uint8"):
            table.search([300] * 8, "bits")
        with pytest.raises(InvalidInput, match=r"1e\+30 in position 0 .* is not a float16"):
            table.search([1e30] * 8, "half")
