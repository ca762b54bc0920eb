"""Indexes by call: the defaults of the contract, the declaration that results, and what is refused."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.errors import DeployerError, InvalidInput, NotFound, Refused
from deployer.plan.changes import DropIndex, RebuildIndex
from deployer.specs.declarations.indexes import index_from_json, index_to_json
from deployer.specs.model import IndexSpec
from deployer.specs.schema.index_kinds import suggested_sub_vectors
from deployer.table import Table, connect
from tests.tables.indexed import GRAPH, NESTED, PQ, SCHEMA, SIZE, TEXT, TREE, Indexed, rows
from tests.tables.lakes import Lake

DEFAULTS: dict[Any, dict[str, Any]] = {
    Table.create_index: {
        "metric": "L2",
        "num_partitions": None,
        "num_sub_vectors": None,
        "vector_column_name": "vector",
        "replace": True,
        "accelerator": None,
        "index_cache_size": None,
        "index_type": "IVF_PQ",
        "num_bits": 8,
        "max_iterations": 50,
        "sample_rate": 256,
        "m": 20,
        "ef_construction": 300,
    },
    Table.create_fts_index: {
        "field_names": inspect.Parameter.empty,
        "ordering_field_names": None,
        "replace": False,
        "writer_heap_size": 1024 * 1024 * 1024,
        "tokenizer_name": None,
        "with_position": True,
        "base_tokenizer": "simple",
        "language": "English",
        "max_token_length": 40,
        "lower_case": True,
        "stem": False,
        "remove_stop_words": False,
        "ascii_folding": False,
    },
    Table.create_scalar_index: {"column": inspect.Parameter.empty, "replace": True, "index_type": "BTREE"},
}


@pytest.mark.parametrize("call", DEFAULTS, ids=lambda call: call.__name__)
def test_calls_have_the_arguments_and_defaults_of_the_contract(call: Any) -> None:
    found = {name: each.default for name, each in inspect.signature(call).parameters.items()}
    assert {name: found[name] for name in DEFAULTS[call]} == DEFAULTS[call]
    assert list(found)[1 : len(DEFAULTS[call]) + 1] == list(DEFAULTS[call])


@pytest.fixture
def indexed(lake: Lake) -> Indexed:
    """A table of two files without indexes."""
    table = Indexed(lake, [])
    table.add(600)
    table.add(600, 600)
    return table


@pytest.fixture
def table(indexed: Indexed) -> Iterator[Table]:
    with connect(indexed.lake.root) as connection:
        yield connection.open_table("flights")


def vectors(**arguments: Any) -> Callable[[Table], None]:
    return lambda table: table.create_index(vector_column_name="embedding", **arguments)


def text(*names: str, **arguments: Any) -> Callable[[Table], None]:
    return lambda table: table.create_fts_index(list(names) or "remark", **arguments)


def scalar(column: Any, **arguments: Any) -> Callable[[Table], None]:
    return lambda table: table.create_scalar_index(column, **arguments)


OF_LANCEDB = {"stem": False, "remove_stop_words": False, "ascii_folding": False, "with_position": True}
NOT_STEMMED = {name: value for name, value in OF_LANCEDB.items() if name != "stem"}
CREATED: dict[str, tuple[Callable[[Table], None], IndexSpec]] = {
    "vectors": (vectors(), IndexSpec("embedding_ivf_pq", ("embedding",), "ivf_pq")),
    "vectors-with-all": (
        vectors(metric="Cosine", num_partitions=3, num_sub_vectors=4, num_bits=4, max_iterations=9, sample_rate=64),
        IndexSpec(
            "embedding_ivf_pq",
            ("embedding",),
            "ivf_pq",
            {
                "metric": "cosine",
                "num_partitions": 3,
                "num_sub_vectors": 4,
                "num_bits": 4,
                "max_iterations": 9,
                "sample_rate": 64,
            },
        ),
    ),
    "flat": (
        vectors(index_type="ivf_flat", metric="euclidean"),
        IndexSpec("embedding_ivf_flat", ("embedding",), "ivf_flat"),
    ),
    "graph": (
        vectors(index_type="IVF_HNSW_SQ"),
        IndexSpec("embedding_ivf_hnsw_sq", ("embedding",), "ivf_hnsw_sq", {"ef_construction": 300}),
    ),
    "graph-of-codes": (
        vectors(index_type="IVF_HNSW_PQ", m=8, ef_construction=150, metric="dot"),
        IndexSpec("embedding_ivf_hnsw_pq", ("embedding",), "ivf_hnsw_pq", {"metric": "dot", "m": 8}),
    ),
    "text": (text(), IndexSpec("remark_inverted", ("remark",), "inverted", OF_LANCEDB)),
    "text-as-specs": (
        text(with_position=False, stem=True, remove_stop_words=True, ascii_folding=True, ordering_field_names="id"),
        IndexSpec("remark_inverted", ("remark",), "inverted"),
    ),
    "text-of-one-word": (
        text(tokenizer_name="raw"),
        IndexSpec(
            "remark_inverted",
            ("remark",),
            "inverted",
            {**OF_LANCEDB, "base_tokenizer": "raw", "lower_case": False, "max_token_length": 32_766},
        ),
    ),
    "text-stems": (
        text(tokenizer_name="de_stem"),
        IndexSpec("remark_inverted", ("remark",), "inverted", {**NOT_STEMMED, "language": "German"}),
    ),
    "text-pieces": (
        text(base_tokenizer="ngram", max_ngram_length=4),
        IndexSpec(
            "remark_inverted",
            ("remark",),
            "inverted",
            {"base_tokenizer": "ngram", "max_ngram_length": 4, "ascii_folding": False, "with_position": True},
        ),
    ),
    "values": (scalar("id"), TREE),
    "few-values": (scalar("carrier", index_type="BITMAP"), IndexSpec("carrier_bitmap", ("carrier",), "bitmap")),
    "lists": (scalar("stops", index_type="LABEL_LIST"), IndexSpec("stops_label_list", ("stops",), "label_list")),
    "field": (scalar("gate.number"), NESTED),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("case", CREATED)
def test_what_a_call_creates_is_what_specs_can_declare(indexed: Indexed, table: Table, case: str) -> None:
    create, wanted = CREATED[case]
    create(table)
    [found] = table.list_indices()
    assert (found.name, found.kind, tuple(found.columns)) == (wanted.name, wanted.kind, wanted.columns)
    assert {name: list(each) if isinstance(each, tuple) else each for name, each in found.parameters.items()} == (
        wanted.parameters
    )
    stats = table.index_stats(found.name)
    assert stats is not None
    assert (stats.num_indexed_rows, stats["num_unindexed_rows"], stats.num_indices) == (1_200, 0, 1)
    assert indexed.changes() == (DropIndex("table/air.flights", wanted),), "undeclared, and shown as what it is"
    assert index_from_json(json.loads(json.dumps(index_to_json(wanted)), parse_int=float)) == wanted
    indexed.spec = indexed.with_indexes(indexed.spec, [wanted])
    assert indexed.changes() == ()
    indexed.add(100, 1_200)
    assert indexed.changes() == ()


def test_several_columns_of_text_get_an_index_each(lake: Lake) -> None:
    indexed = Indexed(lake, [])
    indexed.add(50)
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        table.create_fts_index(["remark", "stops"])
        assert [(each.name, each.index_type) for each in table.list_indices()] == [
            ("remark_inverted", "FTS"),
            ("stops_inverted", "FTS"),
        ]
        with pytest.raises(Refused, match="stops_inverted"):
            table.create_fts_index(["carrier", "stops"])
        assert len(table.list_indices()) == 2, "the first was not built either"


BAD: dict[str, tuple[Callable[[Table], None], type[DeployerError], str]] = {
    "column": (
        lambda table: table.create_index(vector_column_name="embeding"),
        InvalidInput,
        "did you mean 'embedding'",
    ),
    "no-vectors": (lambda table: table.create_index(vector_column_name="id"), InvalidInput, "type vector<float32"),
    "the-default-column": (lambda table: table.create_index(), InvalidInput, "no column 'vector'"),
    "metric": (vectors(metric="cosin"), InvalidInput, "did you mean cosine"),
    "hamming": (vectors(metric="hamming", index_type="IVF_FLAT"), InvalidInput, "vectors of uint8"),
    "vector-type": (vectors(index_type="IVF_PK"), InvalidInput, "did you mean IVF_PQ"),
    "vector-type-of-values": (vectors(index_type="BTREE"), InvalidInput, "'BTREE' is not"),
    "partitions": (vectors(num_partitions=0), InvalidInput, "`num_partitions` is 0; give a whole number from 1"),
    "partitions-text": (vectors(num_partitions="4"), InvalidInput, "`num_partitions` is '4'"),
    "sub-vectors": (vectors(num_sub_vectors=5), InvalidInput, "5 sub-vectors do not divide a vector of 16"),
    "bits": (vectors(num_bits=5), InvalidInput, "`num_bits` is 5; use one of 4, 8"),
    "odd": (vectors(num_bits=4, num_sub_vectors=1), InvalidInput, "even number of sub-vectors"),
    "iterations": (vectors(max_iterations=0), InvalidInput, "`max_iterations` is 0"),
    "sample": (vectors(sample_rate=True), InvalidInput, "`sample_rate` is True"),
    "edges": (vectors(index_type="IVF_HNSW_SQ", m=1), InvalidInput, "`m` is 1"),
    "accelerator": (vectors(accelerator="cuda"), Refused, "leave `accelerator` out"),
    "parts": (vectors(parts=0), InvalidInput, "`parts` is 0"),
    "too-few-rows": (vectors(num_partitions=5_000), Refused, "needs 5,000 rows with a vector, and the table has 1,200"),
    "scalar-column": (scalar("carier"), InvalidInput, "did you mean 'carrier'"),
    "scalar-none": (scalar(None), InvalidInput, "no column None"),
    "scalar-type": (scalar("id", index_type="BTRE"), InvalidInput, "did you mean BTREE"),
    "scalar-of-vectors": (scalar("embedding"), InvalidInput, "use one of ivf_flat"),
    "scalar-of-lists": (scalar("stops"), InvalidInput, "use label_list"),
    "text-column": (text("id"), InvalidInput, "index a column of text"),
    "text-none": (lambda table: table.create_fts_index([]), InvalidInput, "`field_names` is empty"),
    "one-bad-of-two": (text("remark", "carier"), InvalidInput, "did you mean 'carrier'"),
    "tokenizer": (text(base_tokenizer="simpel"), InvalidInput, "did you mean simple"),
    "named-tokenizer": (text(tokenizer_name="en_sten"), InvalidInput, "did you mean en_stem"),
    "language": (text(language="Englisch"), InvalidInput, "did you mean English"),
    "misspelled": (text(with_positions=True), InvalidInput, "did you mean `with_position`"),
    "token-length": (text(max_token_length=0), InvalidInput, "`max_token_length` is 0"),
    "flag": (text(stem="no"), InvalidInput, "give True or False"),
    "heap": (text(writer_heap_size=5), InvalidInput, "`writer_heap_size` is 5"),
    "ordering": (text(ordering_field_names="when"), InvalidInput, "no column 'when' to order by"),
    "tantivy": (text(use_tantivy=True), Refused, "Tantivy"),
    "drop": (lambda table: table.drop_index("embeding_ivf_pq"), NotFound, "it has none"),
}


def test_bad_input_changes_nothing(indexed: Indexed, table: Table) -> None:
    before = (table._newest().state, table.list_indices())
    for case, (call, kind, message) in BAD.items():
        with pytest.raises(kind) as failure:
            call(table)
        assert message in str(failure.value), case
        assert "table/air.flights" in str(failure.value), case
    assert (table._newest().state, table.list_indices()) == before


EMPTY: dict[str, tuple[Callable[[Table], None], int]] = {
    "pq": (vectors(), 256),
    "pq-of-4-bits": (vectors(num_bits=4), 16),
    "flat": (vectors(index_type="IVF_FLAT"), 1),
    "partitions": (vectors(index_type="IVF_HNSW_SQ", num_partitions=40), 40),
    "field": (scalar("gate.number"), 1),
}


@pytest.mark.parametrize("case", EMPTY)
def test_an_empty_table_is_told_how_many_rows_it_needs(lake: Lake, case: str) -> None:
    call, needed = EMPTY[case]
    indexed = Indexed(lake, [])
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        with pytest.raises(Refused, match=f"needs {needed} rows.*the table has 0"):
            call(table)
        assert table.list_indices() == []
        indexed.add(needed)
        call(table)
        assert len(table.list_indices()) == 1


def test_indexes_on_values_and_text_may_be_created_before_there_are_rows(lake: Lake) -> None:
    indexed = Indexed(lake, [])
    with connect(lake.root) as connection:
        table = connection.open_table("flights")
        table.create_scalar_index("id")
        table.create_fts_index("remark")
        table.create_scalar_index("id", index_type="BITMAP", parts=3)
        indexed.add(100)
        found = {each.name: table.index_stats(each.name) for each in table.list_indices()}
    assert {name: each and each.num_indexed_rows for name, each in found.items()} == {
        "id_bitmap": 100,
        "remark_inverted": 100,
    }


def test_a_build_that_fails_leaves_what_was(indexed: Indexed, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors(index_type="IVF_FLAT")(table)
    before = table._newest().state.properties.declared
    monkeypatch.setattr(lance.LanceDataset, "create_index_uncommitted", _failing)
    with pytest.raises(DeployerError, match="the disk is full"):
        vectors(parts=2)(table)
    assert table._newest().state.properties.declared == before
    assert [each.name for each in table.list_indices()] == ["embedding_ivf_flat"]


def _failing(*_: Any, **__: Any) -> None:
    raise OSError("the disk is full")


def test_indexes_are_listed_and_dropped_whoever_made_them(indexed: Indexed, table: Table) -> None:
    vectors()(table)
    indexed.dataset.create_scalar_index("carrier", "NGRAM", name="pieces")
    assert [(each.name, each["index_type"], each.status) for each in table.list_indices()] == [
        ("embedding_ivf_pq", "IvfPq", "ready"),
        ("pieces", "NGram", "ready"),
    ]
    with pytest.raises(NotFound, match="did you mean 'embedding_ivf_pq'"):
        table.drop_index("embeding_ivf_pq")
    table.drop_index("embedding_ivf_pq")
    assert table.index_stats("embedding_ivf_pq") is None
    assert (indexed.changes(), [each.name for each in table.list_indices()]) == ((), ["pieces"])


def test_an_unset_number_of_sub_vectors_is_that_of_lancedb(lake: Lake) -> None:
    declared = replace(PQ, parameters={"num_partitions": 2})
    indexed = Indexed(lake, [declared])
    indexed.add(300)
    assert indexed.changes() == ()
    [index] = indexed.dataset.describe_indices()
    assert index.details["compression"]["num_sub_vectors"] == SIZE // 16
    indexed.dataset.create_index("embedding", "IVF_PQ", name=PQ.name, num_partitions=2, num_sub_vectors=8, replace=True)
    [change] = indexed.changes()
    assert isinstance(change, RebuildIndex), "another program chose otherwise"
    assert change.before.parameters == {"num_sub_vectors": 8}


#: What LanceDB 0.40 chose for vectors of that size and codes of that many bits; 18 for the last, which it then refuses.
SUB_VECTORS = {(2, 8): 1, (12, 4): 2, (24, 8): 3, (24, 4): 4, (100, 8): 1, (128, 8): 8, (136, 8): 17, (136, 4): 34}


def test_sub_vectors_are_chosen_as_by_lancedb() -> None:
    assert {case: suggested_sub_vectors(*case) for case in SUB_VECTORS} == SUB_VECTORS


def test_rows_without_vectors_do_not_count(lake: Lake) -> None:
    indexed = Indexed(lake, [])
    nothing = pa.nulls(400, SCHEMA.field("embedding").type)
    lake.ingest(lake.file_arrow(rows(400).set_column(4, SCHEMA.field("embedding"), nothing)))
    indexed.add(200, 400)
    with connect(lake.root) as connection, pytest.raises(Refused, match=r"needs 256 rows with a vector.*has 200"):
        vectors()(connection.open_table("flights"))


def test_a_waiting_declaration_keeps_the_index_that_it_replaces(lake: Lake) -> None:
    small = replace(GRAPH, parameters={"num_partitions": 2})
    indexed = Indexed(lake, [small])
    indexed.add(100)
    large = replace(GRAPH, parameters={"num_partitions": 150})
    indexed.declare(large)
    assert indexed.infos()["graph"].status == "pending"
    assert indexed.infos()["graph"].indexed_rows == 100, "searches use the former one until then"
    assert indexed.changes() == ()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lance.LanceDataset, "create_index", _failing)
        assert "the disk is full" in indexed.add(50, 100).indexes.failure
    assert indexed.changes() == (RebuildIndex("table/air.flights", small, large),), "it was begun, and cut off"
    indexed.add(50, 150)
    indexed.apply()
    assert (indexed.infos()["graph"].status, indexed.changes()) == ("ready", ())
    indexed.declare(TEXT)
    assert [each.name for each in indexed.dataset.describe_indices()] == [TEXT.name]
