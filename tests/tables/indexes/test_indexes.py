"""Indexes on real tables: built, dropped, built anew, caught up by loads, and no difference that nobody made."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from deployer.live.reader import read_table
from deployer.plan.changes import CreateIndex, DropIndex, RebuildIndex, RenameColumn, RenameIndex
from deployer.plan.diff.lakes import diff
from deployer.specs.declarations.indexes import default_name
from deployer.specs.model import IndexSpec
from deployer.specs.types.types import Scalar
from deployer.tables.importing.adopt import adopt, adoptable
from tests.tables.indexed import BITMAP, GRAPH, LABELS, NESTED, PQ, SCHEMA, SIZE, TEXT, TREE, Indexed, rows
from tests.tables.lakes import Lake

ALL = (TREE, BITMAP, LABELS, TEXT, NESTED, PQ, GRAPH)


def append(table: Indexed, count: int, start: int) -> None:
    """Rows by plain Lance."""
    lance.write_dataset(rows(count, start), table.dataset.uri, mode="append")


@pytest.mark.thinned(4, to="full")
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "unkeyed"])
@pytest.mark.parametrize("storage", ["2.1", "2.2"])
def test_indexes_are_as_declared_whatever_moves(lake: Lake, storage: str, keyed: bool) -> None:
    table = Indexed(lake, ALL, storage, keyed)
    steps: list[Callable[[], Any]] = [
        lambda: None,
        lambda: table.add(100),
        lambda: table.add(1_000, 100),
        lambda: table.add(200, 1_100, indexes=False),
        lambda: append(table, 300, 1_300),
        lambda: table.dataset.optimize.optimize_indices(),
        lambda: table.dataset.optimize.compact_files(),
        lambda: table.dataset.delete("id < 10"),
        lambda: table.add(50, 2_000),
    ]
    for step in steps:
        step()
        assert table.changes() == ()
    infos = table.infos()
    assert infos.keys() == {index.name for index in ALL}
    assert {(info.status, info.unindexed_rows) for info in infos.values()} == {("ready", 0)}
    assert {info.indexed_rows for info in infos.values()} == {1_640}


CHANGED = {
    "bitmap-to-btree": (BITMAP, replace(BITMAP, kind="btree")),
    "column": (TREE, replace(TREE, columns=("gate.number",))),
    "full-text": (TEXT, replace(TEXT, parameters={"base_tokenizer": "ngram", "max_ngram_length": 4})),
    "stop-words": (TEXT, replace(TEXT, parameters={"custom_stop_words": ["by", "fog"]})),
    "metric": (PQ, replace(PQ, parameters={**PQ.parameters, "metric": "cosine"})),
    "partitions": (PQ, replace(PQ, parameters={**PQ.parameters, "num_partitions": 2})),
    "sub-vectors": (PQ, replace(PQ, parameters={**PQ.parameters, "num_sub_vectors": 4})),
    "graph": (GRAPH, replace(GRAPH, parameters={"m": 8})),
    "quantization": (GRAPH, replace(GRAPH, kind="ivf_hnsw_pq", parameters={"num_sub_vectors": 4})),
}


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("case", CHANGED)
def test_an_index_is_built_anew_when_its_declaration_changes(lake: Lake, case: str) -> None:
    before, after = CHANGED[case]
    table = Indexed(lake, [before])
    table.add(1_000)
    [segments] = [index.segments for index in table.dataset.describe_indices()]
    table.spec = table.with_indexes(table.spec, [after])
    assert table.changes() == (RebuildIndex("table/air.flights", before, after),)
    table.apply()
    assert table.changes() == ()
    [index] = table.dataset.describe_indices()
    assert {each.uuid for each in index.segments}.isdisjoint(each.uuid for each in segments)
    assert table.infos()[after.name].indexed_rows == 1_000
    table.add(500, 1_000)
    assert table.changes() == ()


def test_history_calls_no_build_of_its_own_foreign(lake: Lake) -> None:
    flat = IndexSpec("flat", ("embedding",), "ivf_flat", {"num_partitions": 4})
    codes = IndexSpec("codes", ("embedding",), "ivf_hnsw_pq", {"num_partitions": 4, "num_sub_vectors": 8})
    table = Indexed(lake, (*ALL, flat, codes))
    for start in (0, 300, 600, 900):
        table.add(300, start)
    table.declare(TREE)
    table.declare(TREE, flat, TEXT)
    table.declare(TREE, replace(flat, kind="ivf_hnsw_sq", parameters={}), TEXT)
    table.add(50, 1_200)
    kept = table.lake.open().history()
    assert [version.operation for version in kept if version.foreign] == []
    assert sum("build index" in version.operation for version in kept) > 10
    table.dataset.create_index("embedding", "IVF_FLAT", name="theirs", num_partitions=2)
    assert [version.operation for version in table.lake.open().history() if version.foreign] == ["build index theirs"]


def test_indexes_are_added_to_and_dropped_from_tables_with_rows(lake: Lake) -> None:
    table = Indexed(lake, [])
    table.add(1_000)
    table.declare(*ALL)
    assert table.changes() == ()
    assert {info.indexed_rows for info in table.infos().values()} == {1_000}
    table.declare(TREE)
    assert [index.name for index in table.dataset.describe_indices()] == [TREE.name]
    table.declare()
    assert table.dataset.describe_indices() == []
    assert table.changes() == ()


FOREIGN: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "dropped": (lambda dataset: dataset.drop_index(TREE.name), CreateIndex("table/air.flights", TREE)),
    "added": (
        lambda dataset: dataset.create_scalar_index("carrier", "BITMAP", name="mine"),
        DropIndex("table/air.flights", IndexSpec("mine", ("carrier",), "bitmap")),
    ),
    "built-otherwise": (
        lambda dataset: dataset.create_scalar_index("remark", "INVERTED", name=TEXT.name, replace=True),
        RebuildIndex("table/air.flights", replace(TEXT, parameters={}), TEXT),
    ),
    "built-with-another-metric": (
        lambda dataset: dataset.create_index("embedding", "IVF_FLAT", name=PQ.name, metric="dot", replace=True),
        RebuildIndex("table/air.flights", replace(PQ, kind="ivf_flat", parameters={"metric": "dot"}), PQ),
    ),
}


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("case", FOREIGN)
def test_what_plain_lance_does_to_indexes_is_a_difference_and_undone(lake: Lake, case: str) -> None:
    do, change = FOREIGN[case]
    table = Indexed(lake, [TREE, TEXT, PQ])
    table.add(1_000)
    do(table.dataset)
    assert table.changes() == (change,)
    table.add(100, 1_000)
    assert table.changes() == (change,)
    table.apply()
    assert table.changes() == ()


@pytest.mark.parametrize(
    ("index", "needed"), [(PQ, 256), (GRAPH, 1), (replace(GRAPH, parameters={"num_partitions": 40}), 40)]
)
def test_an_index_on_vectors_waits_for_its_rows(lake: Lake, index: IndexSpec, needed: int) -> None:
    table = Indexed(lake, [index])
    info = table.infos()[index.name]
    assert (info.status, info.waits_for_rows) == ("pending", needed)
    assert table.dataset.describe_indices() == []
    if needed > 1:
        assert table.add(needed - 1).indexes.built == ()
        assert (table.infos()[index.name].status, table.changes()) == ("pending", ())
    assert table.add(1, needed).indexes.built == (index.name,)
    assert (table.infos()[index.name].status, table.changes()) == ("ready", ())


def test_rows_without_a_vector_are_no_rows_to_learn_from(lake: Lake) -> None:
    table = Indexed(lake, [PQ])
    empty = rows(1_000).set_column(4, SCHEMA.field("embedding"), pa.nulls(1_000, SCHEMA.field("embedding").type))
    lake.ingest(lake.file_arrow(empty))
    assert table.infos()[PQ.name].status == "pending"
    table.add(300, 1_000)
    assert table.infos()[PQ.name].status == "ready"


def test_a_waiting_index_can_be_dropped_and_changed(lake: Lake) -> None:
    table = Indexed(lake, [PQ])
    table.declare(replace(PQ, parameters={"num_sub_vectors": 2}))
    assert (table.changes(), table.infos()[PQ.name].parameters) == ((), {"num_sub_vectors": 2})
    table.declare()
    assert (table.changes(), table.infos()) == ((), {})


def test_a_load_brings_indexes_up_unless_told_not_to(lake: Lake) -> None:
    table = Indexed(lake, [TREE, TEXT])
    assert table.add(100, indexes=False).indexes.updated == ()
    assert {info.unindexed_rows for info in table.infos().values()} == {100}
    assert sorted(table.add(100, 100).indexes.updated) == [TREE.name, TEXT.name]
    assert {(info.indexed_rows, info.unindexed_rows) for info in table.infos().values()} == {(200, 0)}


def test_a_load_stands_when_indexes_cannot_be_brought_up_and_the_next_one_tries_again(lake: Lake) -> None:
    table = Indexed(lake, [TREE])
    table.add(100)
    folder = Path(table.dataset.uri) / "_indices"
    away = folder.with_name("away")
    shutil.move(folder, away)
    folder.write_text("no folder to write an index into")
    result = table.add(100, 100)
    assert (result.rows, result.indexes.updated) == (100, ())
    assert result.indexes.failure == "Lance left id_btree unchanged (its warning is above)"
    assert lake.open().count() == 200
    assert table.infos()[TREE.name].unindexed_rows == 100
    folder.unlink()
    shutil.move(away, folder)
    assert table.add(100, 200).indexes.updated == (TREE.name,)
    assert table.infos()[TREE.name].unindexed_rows == 0


def test_indexes_are_built_while_others_write(lake: Lake) -> None:
    table = Indexed(lake, [])
    table.add(2_000)
    uri, stop = table.dataset.uri, threading.Event()

    def write() -> None:
        place = 10_000
        while not stop.is_set():
            lance.write_dataset(rows(20, place), uri, mode="append")
            place += 20
            time.sleep(0.05)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        table.declare(*ALL)
    finally:
        stop.set()
        writer.join()
    table.add(10, 5_000)
    assert table.changes() == ()
    assert {info.unindexed_rows for info in table.infos().values()} == {0}
    assert table.dataset.count_rows() == lake.open().count()


def test_an_index_follows_its_column_through_renaming_and_widening(lake: Lake) -> None:
    number = IndexSpec("numbers", ("gate.number",), "btree")
    table = Indexed(lake, [number, replace(TREE, name="ids"), replace(PQ, name="vectors")])
    table.add(1_000)
    renamed = [
        replace(column, name="vector", renamed_from="embedding") if column.name == "embedding" else column
        for column in table.spec.columns
    ]
    table.spec = replace(table.spec, columns=tuple(renamed))
    table.declare(number, replace(TREE, name="ids"), replace(PQ, name="vectors", columns=("vector",)))
    assert table.changes() == ()
    assert table.infos()["vectors"].parameters == PQ.parameters
    assert table.dataset.describe_indices()[2].field_names == ["vector"]


FOLLOWED = {
    kind: IndexSpec(default_name((column,), kind), (column,), kind, parameters)
    for kind, column, parameters in (
        ("btree", "id", {}),
        ("bitmap", "carrier", {}),
        ("label_list", "stops", {}),
        ("inverted", "remark", {"stem": False, "with_position": True, "custom_stop_words": ["fog"]}),
        ("ivf_flat", "embedding", {"num_partitions": 4}),
        ("ivf_pq", "embedding", PQ.parameters),
        ("ivf_hnsw_sq", "embedding", {"num_partitions": 4, "m": 16}),
        ("ivf_hnsw_pq", "embedding", {"num_partitions": 4, "num_sub_vectors": 8}),
    )
} | {"nested": NESTED}


def renamed(index: IndexSpec) -> IndexSpec:
    """The index under the name that it has by default after its column was renamed."""
    columns = tuple("new_" + column for column in index.columns)
    return replace(index, columns=columns, name=default_name(columns, index.kind))


def of_lance(table: Indexed) -> dict[str, tuple[list[str], frozenset[str], dict[str, Any]]]:
    """The indexes of the dataset by name: their columns, the ids of their files' folders, and what Lance tells."""
    return {
        each.name: (each.field_names, frozenset(str(segment.uuid) for segment in each.segments), dict(each.details))
        for each in table.dataset.describe_indices()
    }


