"""`load_columns`: what rows have afterwards, by format, key, mode and size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.columns.load import buckets, joined, keys
from deployer.errors import Refused
from deployer.runs.records import runs_of
from deployer.table import Table
from deployer.tables.inspect.versions import history
from tests.columns.rows import rows, source, values
from tests.tables.lakes import Lake


def folder_of_two(lake: Lake) -> str:
    folder = lake.folder / "parts"
    folder.mkdir()
    pq.write_table(source(range(15)), folder / "a.parquet")
    pq.write_table(source(range(15, 30)), folder / "b.parquet")
    return str(folder)


def lance_dataset(lake: Lake) -> str:
    uri = str(lake.folder / "source.lance")
    lance.write_dataset(source(range(30)), uri, max_rows_per_file=7)
    return uri


def ipc_stream(lake: Lake) -> str:
    path = lake.folder / "source.arrows"
    table = source(range(30))
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    return str(path)


SOURCES: dict[str, Callable[[Lake], str | list[str]]] = {
    "one Parquet file": lambda lake: str(lake.file(source(range(30)))),
    "a folder": folder_of_two,
    "a glob": lambda lake: f"{folder_of_two(lake)}/*.parquet",
    "a list of files": lambda lake: [str(lake.file(source(range(k, k + 10)))) for k in (20, 0, 10)],
    "an IPC file": lambda lake: str(lake.file_arrow(source(range(30)))),
    "an IPC stream": ipc_stream,
    "a Lance dataset": lance_dataset,
}


@pytest.mark.parametrize("name", SOURCES)
def test_columns_are_loaded_from(name: str, table: Table, lake: Lake) -> None:
    job = table.load_columns(SOURCES[name](lake), "id", ["embedding", "label", "place"])
    want = source(range(30)).to_pylist()
    found = sorted(table.to_arrow(["id", "embedding", "label", "place"]).to_pylist(), key=lambda row: row["id"])
    assert found == want and isinstance(job, str)
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 3)


def test_the_format_is_given_where_the_name_does_not_show_it(table: Table, lake: Lake) -> None:
    path = lake.file(source(range(30))).rename(lake.folder / "values.dat")
    table.load_columns(str(path), "id", ["label"], source_format="parquet")
    assert values(table, "label")[29] == "label 29"


KEYS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "int64 for int32": ("id", lambda keys: keys.cast(pa.int64())),
    "int8 for int32": ("id", lambda keys: keys.cast(pa.int8())),
    "text": ("name", lambda keys: keys),
    "large text": ("name", lambda keys: keys.cast(pa.large_string())),
    "dictionary": ("name", lambda keys: keys.dictionary_encode()),
    "date": ("day", lambda keys: keys),
    "time": ("at", lambda keys: keys),
}


@pytest.mark.thinned(3, to="full")
@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("order", ["same", "reversed", "shuffled"])
def test_rows_are_found_by_keys_of(name: str, order: str, table: Table, lake: Lake) -> None:
    pk, change = KEYS[name]
    given = rows(0, 30)
    places = {"same": range(30), "reversed": range(29, -1, -1), "shuffled": [(7 * i) % 30 for i in range(30)]}[order]
    given = given.take(pa.array([*places]))
    kept = pa.table({pk: change(given[pk].combine_chunks()), "score": given["rating"]}).slice(0, 25)
    table.load_columns(str(lake.file(kept)), pk, ["score"])
    want = {i: float(i) if i in set(given["id"].to_pylist()[:25]) else None for i in range(30)}
    assert values(table, "score") == want


NUMBERS: dict[str, list[int]] = {
    "dense, in order": [5, 6, 7, 8, 9],
    "dense, shuffled": [9, 5, 8, 6, 7],
    "with gaps": [-3, 4, 0, 1],
    "far apart": [1_000_000, -7, 12],
    "the least and the largest": [2**63 - 1, 0, -(2**63)],
    "one": [4],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_whole_numbers_are_found(name: str) -> None:
    given = NUMBERS[name]
    index = keys.index_keys(pa.chunked_array([given[:2], given[2:]], pa.int64()), "id", "source")
    wanted = [*given, None, 2, 3, 2**63 - 1, -(2**63), *reversed(given)]
    found = index.find(pa.chunked_array([pa.array(wanted, pa.int64())]))
    assert found.tolist() == [given.index(key) if key in given else keys.NONE for key in wanted]


@pytest.mark.parametrize("given", [[1, 2, 3, 2, 1, 1], [900, 4, 900, 4, 5]], ids=["dense", "far apart"])
def test_repeated_whole_numbers_are_refused(given: list[int]) -> None:
    first = sorted({key for key in given if given.count(key) > 1})
    with pytest.raises(Refused, match=f"such as {first[0]}, {first[1]}"):
        keys.index_keys(pa.chunked_array([given], pa.int64()), "id", "source")


def test_rows_with_one_key_get_the_same_value(table: Table, lake: Lake) -> None:
    table.add(rows(0, 30).set_column(0, "id", pa.array(range(100, 130), pa.int32())))
    named = pa.table({"name": [f"name {i}" for i in range(30)], "score": [*range(30)]})
    table.load_columns(str(lake.file(named)), "name", ["score"])
    assert values(table, "score") == {i + more: i for i in range(30) for more in (0, 100)}


MODES: dict[str, Callable[[int], str | None]] = {
    "carry": lambda i: f"label {i * 2:g}" if i % 2 else f"label {i}",
    "null": lambda i: f"label {i * 2:g}" if i % 2 else None,
}


@pytest.mark.parametrize("mode", MODES)
def test_rows_without_a_match(mode: str, table: Table, lake: Lake) -> None:
    table.load_columns(str(lake.file(source(range(30)))), "id", ["label"])
    table.load_columns(str(lake.file(source(range(1, 30, 2), 2))), "id", ["label"], on_missing=mode)
    assert values(table, "label") == {i: MODES[mode](i) for i in range(30)}


def test_columns_of_the_table_are_loaded_in_their_type(table: Table, lake: Lake) -> None:
    given = pa.table({"id": [1, 2], "rating": pa.array([100, 200], pa.int16())})
    table.load_columns(str(lake.file(given)), "id", ["rating"])
    assert values(table, "rating") == {i: {1: 100.0, 2: 200.0}.get(i, float(i)) for i in range(30)}


TYPES: dict[str, pa.Array] = {
    "uuid": pa.array([i.to_bytes(16, "big") for i in range(30)], pa.uuid()),
    "dictionary": pa.array([f"d{i % 3}" for i in range(30)]).dictionary_encode(),
    "large list": pa.array([[i, None] for i in range(30)], pa.large_list(pa.int8())),
    "bool": pa.array([i % 2 == 0 for i in range(30)]),
    "decimal": pa.array([f"{i}.25" for i in range(30)]).cast(pa.decimal128(12, 2)),
    "timestamp": pa.array(range(30), pa.timestamp("us", "UTC")),
    "struct in a struct": pa.array([{"a": {"b": i, "c": [i]}} for i in range(30)]),
    "null": pa.nulls(30),
}


@pytest.mark.thinned(6, to="full")
@pytest.mark.parametrize("name", TYPES)
def test_a_new_column_has_the_type_of_the_source(name: str, table: Table, lake: Lake) -> None:
    given = pa.table({"id": pa.array(range(30)), "value": TYPES[name]})
    table.load_columns(str(lake.file_arrow(given)), "id", ["value"])
    assert values(table, "value") == dict(zip(range(30), TYPES[name].to_pylist(), strict=True))
    table.load_columns(str(lake.file_arrow(given.slice(20, 5))), "id", ["value"], on_missing="carry")
    assert values(table, "value") == dict(zip(range(30), TYPES[name].to_pylist(), strict=True))


def test_a_required_column_keeps_its_description_and_values(lake: Lake) -> None:
    from deployer.table import connect

    grade = pa.field("grade", pa.decimal128(8, 2), nullable=False, metadata={"description": "of the flight"})
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), grade])
    lake.table(schema, row_keys=("id",), splits=(), name="graded")
    grades = pa.array(range(10), pa.int64()).cast(pa.decimal128(21, 2))
    with connect(lake.root) as connection:
        table = connection.open_table("graded")
        table.add(pa.table([range(10), grades.cast(grade.type)], schema=schema))
        lance.dataset(lake.open("graded").opened.location).delete("id IN (0, 4)")
        given = pa.table({"id": [1, 3], "grade": grades.slice(7, 2)})
        table.load_columns(str(lake.file(given)), "id", ["grade"])
        assert {i: int(value) for i, value in values(table, "grade").items()} == {
            1: 7,
            2: 2,
            3: 8,
            5: 5,
            6: 6,
            7: 7,
            8: 8,
            9: 9,
        }
        assert table.schema.field("grade").equals(grade, check_metadata=True)
        with pytest.raises(Refused, match="column grade must not be null, and 6 rows have no match"):
            table.load_columns(str(lake.file(given)), "id", ["grade"], on_missing="null")


def test_a_new_column_is_loaded_beside_one_that_is_there(table: Table, lake: Lake) -> None:
    given = source(range(30)).append_column("rating", pa.array([i * 2.0 for i in range(30)]))
    version = table.version
    table.load_columns(str(lake.file(given)), "id", ["label", "rating", "embedding"])
    assert table.version == version + 4  # two columns are added, and then filled by one version for each sort
    assert values(table, "rating") == {i: i * 2.0 for i in range(30)}
    assert values(table, "label") == {i: f"label {i}" for i in range(30)}
    assert values(table, "embedding")[7] == [7.0, 7.5, -7.0]


def test_the_example_of_several_passes(table: Table, lake: Lake) -> None:
    import pyarrow.dataset as pads

    (lake.folder / "embeddings").mkdir()
    for k in range(8):
        pq.write_table(source(range(k, 30, 8)), lake.folder / "embeddings" / f"{k}.parquet")
    source_files = pads.dataset(str(lake.folder / "embeddings"), format="parquet").files
    passes = 4
    chunk_size = len(source_files) // passes
    for i in range(passes):
        table.load_columns(source=source_files[i * chunk_size : (i + 1) * chunk_size], pk="id", columns=["embedding"])
    assert values(table, "embedding") == dict(zip(range(30), source(range(30))["embedding"].to_pylist(), strict=True))


def test_deleted_rows_are_passed_over(table: Table, lake: Lake) -> None:
    table.load_columns(str(lake.file(source(range(30)))), "id", ["embedding", "label", "place"])
    lance.dataset(lake.open().opened.location).delete("id IN (0, 3, 4, 12, 29)")
    table.load_columns(str(lake.file(source([1, 5, 13, 28], 2))), "id", ["embedding", "label", "place"])
    left = [i for i in range(30) if i not in (0, 3, 4, 12, 29)]
    want = {row["id"]: row for row in source(left).to_pylist()}
    want |= {row["id"]: row for row in source([1, 5, 13, 28], 2).to_pylist()}
    found = {row["id"]: row for row in table.to_arrow(["id", "embedding", "label", "place"]).to_pylist()}
    assert found == want


def test_deleted_rows_are_not_counted(table: Table, lake: Lake, engine: str = "driver") -> None:
    table.delete("id IN (0, 3, 4, 12)")
    path = str(lake.file(source(range(25))))
    with pytest.raises(Refused, match="5 of 26 rows have no match in the source: id 25, 26, 27, 28, 29"):
        table.load_columns(path, "id", ["label"], on_missing="error", engine=engine)
    table.load_columns(path, "id", ["label"], job_id="monday", engine=engine)
    state = lake.open().opened.state
    assert state.jobs["monday"].rows == 26 and runs_of(state, "LOAD_COLUMNS")[0].figures.rows_out == 26
    newest = history(lake.open().opened)[0]
    assert (newest.kind, newest.rows) == ("load columns label", 0)


@pytest.mark.parametrize("granularity", [None, 1, 2])
def test_partial_results_are_versions(granularity: int | None, table: Table, lake: Lake) -> None:
    table.load_columns(str(lake.file(source(range(30)))), "id", ["label"])
    before = table.version
    table.load_columns(str(lake.file(source(range(30), 2))), "id", ["label"], commit_granularity=granularity)
    assert table.version - before == {None: 1, 1: 3, 2: 2}[granularity]
    assert values(table, "label")[21] == "label 42"


def test_a_job_is_done_once(table: Table, lake: Lake) -> None:
    path = str(lake.file(source(range(30))))
    assert table.load_columns(path, "id", ["label"], job_id="monday") == "monday"
    version = table.version
    assert table.load_columns(path, "id", ["label"], job_id="monday") == "monday"
    assert table.version == version
    assert not (Path(lake.root) / "_work").exists() or not [*(Path(lake.root) / "_work").rglob("fragment-*")]


def test_a_future_says_when_it_is_done(table: Table, lake: Lake) -> None:
    future = table.load_columns_async(str(lake.file(source(range(30)))), "id", ["label"])
    assert future.result(60) == future.job_id
    assert future.done() and future.exception() is None and not future.cancel()


def through_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so low that values go through many buckets, some of them over several fragments."""
    for module, name, limit in (
        (joined, "HELD_BYTES", 10_000),
        (joined, "BATCH_BYTES", 20_000),
        (buckets, "BUCKET_BYTES", 1),
    ):
        monkeypatch.setattr(module, name, limit)


