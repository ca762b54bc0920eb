"""Search in datasets of recordings, called as Rerun's client calls it: by words and by vectors of a component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from deployer.catalog.datasets.model.registry import Datasets
from deployer.catalog.datasets.reads.index import Indexes
from deployer.catalog.datasets.registration import OnDuplicate
from deployer.catalog.datasets.search.searches import Searches
from deployer.catalog.protocol.dataframes import part, rows_in
from deployer.catalog.protocol.messages import cloud
from deployer.state import open_store
from tests.catalog.clients import refused
from tests.catalog.datasets.catalog import Catalog, catalog_at, of
from tests.catalog.datasets.recordings import Chunk, scalars

TEXT, VECTOR = "TextLog:text", "Emb:vec"


def texts(*values: list[str] | None, first: int = 0) -> Chunk:
    ticks = range(first, first + len(values))
    return Chunk("/log", {TEXT: values}, {"tick": ticks}, {TEXT: pa.utf8()})


def vectors(*values: Sequence[float], kind: pa.DataType | None = None) -> Chunk:
    """Each row is a vector; with a `kind`, each row has one vector of that type."""
    listed = [list(each) for each in values] if kind is None else [[list(each)] for each in values]
    return Chunk("/emb", {VECTOR: listed}, {"tick": range(len(values))}, {} if kind is None else {VECTOR: kind})


def column(entity: str, component: str) -> dict[str, Any]:
    return {"entity_path": {"path": entity}, "component": {"component": component}}


def create(catalog: Catalog, dataset: str, entity: str, component: str, index: str = "tick", **properties: Any) -> Any:
    config = {
        "column": column(entity, component),
        "properties": properties or {"inverted": {}},
        "time_index": {"timeline": {"name": index}},
    }
    return catalog.client("CreateIndex", cloud.CreateIndexRequest(config=config), of(dataset))


def find(
    catalog: Catalog,
    dataset: str,
    query: Any,
    entity: str = "/log",
    component: str = TEXT,
    scan: Mapping[str, Any] | None = None,
    **properties: Any,
) -> pa.Table:
    values = pa.array([query], pa.utf8()) if isinstance(query, str) else pa.array(query)
    request = cloud.SearchDatasetRequest(
        column=column(entity, component),
        query=part(pa.record_batch({"items": values})),
        properties=properties or {"inverted": {}},
        scan_parameters=scan,
    )
    answers = catalog.client("SearchDataset", request, of(dataset))
    return pa.Table.from_batches([batch for each in answers for batch in rows_in(each.data)])


def test_words_are_found_with_their_place(catalog: Catalog, root: str, tmp_path: Path) -> None:
    dataset = catalog.create()
    fruit = texts(["an apple", "a pear"], None, ["two apple trees"], first=5)
    catalog.register(dataset, catalog.recording("one", fruit, scalars("/a", [1])))
    assert create(catalog, dataset, "/log", TEXT).index.column.component.component == TEXT
    more = catalog.recording("two", texts(["an apple pie"]), first=9)
    catalog.register(dataset, more, layer="words")  # it is found when the call returns
    with catalog_at(root, tmp_path) as other:
        for each in (catalog, other):
            found = find(each, dataset, "apple").to_pylist()
            assert sorted((row["rerun_segment_id"], row["timepoint"], row["instance"]) for row in found) == [
                ("one", 5, "an apple"),
                ("one", 7, "two apple trees"),
                ("two", 0, "an apple pie"),
            ]
            assert all(row["_score"] > 0 for row in found)
            [pear] = find(each, dataset, "pear").to_pylist()
            assert (pear["instance_id"], int.from_bytes(pear["chunk_id"], "big"), pear["rerun_segment_layer"]) == (
                1,
                1,
                "base",
            )
            assert find(each, dataset, "plum").num_rows == 0


def test_the_columns_are_asked_for_with_a_limit_of_0(catalog: Catalog) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", texts(["an apple"], ["apple two"])))
    create(catalog, dataset, "/log", TEXT)
    shown = find(catalog, dataset, "apple", scan={"limit_len": 0})
    assert shown.num_rows == 0 and shown.schema.names == [
        "rerun_segment_id",
        "rerun_segment_layer",
        "chunk_id",
        "timepoint",
        "instance_id",
        "instance",
        "_score",
    ]
    assert (
        shown.schema.field("chunk_id").type == pa.binary(16) and shown.schema.field("instance_id").type == pa.uint32()
    )
    assert find(catalog, dataset, "apple", scan={"limit_len": 1}).num_rows == 1
    assert find(catalog, dataset, "apple", scan={"columns": ["timepoint"]}).column_names == ["timepoint"]


@pytest.mark.parametrize("kind", [None, pa.list_(pa.float32(), 4)], ids=["rows", "instances"])
def test_the_nearest_vectors_are_found(kind: pa.DataType | None, catalog: Catalog) -> None:
    dataset = catalog.create()
    rng = np.random.default_rng(1)
    many = rng.random((300, 4)).tolist()
    catalog.register(dataset, catalog.recording("one", vectors(*many, kind=kind)))
    create(catalog, dataset, "/emb", VECTOR, vector={"num_sub_vectors": 2, "distance_metrics": 1})
    catalog.register(dataset, catalog.recording("two", vectors([9.0, 9.0, 9.0, 9.0], kind=kind), first=9))
    for number in (0, 7, 299):
        [row] = find(catalog, dataset, [many[number]], "/emb", VECTOR, vector={"top_k": 1}).to_pylist()
        assert (row["rerun_segment_id"], row["timepoint"], row["instance_id"]) == ("one", number, 0)
        assert row["_distance"] < 1e-6
    nearest = find(catalog, dataset, [8.0, 9.0, 9.0, 9.0], "/emb", VECTOR, vector={"top_k": 5})
    assert nearest["rerun_segment_id"].to_pylist() == ["two", "one", "one", "one", "one"]
    assert nearest["_distance"].to_pylist() == sorted(nearest["_distance"].to_pylist())


def test_an_index_is_listed_replaced_and_deleted(catalog: Catalog, root: str, tmp_path: Path) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", texts(["an apple"])))
    for position in (False, True):
        create(catalog, dataset, "/log", TEXT, inverted={"store_position": position})
    folder = Path(root) / "_catalog" / dataset / "search"
    assert len(list(folder.iterdir())) == 1
    with catalog_at(root, tmp_path) as other:
        listed = other.client("ListIndexes", None, of(dataset))
        assert [each.properties.inverted.store_position for each in listed.indexes] == [True]
        assert list(listed.statistics_json) == [b'{"num_rows": 1}']
        assert find(other, dataset, '"an apple"').num_rows == 1
    request = cloud.DeleteIndexesRequest(column=column("/log", TEXT))
    for count in (1, 0):
        assert len(catalog.client("DeleteIndexes", request, of(dataset)).indexes) == count
    assert not list(folder.iterdir())
    with refused("NOT_FOUND", f"Index '/log#{TEXT}' not found"):
        find(catalog, dataset, "apple")


def test_replaced_layers_are_not_found(catalog: Catalog) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", texts(["an apple"])))
    create(catalog, dataset, "/log", TEXT)
    newer = catalog.recording("one", texts(["a pear"]), name="newer")
    catalog.register(dataset, newer, on_duplicate=OnDuplicate.OVERWRITE)
    assert find(catalog, dataset, "apple").num_rows == 0
    assert find(catalog, dataset, "pear").num_rows == 1


def test_searches_and_indexes_that_do_not_fit_are_refused(catalog: Catalog) -> None:
    dataset = catalog.create()
    chunks = texts(["an apple"]), vectors([1.0, 2.0], [3.0, 4.0]), scalars("/a", [1])
    catalog.register(dataset, catalog.recording("one", *chunks))
    create(catalog, dataset, "/log", TEXT)
    with refused("NOT_FOUND", "no value of /log:none has a time of the index tick"):
        create(catalog, dataset, "/log", "none")
    with refused("NOT_FOUND", "has a time of the index none"):
        create(catalog, dataset, "/log", TEXT, index="none")
    with refused("INVALID_ARGUMENT", "are double, and not texts"):
        create(catalog, dataset, "/a", "Scalars:scalars")
    with refused("INVALID_ARGUMENT", "are string, and not vectors"):
        create(catalog, dataset, "/log", TEXT, vector={})
    with refused("INVALID_ARGUMENT", "vectors of 2 numbers cannot be divided into 16"):
        create(catalog, dataset, "/emb", VECTOR, vector={})
    with refused("INVALID_ARGUMENT", "'none' is not a tokenizer"):
        create(catalog, dataset, "/log", TEXT, inverted={"base_tokenizer": "none"})
    with refused("INVALID_ARGUMENT", "not compared by that metric"):
        create(catalog, dataset, "/emb", VECTOR, vector={"distance_metrics": 4})
    with refused("UNIMPLEMENTED", "does not support indexes of btree"):
        create(catalog, dataset, "/log", TEXT, btree={})
    create(catalog, dataset, "/emb", VECTOR, vector={"num_sub_vectors": 1})
    with refused("INVALID_ARGUMENT", "top_k is 0"):
        find(catalog, dataset, [1.0, 2.0], "/emb", VECTOR, vector={"top_k": 0})
    with refused("INVALID_ARGUMENT", "the vector has 3 numbers, and those of the index have 2"):
        find(catalog, dataset, [1.0, 2.0, 3.0], "/emb", VECTOR, vector={"top_k": 1})
    with refused("INVALID_ARGUMENT", "is one of texts"):
        find(catalog, dataset, [1.0], "/log", TEXT, vector={"top_k": 1})
    with refused("INVALID_ARGUMENT", "the query is not a string"):
        find(catalog, dataset, [1.0])
    with refused("INVALID_ARGUMENT", "the query is not a vector"):
        find(catalog, dataset, "apple", "/emb", VECTOR, vector={"top_k": 1})


def test_a_recording_that_the_index_cannot_have_is_refused_by_name(catalog: Catalog) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", vectors([1.0, 2.0])))
    create(catalog, dataset, "/emb", VECTOR, vector={"num_sub_vectors": 1})
    long, good = catalog.recording("long", vectors([1.0, 2.0, 3.0])), catalog.recording("good", vectors([5.0, 6.0]))
    answered = catalog.register(dataset, long, good)
    tasks = catalog.tasks(*(each["rerun_task_id"] for each in answered))
    assert [each["exec_status"] for each in tasks] == ["failed", "success"]
    assert "long.rrd" in tasks[0]["msgs"] and "have 3 numbers" in tasks[0]["msgs"]
    assert [each["rerun_segment_id"] for each in catalog.segments(dataset)] == ["one", "good"]
    assert find(catalog, dataset, [5.0, 6.0], "/emb", VECTOR, vector={"top_k": 9}).num_rows == 2


def test_a_search_finds_the_index_that_took_the_place_of_its_own(catalog: Catalog, root: str) -> None:
    dataset = catalog.create()
    catalog.register(dataset, catalog.recording("one", texts(["an apple"])))
    create(catalog, dataset, "/log", TEXT)
    with closing(open_store(root)) as store:
        datasets = Datasets(store, root)
        searches, before = Searches(datasets, Indexes(root)), datasets.by_id(dataset)
        create(catalog, dataset, "/log", TEXT)
        assert searches.search_texts(before, "/log", TEXT, "apple").num_rows == 1