@pytest.mark.parametrize("kinds", [tuple(FOLLOWED)[:4], tuple(FOLLOWED)[4:]], ids=["scalar", "vectors"])
def test_an_index_that_is_named_after_its_column_is_renamed_and_not_built(lake: Lake, kinds: tuple[str, ...]) -> None:
    indexes = [FOLLOWED[kind] for kind in kinds]
    table = Indexed(lake, indexes)
    table.add(600)
    table.add(200, 600)
    before = of_lance(table)
    columns = {index.columns[0].partition(".")[0] for index in indexes}
    table.spec = replace(
        table.spec,
        columns=tuple(
            replace(column, name=f"new_{column.name}", renamed_from=column.name) if column.name in columns else column
            for column in table.spec.columns
        ),
        row_keys=tuple(f"new_{key}" if key in columns else key for key in table.spec.row_keys),
    )
    table.spec = table.with_indexes(table.spec, [renamed(index) for index in indexes])
    assert {type(change) for change in table.changes()} == {RenameColumn, RenameIndex}
    table.apply()
    assert table.changes() == ()
    assert of_lance(table) == {
        renamed(index).name: ([*renamed(index).columns], *before[index.name][1:]) for index in indexes
    }
    assert {info.indexed_rows for info in table.infos().values()} == {800}
    table.dataset.validate()
    for index in indexes:
        assert_used(table.dataset, renamed(index))
    done = [each.operation for each in table.lake.open().history()[: len(indexes)]]
    assert sorted(done) == sorted(f"rename index {index.name} → {renamed(index).name}" for index in indexes)