@pytest.mark.parametrize("order", ["same", "shuffled"])
def test_a_source_larger_than_memory(order: str, table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    through_buckets(monkeypatch)
    more = 5_000
    table.add(rows(30, 30 + more))
    lance.dataset(lake.open().opened.location).delete("id % 11 = 5")
    ids = np.arange(0, 30 + more, 3)
    if order == "shuffled":
        np.random.default_rng(1).shuffle(ids)
    files = [str(lake.file(source(part.tolist()))) for part in np.array_split(ids, 5)]
    table.load_columns(files, "id", ["embedding", "label", "place"])
    want = {row["id"]: row for row in source(range(0, 30 + more, 3)).to_pylist()}
    none = {"embedding": None, "label": None, "place": None}
    found = table.to_arrow(["id", "embedding", "label", "place"]).to_pylist()
    assert len(found) == len([i for i in range(30 + more) if i % 11 != 5])
    for row in found:
        assert row == want.get(row["id"], {"id": row["id"], **none})


def test_rows_with_one_key_get_the_same_value_of_a_source_larger_than_memory(
    table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buckets in which many rows need one row of the source, and some none."""
    through_buckets(monkeypatch)
    names = [f"name {i * 7 % 2_000}" for i in range(5_000)]
    more = rows(30, 5_030)
    table.add(more.set_column(more.schema.get_field_index("name"), "name", pa.array(names)))
    given = source(range(0, 2_000, 2)).rename_columns({"id": "key"})
    given = given.append_column("name", pa.array([f"name {i}" for i in range(0, 2_000, 2)]))
    table.load_columns(str(lake.file(given)), "name", ["embedding", "label"])
    found = values(table, "label")
    assert len(found) == 5_030
    for number, name in enumerate(names, 30):
        i = int(name.removeprefix("name "))
        assert found[number] == (None if i % 2 else f"label {i}")


def test_other_programs_read_the_columns(table: Table, lake: Lake) -> None:
    table.load_columns(str(lake.file(source(range(30)))), "id", ["embedding"])
    plain = lance.dataset(lake.open().opened.location).to_table(["id", "embedding"], filter="id = 7").to_pylist()
    assert plain == [{"id": 7, "embedding": [7.0, 7.5, -7.0]}]


def test_the_state_records_what_the_dataset_has(table: Table, lake: Lake) -> None:
    from deployer.tables.maintenance.verify.verify import verify

    table.load_columns(str(lake.file(source(range(30)))), "id", ["embedding", "label"], commit_granularity=1)
    assert [str(one) for each in verify(lake.store, lake.root, full=True) for one in each.differences] == []
    state = lake.open().opened.state
    assert not state.intents and state.files.rows == 30
    assert all(file.sorted for file in state.files)
