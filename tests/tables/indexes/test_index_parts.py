"""Indexes that are replaced, and indexes that are built in parts: what every version of the dataset has of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pytest

from deployer.datasets.indexes.segments import segment_jobs
from deployer.errors import Interrupted, Refused
from deployer.platform.system.progress import Progress
from deployer.services.kinds.compact import compact_table
from deployer.specs.model import IndexSpec
from deployer.table import Table, connect
from deployer.tables.layout.indexes.build import join_parts
from deployer.tables.layout.indexes.create import create_index
from deployer.tables.layout.indexes.parts import BuildPlan
from tests.tables.indexed import PQ, SIZE, TREE, Indexed, rows
from tests.tables.lakes import Lake

FILES = 4


@pytest.fixture(params=[True, False], ids=["keyed", "keyless"])
def indexed(lake: Lake, request: pytest.FixtureRequest) -> Indexed:
    """A table of four files without indexes."""
    found = Indexed(lake, [], keyed=request.param)
    for start in range(0, FILES * 300, 300):
        found.add(300, start)
    return found


@pytest.fixture
def table(indexed: Indexed) -> Iterator[Table]:
    with connect(indexed.lake.root) as connection:
        yield connection.open_table("flights")


def names_by_version(location: str, column: str) -> dict[int, list[str]]:
    """The names of the column's indexes with rows, in each version of the dataset."""
    newest = lance.dataset(location)
    found = {}
    for each in newest.versions():
        described = newest.checkout_version(each["version"]).describe_indices()
        found[each["version"]] = [one.name for one in described if one.field_names == [column] and one.segments]
    return found


@pytest.mark.parametrize("parts", [None, 3], ids=["one-call", "parts"])
def test_no_version_is_without_an_index_while_it_is_replaced(indexed: Indexed, table: Table, parts: int | None) -> None:
    stop = threading.Event()

    def write() -> None:
        place = 10_000
        while not stop.is_set():
            lance.write_dataset(rows(20, place), indexed.dataset.uri, mode="append")
            with suppress(OSError):  # it is the one that loses
                lance.dataset(indexed.dataset.uri).optimize.optimize_indices()
            place += 20

    table.create_index(vector_column_name="embedding", index_type="IVF_FLAT", num_partitions=4)
    table.create_scalar_index("carrier")
    first = table.version
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for index_type in ("IVF_PQ", "IVF_PQ", "IVF_HNSW_SQ", "IVF_FLAT"):
            table.create_index(vector_column_name="embedding", index_type=index_type, num_partitions=4, parts=parts)
        table.create_scalar_index("carrier", index_type="BITMAP", parts=parts)
    finally:
        stop.set()
        writer.join()
    for column in ("embedding", "carrier"):
        seen = names_by_version(indexed.dataset.uri, column)
        assert {len(names) for version, names in seen.items() if version >= first} == {1}, seen
    assert [each.name for each in table.list_indices()] == ["carrier_bitmap", "embedding_ivf_flat"]


def test_a_plan_replaces_an_index_of_another_column_in_one_commit(indexed: Indexed) -> None:
    named = replace(TREE, name="place")
    indexed.declare(named)
    before = indexed.dataset.version
    indexed.declare(replace(named, columns=("gate.number",)))
    assert indexed.dataset.version == before + 1
    assert [each.field_names for each in indexed.dataset.describe_indices()] == [["gate.number"]]
    assert indexed.changes() == ()


def test_names_of_replaced_indexes(indexed: Indexed, table: Table) -> None:
    indexed.declare(replace(PQ, name="places"), replace(TREE, name="carrier_bitmap"))
    table.create_index(vector_column_name="embedding", index_type="IVF_FLAT")
    assert [each.name for each in table.list_indices()] == ["carrier_bitmap", "places"], "somebody chose the name"
    with pytest.raises(Refused, match="there is an index places of kind ivf_flat on embedding already"):
        table.create_index(vector_column_name="embedding", replace=False)
    with pytest.raises(Refused, match="the name carrier_bitmap is that of an index of kind btree on id"):
        table.create_scalar_index("carrier", index_type="BITMAP")
    cosine = IndexSpec("near", ("embedding",), "ivf_flat", {"metric": "cosine"})
    indexed.declare(replace(PQ, name="places"), cosine)
    with pytest.raises(Refused, match="2 indexes on embedding could be replaced: near, places"):
        table.create_index(vector_column_name="embedding")
    assert [each.name for each in table.list_indices()] == ["near", "places"]


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "BTREE": ("id", {}),
    "BITMAP": ("carrier", {}),
    "LABEL_LIST": ("stops", {}),
    "INVERTED": ("remark", {}),
    "IVF_FLAT": ("embedding", {"num_partitions": 4}),
    "IVF_PQ": ("embedding", {"num_partitions": 4, "num_sub_vectors": 8}),
    "IVF_HNSW_SQ": ("embedding", {"num_partitions": 2}),
    "IVF_HNSW_PQ": ("embedding", {"num_partitions": 2, "num_sub_vectors": 8}),
}