def assert_used(dataset: Any, index: IndexSpec) -> None:
    """Lance searches by the index, which its plan names; of several on the same vectors it takes one."""
    [column] = index.columns
    if index.kind.startswith("ivf_"):
        near = {"column": column, "q": [1.0] * SIZE, "k": 3}
        assert f"ANNSubIndex: name={column}_ivf" in dataset.scanner(nearest=near).explain_plan()
    elif index.kind == "inverted":  # whose parameters tell: without the index the search does not exist
        assert dataset.to_table(full_text_query=lance.query.PhraseQuery("cancelled by", column)).num_rows
        assert not dataset.to_table(full_text_query="fog").num_rows
    else:
        values = {"bitmap": f"{column} = 'c3'", "label_list": f"array_has({column}, 's4')"}
        plan = dataset.scanner(filter=values.get(index.kind, f"{column} IN (1, 2)")).explain_plan()
        assert f"@{index.name}(" in plan


def test_an_index_that_waits_for_rows_is_renamed_too(lake: Lake) -> None:
    table = Indexed(lake, [PQ])
    table.declare(replace(PQ, name="vectors"))
    assert table.changes() == ()
    table.add(600)
    assert list(of_lance(table)) == ["vectors"]


def test_a_rename_by_plain_lance_keeps_the_index_whatever_the_specs_call_it_then(lake: Lake) -> None:
    table = Indexed(lake, [TEXT])
    table.add(100)
    [(_, segments, _)] = of_lance(table).values()
    table.dataset.alter_columns({"path": "remark", "name": "note"})
    columns = [replace(each, name="note") if each.name == "remark" else each for each in table.spec.columns]
    table.spec = replace(table.spec, columns=tuple(columns))
    table.spec = table.with_indexes(table.spec, [replace(TEXT, columns=("note",))])  # as `drift --write-spec` writes it
    assert table.changes() == ()
    table.declare(replace(TEXT, columns=("note",), name="note_inverted"))
    assert [(name, *about[:2]) for name, about in of_lance(table).items()] == [("note_inverted", ["note"], segments)]
    assert table.changes() == ()


