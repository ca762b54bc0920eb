"""`load_columns` on Spark: what it writes and refuses is what this process writes and refuses."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from deployer.columns.fill.work import FragmentWork
from deployer.columns.load import on_spark
from deployer.columns.load.fitted import values_schema
from deployer.columns.load.key_buckets import key_buckets
from deployer.columns.load.keys import comparable
from deployer.columns.load.load import load_columns
from deployer.columns.load.on_spark import ShuffledColumns
from deployer.columns.load.request import checked_request
from deployer.columns.load.spooled import OFFSET, SpooledColumns
from deployer.errors import Interrupted
from deployer.platform.system.progress import Progress
from deployer.state import open_store
from deployer.table import Table
from deployer.tables.open_table import open_entry
from tests.columns.rows import rows, source, values
from tests.columns.test_bad_input import CASES
from tests.columns.test_load import KEYS, MODES, SOURCES, TYPES
from tests.columns.test_load import test_deleted_rows_are_not_counted as of_deleted_rows
from tests.tables.lakes import Lake

on_spark_too = pytest.mark.spark


@pytest.fixture
def many_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets of few rows, so that each fragment gets its values from several."""
    monkeypatch.setattr(on_spark, "BUCKET_ROWS", 5)


@on_spark_too
@pytest.mark.usefixtures("spark", "many_buckets")
@pytest.mark.parametrize("name", SOURCES)
def test_columns_are_loaded_from(name: str, table: Table, lake: Lake) -> None:
    table.load_columns(SOURCES[name](lake), "id", ["embedding", "label", "place"], engine="spark")
    found = sorted(table.to_arrow(["id", "embedding", "label", "place"]).to_pylist(), key=lambda row: row["id"])
    assert found == source(range(30)).to_pylist()


@on_spark_too
@pytest.mark.usefixtures("spark")
def test_deleted_rows_are_not_counted(table: Table, lake: Lake) -> None:
    of_deleted_rows(table, lake, "spark")


@on_spark_too
@pytest.mark.usefixtures("spark", "many_buckets")
@pytest.mark.parametrize("name", KEYS)
def test_rows_are_found_by_keys_of(name: str, table: Table, lake: Lake) -> None:
    pk, change = KEYS[name]
    given = rows(0, 30).take(pa.array([(7 * i) % 30 for i in range(30)]))
    kept = pa.table({pk: change(given[pk].combine_chunks()), "score": given["rating"]}).slice(0, 25)
    table.load_columns(str(lake.file(kept)), pk, ["score"], engine="spark")
    want = {i: float(i) if i in set(given["id"].to_pylist()[:25]) else None for i in range(30)}
    assert values(table, "score") == want


@on_spark_too
@pytest.mark.usefixtures("spark", "many_buckets")
@pytest.mark.parametrize("mode", MODES)
def test_rows_without_a_match(mode: str, table: Table, lake: Lake) -> None:
    table.load_columns(str(lake.file(source(range(30)))), "id", ["label"])
    lance.dataset(lake.open().opened.location).delete("id IN (3, 4, 29)")
    path = str(lake.file(source(range(1, 30, 2), 2)))
    table.load_columns(path, "id", ["label"], on_missing=mode, engine="spark")
    assert values(table, "label") == {i: MODES[mode](i) for i in range(30) if i not in (3, 4, 29)}


@on_spark_too
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", TYPES)
def test_a_new_column_has_the_type_of_the_source(name: str, table: Table, lake: Lake) -> None:
    given = pa.table({"id": pa.array(range(30)), "value": TYPES[name]})
    table.load_columns(str(lake.file_arrow(given)), "id", ["value"], engine="spark")
    assert values(table, "value") == dict(zip(range(30), TYPES[name].to_pylist(), strict=True))


@on_spark_too
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", CASES)
def test_refused_and_nothing_changed(name: str, table: Table, lake: Lake) -> None:
    arguments, kind, words = CASES[name]
    before, schema, version, files = table.to_arrow(), table.schema, table.version, lake.data_files()
    with pytest.raises(kind, match=words) as caught:
        table.load_columns(**arguments(lake), engine="spark")
    assert caught.value.remedy
    assert (table.schema, table.version, lake.data_files()) == (schema, version, files)
    assert table.to_arrow().equals(before)