ONE_SEGMENT = ("INVERTED", "IVF_HNSW_SQ")  #: whose parts are merged, and that is not built in parts


def create(table: Table, kind: str, **more: Any) -> str:
    """Creates the index of that kind and returns its name."""
    column, parameters = KINDS[kind]
    if kind == "INVERTED":
        table.create_fts_index(column, replace=True, **more)
    elif kind.startswith("IVF"):
        table.create_index(vector_column_name=column, index_type=kind, **parameters, **more)
    else:
        table.create_scalar_index(column, index_type=kind, **more)
    return f"{column}_{kind.lower()}"


def found(indexed: Indexed, kind: str) -> list[int]:
    """The ids that a search finds which uses the index, in their order."""
    dataset = indexed.dataset
    filters = {"BTREE": "id in (5, 700, 1301)", "BITMAP": "carrier = 'c3'", "LABEL_LIST": "array_has(stops, 's4')"}
    if kind == "INVERTED":
        scanner = dataset.scanner(columns=["id"], full_text_query="boarding")
    elif kind.startswith("IVF"):
        scanner = dataset.scanner(columns=["id"], nearest={**near(5), "nprobes": 4, "refine_factor": 20})
    else:
        scanner = dataset.scanner(columns=["id"], filter=filters[kind])
    assert any(word in scanner.explain_plan() for word in ("ScalarIndexQuery", "ANN", "MatchQuery")), kind
    return sorted(scanner.to_table()["id"].to_pylist())


def near(place: int) -> dict[str, Any]:
    return {"column": "embedding", "q": rows(1, place)["embedding"].combine_chunks().flatten().to_numpy(), "k": 10}


def expected(indexed: Indexed, kind: str) -> list[int]:
    """The ids that the search is to find, from all rows."""
    every = indexed.dataset.to_table(columns=["id", "carrier", "stops", "remark", "embedding"])
    match kind:
        case "BTREE":
            return sorted({5, 700, 1301} & set(every["id"].to_pylist()))
        case "BITMAP":
            return sorted(row["id"] for row in every.select(["id", "carrier"]).to_pylist() if row["carrier"] == "c3")
        case "LABEL_LIST":
            return sorted(row["id"] for row in every.select(["id", "stops"]).to_pylist() if "s4" in row["stops"])
        case "INVERTED":
            return sorted(
                row["id"] for row in every.select(["id", "remark"]).to_pylist() if "boarding" in row["remark"]
            )
        case _:
            vectors = np.array(every["embedding"].to_pylist())
            order = np.argsort(((vectors - near(5)["q"]) ** 2).sum(axis=1))[:10]
            return sorted(np.array(every["id"])[order].tolist())


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("kind", KINDS)
def test_an_index_in_parts_is_searched_kept_up_and_compacted(indexed: Indexed, table: Table, kind: str) -> None:
    name = create(table, kind, parts=3)
    stats = table.index_stats(name)
    assert stats is not None
    assert stats.num_indices == (1 if kind in ONE_SEGMENT else 3)
    assert (stats.num_indexed_rows, stats.num_unindexed_rows) == (FILES * 300, 0)
    assert found(indexed, kind) == expected(indexed, kind)
    indexed.add(200, 1_200)
    table_stats = table.index_stats(name)
    assert table_stats is not None and table_stats.num_unindexed_rows == 0, "a load brings it up to date"
    assert found(indexed, kind) == expected(indexed, kind)
    lance.dataset(indexed.dataset.uri).delete("id % 50 = 7")
    done = compact_table(indexed.lake.root, "flights")
    assert (done.after.files, done.indexes.failure) == (1, "")
    table_stats = table.index_stats(name)
    assert table_stats is not None and table_stats.num_unindexed_rows == 0
    assert found(indexed, kind) == expected(indexed, kind)
    declared = indexed.spec.indexes
    assert declared == () and [change.kind for change in indexed.changes()] == ["DropIndex"]


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("kind", KINDS)
def test_parts_can_be_joined(indexed: Indexed, table: Table, kind: str) -> None:
    name = create(table, kind, parts=4)
    parameters = table.list_indices()
    join_parts(indexed.lake.store, indexed.lake.root, indexed.id)
    stats = table.index_stats(name)
    assert stats is not None and (stats.num_indices, stats.num_unindexed_rows) == (1, 0)
    assert table.list_indices() == parameters
    assert found(indexed, kind) == expected(indexed, kind)


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 9])
def test_parts_are_of_neighbouring_files_and_of_about_as_many_rows(indexed: Indexed, parts: int) -> None:
    jobs = segment_jobs(indexed.dataset, TREE, parts, {})
    fragments = [number for job in jobs for number in job.fragments]
    assert fragments == sorted(fragments) and len(fragments) == FILES
    assert len(jobs) == min(parts, FILES)
    assert max(job.rows for job in jobs) - min(job.rows for job in jobs) <= 300