def test_an_index_is_there_again_after_its_column_changed_its_type(lake: Lake) -> None:
    table = Indexed(lake, [BITMAP])
    table.add(500)
    wider = [
        replace(column, type=Scalar("large_string")) if column.name == "carrier" else column
        for column in table.spec.columns
    ]
    table.spec = replace(table.spec, columns=tuple(wider))
    table.apply()
    assert table.changes() == ()
    assert table.infos()[BITMAP.name].indexed_rows == 500


def test_an_index_that_no_spec_can_declare_is_left_alone(lake: Lake) -> None:
    table = Indexed(lake, [TREE])
    table.add(100)
    table.dataset.create_scalar_index("carrier", "ZONEMAP", name="mine")
    assert table.changes() == ()
    table.declare()
    assert [index.name for index in table.dataset.describe_indices()] == ["mine"]


def test_indexes_of_an_imported_dataset_are_declared(lake: Lake) -> None:
    path = Path(lake.root) / "trips.lance"
    dataset = lance.write_dataset(rows(1_000), str(path), data_storage_version="2.1")
    dataset.create_scalar_index("carrier", "BTREE", name="carrier_idx")
    dataset.create_scalar_index("remark", "INVERTED", name="words", stem=False)
    dataset.create_index("embedding", "IVF_PQ", name="vector_idx", num_partitions=2, num_sub_vectors=4, metric="cosine")
    found = adoptable(lake.root, path, "air", "trips")
    assert found.spec.indexes == (
        IndexSpec("carrier_idx", ("carrier",), "btree"),
        IndexSpec("vector_idx", ("embedding",), "ivf_pq", {"metric": "cosine", "num_sub_vectors": 4}),
        IndexSpec("words", ("remark",), "inverted", {"stem": False}),
    )
    table_id = adopt(lake.store, lake.root, found, "tests/dev")
    live = read_table(lake.store, lake.root, lake.store.instance().tables[table_id])
    assert diff(live.spec, found.spec) == ()