@on_spark_too
@pytest.mark.usefixtures("spark")
def test_the_example_of_several_passes(table: Table, lake: Lake) -> None:
    import pyarrow.dataset as pads

    (lake.folder / "embeddings").mkdir()
    for k in range(8):
        pq.write_table(source(range(k, 30, 8)), lake.folder / "embeddings" / f"{k}.parquet")
    source_files = pads.dataset(str(lake.folder / "embeddings"), format="parquet").files
    passes = 4
    chunk_size = len(source_files) // passes
    for i in range(passes):
        chosen = source_files[i * chunk_size : (i + 1) * chunk_size]
        table.load_columns(source=chosen, pk="id", columns=["embedding"], engine="spark")
    assert values(table, "embedding") == dict(zip(range(30), source(range(30))["embedding"].to_pylist(), strict=True))


@on_spark_too
@pytest.mark.usefixtures("spark")
def test_it_equals_a_join_of_pandas(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several fragments, deleted rows, a shuffled source in several files, one commit for each two fragments."""
    monkeypatch.setattr(on_spark, "BUCKET_ROWS", 600)
    table.load_columns(str(lake.file(source(range(30)))), "id", ["label"])
    for start in (30, 2_000, 5_000):
        table.add(rows(start, start + 1_500))
    lance.dataset(lake.open().opened.location).delete("id % 11 = 5")
    ids = np.random.default_rng(1).permutation(np.arange(0, 6_500, 3))
    given = source(ids.tolist(), 2)
    files = [str(lake.file(given.slice(start, 600))) for start in range(0, given.num_rows, 600)]
    before = table.to_arrow(["id", "label"]).to_pandas()
    version = table.version
    table.load_columns(files, "id", ["label", "embedding"], engine="spark", commit_granularity=2)
    assert table.version - version > 2
    joined = before.merge(
        given.select(["id", "label", "embedding"]).to_pandas(), "left", "id", suffixes=("_before", "")
    )
    joined["label"] = joined["label"].where(joined["label"].notna(), joined["label_before"])
    found = table.to_arrow(["id", "label", "embedding"]).to_pandas().sort_values("id", ignore_index=True)
    joined = joined[["id", "label", "embedding"]].sort_values("id", ignore_index=True)
    as_text = [[*map(repr, zip(*(frame[name] for name in frame), strict=True))] for frame in (found, joined)]
    assert len(found) == len(joined) and _plain(as_text[0]) == _plain(as_text[1])
    assert isinstance(found, pd.DataFrame)


def _plain(texts: list[str]) -> list[str]:
    return [text.replace("None", "nan") for text in texts]


@on_spark_too
@pytest.mark.usefixtures("spark")
def test_rows_that_come_meanwhile_have_values(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    written = ShuffledColumns.written

    def adding(self: ShuffledColumns, *given: Any) -> Any:
        if table.count_rows() == 30:
            table.add(rows(30, 40))
            lance.dataset(lake.open().opened.location).delete("id IN (2, 11)")
        return written(self, *given)

    monkeypatch.setattr(ShuffledColumns, "written", adding)
    table.load_columns(str(lake.file(source(range(100)))), "id", ["label"], engine="spark")
    assert values(table, "label") == {i: f"label {i}" for i in range(40) if i not in (2, 11)}


@on_spark_too
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("doing", ["joining", "writing"])
def test_a_load_that_is_stopped_is_resumed(doing: str, table: Table, lake: Lake) -> None:
    """In the join nothing is changed; in the tasks that write, no value is committed."""
    request = checked_request(str(lake.file(source(range(30)))), "id", ["label"], engine="spark")
    schema = table.schema

    def stop(now: Progress) -> None:
        if now.doing.startswith(doing):
            raise Interrupted("stopped")

    with closing(open_store(lake.root)) as store:
        opened = open_entry(store, lake.root, lake.open().opened.entry)
        with pytest.raises(Interrupted, match="stopped"):
            load_columns(opened, request, "monday", stop)
        assert (table.schema == schema) is (doing == "joining")
        assert doing == "joining" or set(values(table, "label").values()) == {None}
        load_columns(opened.refreshed(), request, "monday")
    assert values(table, "label") == {i: f"label {i}" for i in range(30)}


def test_the_engine_is_chosen_by_size(table: Table, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    from deployer.columns.load import engine_choice, load

    class Started(Exception):
        """Spark was asked for."""

    def start(_: Any) -> None:
        raise Started

    monkeypatch.setattr(load, "job_session", start)
    path = str(lake.file(source(range(30))))
    seen: list[tuple[str, str]] = []

    def run(engine: str) -> None:
        opened = open_entry(store, lake.root, lake.open().opened.entry)
        request = checked_request(path, "id", ["label"], engine=engine)
        load.load_columns(opened, request, f"job-{len(seen)}", on_engine=lambda *each: seen.append(each))

    with closing(open_store(lake.root)) as store:
        run("auto")
        for limit in ("SMALL_ROWS", "SMALL_BYTES", "SMALL_TABLE_ROWS"):
            with monkeypatch.context() as patch, pytest.raises(Started):
                patch.setattr(engine_choice, limit, 29)
                run("auto")
        with monkeypatch.context() as patch:
            patch.setattr(engine_choice, "SMALL_ROWS", 29)
            run("driver")
    assert [engine for engine, _ in seen] == ["driver", "spark", "spark", "spark", "driver"]
    assert "more than 29 rows" in seen[1][1] and "the table has 30 rows" in seen[3][1]
    assert values(table, "label")[3] == "label 3"


def test_values_that_arrive_in_any_order_are_given_in_order(lake: Lake) -> None:
    """Over several files, of which one has no rows, from any row on."""
    schema = pa.schema([("value", pa.list_(pa.int64()))])
    spool = SpooledColumns(lake.folder, schema, 1 << 20, carries=False)
    offsets = np.random.default_rng(3).permutation([i for i in range(5_000) if not 1_024 <= i < 2_048 and i % 7])
    for part in np.array_split(offsets, 9):
        given = pa.array([[int(i), 2] for i in part], schema.field(0).type)
        spool.add(pa.record_batch({OFFSET: pa.array(part, pa.int64()), "value": given}))
    spool.close()
    work = FragmentWork(0, 5_000, (), (None,))
    want = [[i, 2] if i in {*offsets.tolist()} else None for i in range(5_000)]
    for start, stop, size in ((0, 5_000, 1_000), (0, 5_000, 7), (1_500, 2_500, 300), (4_999, 5_000, 1)):
        batches = [*spool.of_fragment(None, work, range(start, stop), lambda size=size: size)]  # type: ignore[misc]
        assert pa.Table.from_batches(batches)["value"].to_pylist() == want[start:stop]
        assert max(each.num_rows for each in batches) <= size


KINDS: dict[str, pa.Array] = {
    "int64": pa.array(range(-500, 500)),
    "uint64": pa.array([2**64 - 1 - i for i in range(1_000)], pa.uint64()),
    "text": pa.array([f"k{i}" for i in range(1_000)]),
    "binary": pa.array([i.to_bytes(3, "big") for i in range(1_000)]),
    "fixed-size binary": pa.array([i.to_bytes(8, "big") for i in range(1_000)], pa.binary(8)),
    "uuid": pa.array([i.to_bytes(16, "big") for i in range(1_000)], pa.uuid()),
    "decimal": pc.cast(pa.array(range(1_000)), pa.decimal128(21, 2)),
    "dictionary": pa.array([f"k{i % 400}" for i in range(1_000)]).dictionary_encode(),
    "date": pa.array(range(1_000), pa.date32()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_equal_keys_are_in_one_bucket(kind: str) -> None:
    keys = KINDS[kind]
    one = key_buckets(comparable(pa.chunked_array([keys])), 16)
    parts = pa.chunked_array([keys.slice(0, 300), pa.nulls(2, keys.type), keys.slice(300)])
    other = key_buckets(comparable(parts), 16)
    assert one.tolist() == [*other[:300], *other[302:]]
    counts = np.bincount(one, minlength=16)
    assert len(counts) == 16 and counts.min() > 20  # of 62 each on average


def test_values_have_the_types_of_the_columns(lake: Lake) -> None:
    from deployer.columns.fill.work import Target
    from deployer.specs.types.types import Column, Scalar

    target = Target((Column("a", Scalar("int64"), nullable=False), Column("b", Scalar("string"))))
    assert values_schema(target) == pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert Path(lake.root).exists()