def test_segments_of_vectors_share_what_is_trained(indexed: Indexed) -> None:
    jobs = segment_jobs(indexed.dataset, replace(PQ, parameters={"num_partitions": 4, "num_sub_vectors": 2}), 2, {})
    assert jobs[0].models is jobs[1].models
    assert (len(jobs[0].models["ivf_centroids"]), jobs[0].models["num_partitions"]) == (4, 4)
    assert "pq_codebook" in jobs[0].models


@pytest.mark.thinned(16, to="full")
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("index_type", [kind for kind in KINDS if kind.startswith("IVF")])
def test_searches_recall_nineteen_of_twenty(lake: Lake, index_type: str, metric: str) -> None:
    indexed = Indexed(lake, [])
    for start in range(0, 2_000, 500):
        indexed.add(500, start)
    every = indexed.dataset.to_table(columns=["id", "embedding"])
    vectors, ids = np.array(every["embedding"].to_pylist(), np.float32), np.array(every["id"])
    random = np.random.default_rng(3)
    queries = [vectors[place] + random.normal(size=SIZE).astype(np.float32) / 10 for place in range(0, 2_000, 100)]
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        for parts in (1, 3):
            create(table, index_type, metric=metric, parts=parts)
            dataset, hits = indexed.dataset, 0
            for query in queries:
                wanted = {"column": "embedding", "q": query, "k": 10, "metric": metric}
                nearest = {**wanted, "nprobes": 4, "refine_factor": 40, "ef": 400}
                got = dataset.to_table(columns=["id"], nearest=nearest)["id"].to_pylist()
                hits += len({*got} & {*ids[np.argsort(distances(vectors, query, metric))[:10]].tolist()})
            assert hits / (10 * len(queries)) >= 0.95, (parts, hits)


def distances(vectors: Any, query: Any, metric: str) -> Any:
    match metric:
        case "l2":
            return ((vectors - query) ** 2).sum(axis=1)
        case "cosine":
            return 1 - vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
        case _:
            return -vectors @ query


def test_a_conflict_with_a_compaction_builds_the_parts_again(
    indexed: Indexed, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Any] = []

    def jobs(dataset: Any, *rest: Any) -> Any:
        found = segment_jobs(dataset, *rest)
        if not built:
            lance.dataset(dataset.uri).optimize.compact_files()
        built.append(found)
        return found

    monkeypatch.setattr("deployer.tables.layout.indexes.parts.segment_jobs", jobs)
    create(table, "BTREE", parts=2)
    assert len(built) == 2
    folders = {each.name for each in (Path(indexed.dataset.uri) / "_indices").iterdir() if any(each.iterdir())}
    [index] = indexed.dataset.describe_indices()
    assert folders == {str(each.uuid) for each in index.segments}, "the files of the first attempt are gone"
    assert found(indexed, "BTREE") == expected(indexed, "BTREE")


def test_a_build_in_parts_can_be_interrupted_between_them(indexed: Indexed, table: Table) -> None:
    opened = table._newest()

    def stop(progress: Progress) -> None:
        if progress.done:
            raise Interrupted("interrupted")

    with pytest.raises(Interrupted):
        create_index(opened, TREE, replaces=True, plan=BuildPlan(parts=3), on_progress=stop)
    assert (table.list_indices(), indexed.infos(), table.version) == ([], {}, opened.state.lance_version)
