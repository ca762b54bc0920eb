"""Searches through each kind of index find what reading every row finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from deployer.specs.model import IndexSpec
from deployer.specs.schema.index_kinds import KINDS, VECTOR_KINDS, type_remedy
from deployer.specs.types.parser import parse_type
from tests.tables.indexed import BITMAP, GRAPH, LABELS, NESTED, PQ, SIZE, TEXT, TREE, Indexed, rows
from tests.tables.lakes import Lake

FLAT = IndexSpec("flat", ("embedding",), "ivf_flat", {"num_partitions": 4})
GRAPH_PQ = IndexSpec("graph_pq", ("embedding",), "ivf_hnsw_pq", {"num_sub_vectors": 8})
COUNT = 3_000


def loaded(lake: Lake, storage: str, *indexes: IndexSpec) -> Any:
    """The dataset after three loads, the last of which the indexes do not know yet."""
    table = Indexed(lake, indexes, storage)
    table.add(1_000)
    table.add(COUNT - 1_500, 1_000)
    table.add(500, COUNT - 500, indexes=False)
    assert {info.indexed_rows for info in table.infos().values()} == {COUNT - 500}
    return table.dataset


FILTERS: dict[str, tuple[IndexSpec, str, Callable[[dict[str, Any]], bool]]] = {
    "btree-equal": (TREE, "id = 1234", lambda row: row["id"] == 1234),
    "btree-range": (TREE, "id >= 995 AND id < 2900", lambda row: 995 <= row["id"] < 2900),
    "btree-in": (TREE, "id IN (3, 2999, 5000)", lambda row: row["id"] in (3, 2999)),
    "btree-nested": (NESTED, "gate.number > 85", lambda row: row["gate"]["number"] > 85),
    "bitmap-equal": (BITMAP, "carrier = 'c3'", lambda row: row["carrier"] == "c3"),
    "bitmap-null": (BITMAP, "carrier IS NULL", lambda row: row["carrier"] is None),
    "labels-one": (LABELS, "array_has(stops, 's4')", lambda row: "s4" in row["stops"]),
    "labels-any": (LABELS, "array_has_any(stops, ['s4', 's2'])", lambda row: bool({"s4", "s2"} & {*row["stops"]})),
    "labels-all": (LABELS, "array_has_all(stops, ['s4', 's2'])", lambda row: {"s4", "s2"} <= {*row["stops"]}),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("case", FILTERS)
@pytest.mark.parametrize("storage", ["2.1", "2.2"])
def test_a_filter_by_an_index_finds_what_reading_all_rows_finds(lake: Lake, storage: str, case: str) -> None:
    index, condition, wanted = FILTERS[case]
    dataset = loaded(lake, storage, index)
    assert "ScalarIndex" in dataset.scanner(filter=condition).explain_plan()
    found = dataset.to_table(columns=["id"], filter=condition)["id"].to_pylist()
    assert sorted(found) == [row["id"] for row in rows_of_all() if wanted(row)]
    assert found


def rows_of_all() -> list[dict[str, Any]]:
    parts = (rows(1_000), rows(COUNT - 1_500, 1_000), rows(500, COUNT - 500))
    return [row for part in parts for row in part.to_pylist()]


SEARCHES: dict[str, tuple[dict[str, Any], str, Callable[[str], bool]]] = {
    "word": ({"stem": False}, "delayed", lambda text: text.startswith("delayed")),
    "stem": ({}, "delayed", lambda text: text.startswith("delay")),
    "case": ({}, "Boarding", lambda text: text.startswith("boarding")),
    "ngram": ({"base_tokenizer": "ngram"}, "vert", lambda text: "vert" in text),
}


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("case", SEARCHES)
@pytest.mark.parametrize("storage", ["2.1", "2.2"])
def test_a_full_text_search_finds_what_reading_all_rows_finds(lake: Lake, storage: str, case: str) -> None:
    parameters, query, wanted = SEARCHES[case]
    dataset = loaded(lake, storage, replace(TEXT, parameters=parameters))
    found = dataset.to_table(columns=["id"], full_text_query=query, limit=COUNT)["id"].to_pylist()
    assert sorted(found) == [row["id"] for row in rows_of_all() if wanted(row["remark"])]
    assert found


def test_a_phrase_is_found_with_positions(lake: Lake) -> None:
    dataset = loaded(lake, "2.1", replace(TEXT, parameters={"with_position": True, "remove_stop_words": False}))
    query = lance.query.PhraseQuery("by fog 17", "remark")
    found = dataset.to_table(columns=["id"], full_text_query=query, limit=COUNT)["id"].to_pylist()
    assert sorted(found) == [row["id"] for row in rows_of_all() if row["remark"].endswith("by fog 17")]


@pytest.mark.thinned(6, to="full")
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("index", [FLAT, PQ, GRAPH, GRAPH_PQ], ids=lambda index: index.kind)
@pytest.mark.parametrize("storage", ["2.1", "2.2"])
def test_a_search_of_vectors_recalls_nine_of_ten(lake: Lake, storage: str, index: IndexSpec, metric: str) -> None:
    dataset = loaded(lake, storage, replace(index, parameters={**index.parameters, "metric": metric}))
    vectors = np.array(dataset.to_table(columns=["embedding"])["embedding"].to_pylist(), np.float32)
    ids = np.array(dataset.to_table(columns=["id"])["id"])
    random, hits, count = np.random.default_rng(3), 0, 20
    for place in random.integers(0, COUNT, count):
        query = vectors[place] + random.normal(size=SIZE).astype(np.float32) / 10
        nearest = {"column": "embedding", "q": query, "k": 10, "nprobes": 8, "refine_factor": 40, "metric": metric}
        plan = dataset.scanner(columns=["id"], nearest=nearest).explain_plan()
        assert "ANN" in plan
        found = dataset.to_table(columns=["id"], nearest=nearest)["id"].to_pylist()
        hits += len({*found} & {*ids[np.argsort(_distances(vectors, query, metric))[:10]].tolist()})
    assert hits >= 0.9 * 10 * count


def _distances(vectors: Any, query: Any, metric: str) -> Any:
    match metric:
        case "l2":
            return ((vectors - query) ** 2).sum(axis=1)
        case "cosine":
            return 1 - vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
        case _:
            return -vectors @ query


TYPES: dict[str, list[Any]] = {
    "bool": [True, False],
    "int8": [1, 2],
    "uint64": [1, 2],
    "float16": [1.0, 2.0],
    "float64": [1.0, 2.0],
    "string": ["a", "b"],
    "large_string": ["a", "b"],
    "binary": [b"a", b"b"],
    "fixed_size_binary[2]": [b"ab", b"cd"],
    "date32": [1, 2],
    "time64[us]": [1, 2],
    "timestamp[us, UTC]": [1, 2],
    "duration[s]": [1, 2],
    "decimal128(8, 2)": [1, 2],
    "dictionary<int32, string>": ["a", "b"],
    "list<int32>": [[1], [2]],
    "list<string>": [["a"], ["b"]],
    "large_list<string>": [["a"], ["b"]],
    "struct<a: int32>": [{"a": 1}, {"a": 2}],
    "vector<float16, 8>": [[1.0] * 8, [2.0] * 8],
    "vector<float32, 8>": [[1.0] * 8, [2.0] * 8],
    "vector<float64, 8>": [[1.0] * 8, [2.0] * 8],
    "vector<uint8, 8>": [[1] * 8, [2] * 8],
    "vector<int8, 8>": [[1] * 8, [2] * 8],
}


@pytest.mark.full  # a contract with Lance: it changes with the version of pylance alone
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", ["2.1", "2.2"])
@pytest.mark.parametrize("text", TYPES)
def test_the_types_that_a_kind_takes_are_those_that_lance_indexes(
    tmp_path: Any, text: str, storage: str, kind: str
) -> None:
    from deployer.specs.types.arrow import arrow_type

    column_type = parse_type(text)
    schema = pa.schema([pa.field("x", arrow_type(column_type))])
    values = pa.array(TYPES[text] * 200, schema.field("x").type)
    dataset = lance.write_dataset(pa.table([values], schema), str(tmp_path / "t"), data_storage_version=storage)
    try:
        if kind in VECTOR_KINDS:
            more = {"num_sub_vectors": 2} if kind.endswith("pq") else {}
            metric = "hamming" if "uint8" in text else "l2"
            dataset.create_index("x", kind.upper(), metric=metric, num_partitions=1, **more)
        else:
            dataset.create_scalar_index("x", kind.upper())
        indexed = dataset.describe_indices()[0].num_rows_indexed == 400
    except BaseException as failure:  # Lance panics for some types
        if isinstance(failure, KeyboardInterrupt):
            raise
        indexed = False
    assert indexed == (type_remedy(kind, column_type) is None)
