"""What a load adds to a table, from every kind of source, and where it puts it."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from deployer.errors import DeployerError, InvalidInput, NotFound
from deployer.state.model.keys import decode_key
from deployer.tables.ingest.files.model import Format, ReadOptions
from tests.tables.lakes import FLIGHTS, Lake, flights, sorted_rows

ENGINES = ["driver", pytest.param("spark", marks=pytest.mark.spark)]


@pytest.fixture
def engine(request: Any) -> Any:
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param


def write(lake: Lake, form: str) -> tuple[Path, pa.Table]:
    """120 rows in a form of source, and the rows."""
    rows = flights(120)
    path = lake.folder / f"source.{form}"
    match form:
        case "parquet":
            return lake.file(rows, "source.parquet"), rows
        case "csv" | "tsv":
            pa_csv.write_csv(rows, path, pa_csv.WriteOptions(delimiter="," if form == "csv" else "\t"))
        case "csv.gz":
            pa_csv.write_csv(rows, lake.folder / "plain")
            path.write_bytes(gzip.compress((lake.folder / "plain").read_bytes()))
        case "jsonl":
            from deployer.tables.read.export import write_json_lines

            with path.open("w", encoding="utf-8") as sink:
                write_json_lines(iter(rows.to_batches()), sink)
        case "arrow":
            with pa.ipc.new_file(str(path), rows.schema) as file:
                file.write_table(rows, 50)
        case "arrows":
            with pa.ipc.new_stream(str(path), rows.schema) as stream:
                stream.write_table(rows, 50)
        case "lance":
            lance.write_dataset(rows, str(path), max_rows_per_file=50)
    return path, rows


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("form", ["parquet", "csv", "tsv", "csv.gz", "jsonl", "arrow", "arrows", "lance"])
def test_every_form_of_source(form: str, engine: Any, lake: Lake) -> None:
    lake.table()
    path, rows = write(lake, form)
    result = lake.ingest(path, engine=engine)
    assert result.rows == 120
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(rows)


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_rows_are_in_their_leaves_sorted_with_true_ranges(engine: Any, lake: Lake) -> None:
    table = lake.table(sort_keys=("delay",))
    lake.ingest(lake.file(flights(1000)), engine=engine)
    table.refresh()
    leaves = table.opened.state.leaves()
    dataset = table.opened.dataset()
    seen = 0
    for leaf in leaves:
        for file in table.opened.state.files.for_partition(leaf.partition_id):
            rows = dataset.get_fragment(file.fragment_id).to_table()
            keys = [(row["carrier"], row["flight"]) for row in rows.to_pylist()]
            order = [
                (*key, row["delay"] is None, row["delay"] or 0) for key, row in zip(keys, rows.to_pylist(), strict=True)
            ]
            assert order == sorted(order) and file.sorted
            assert file.rows == len(keys) and file.bytes > 0
            assert file.min_key is not None and file.max_key is not None
            kinds = table.opened.kinds
            assert (decode_key(kinds, file.min_key), decode_key(kinds, file.max_key)) == (keys[0], keys[-1])
            assert leaf.holds(file.min_key) and leaf.holds(file.max_key)
            seen += len(keys)
    assert seen == table.count() == 1000
    assert len(leaves) == 4


def test_folders_and_globs_take_each_file_once(lake: Lake) -> None:
    lake.table()
    (lake.folder / "in" / "deep").mkdir(parents=True)
    for i, name in enumerate(("in/b.parquet", "in/deep/a.parquet", "in/_hidden.parquet", "in/.x.parquet")):
        lake.file(flights(10, 10 * i), name)
    lake.text("in/notes.txt", "no data")
    result = lake.ingest(lake.folder / "in", lake.folder / "in" / "*.parquet")
    assert result.rows == 30  # the glob names _hidden.parquet, which the folder leaves out


def test_missing_nullable_columns_become_null_when_asked(lake: Lake) -> None:
    lake.table()
    lake.ingest(lake.file(flights(5).select(["flight", "carrier"])), missing_as_null=True)
    assert lake.open().scan(columns=["delay", "price"]).to_table().to_pylist() == [{"delay": None, "price": None}] * 5


def test_integers_narrow_when_they_fit(lake: Lake) -> None:
    lake.table()
    wide = flights(5).cast(FLIGHTS.set(2, pa.field("delay", pa.int64())).set(1, pa.field("flight", pa.uint64())))
    assert lake.ingest(lake.file(wide)).rows == 5
    assert lake.open().scan().to_table().schema.field("delay").type == pa.int16()


def test_instants_keep_their_moment(lake: Lake) -> None:
    lake.table()
    path = lake.text(
        "a.csv",
        "carrier,flight,at\nAA,1,2013-05-01T12:00:00Z\nAA,2,2013-05-01 14:00:00+02:00\nAA,3,2013-05-01T08:00-0400\n",
    )
    lake.ingest(path, missing_as_null=True)
    moments = lake.open().scan(columns=["at"]).to_table()["at"].cast(pa.int64()).to_pylist()
    assert moments == [1_367_409_600_000_000] * 3


def test_null_values_and_quotes(lake: Lake) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), False), pa.field("text", pa.string())])
    lake.table(schema, ("id",), splits=())
    lake.ingest(
        lake.text("a.csv", 'id,text\n1,\n2,""\n3,NA\n4,"NA"\n5,"a\nb, ""c"""\n'), options=ReadOptions(("", "NA"))
    )
    found = lake.open().scan().to_table()["text"].to_pylist()
    assert found == [None, "", None, "NA", 'a\nb, "c"']


def test_formats_can_be_named(lake: Lake) -> None:
    lake.table()
    path = lake.text("data.txt", "carrier;flight\nAA;7\n")
    result = lake.ingest(path, format=Format.CSV, options=ReadOptions(delimiter=";"), missing_as_null=True)
    assert result.rows == 1


@pytest.mark.parametrize(
    ("name", "content", "error", "says"),
    [
        ("a.csv", "carier,flight\nAA,1\n", InvalidInput, "the table has no column 'carier' (did you mean 'carrier'?)"),
        ("a.csv", "carier,flight\nAA,1\n", InvalidInput, "column 'carrier' is missing, and the table needs it"),
        ("a.csv", "", InvalidInput, "the file is empty"),
        ("a.csv", "\n", InvalidInput, "there is no header line"),
        ("a.csv", "carrier,flight,flight\nAA,1,1\n", InvalidInput, "the table has no column 'flight.1'"),
        ("a.parquet", "no parquet", InvalidInput, "it cannot be read as parquet"),
        ("a.arrow", "no arrow", InvalidInput, "it cannot be read as arrow"),
        ("a.jsonl", '{"carrier": "AA", "flight": 1, "dely": 3}\n', InvalidInput, "(did you mean 'delay'?)"),
        ("a.bin", "x", InvalidInput, "the name does not show the format"),
        ("a.csv.zip", "x", InvalidInput, "zip archives are not read"),
        ("a.parquet.gz", "x", InvalidInput, "a compressed parquet file is not read"),
    ],
)
def test_sources_that_do_not_fit(name: str, content: str, error: type[DeployerError], says: str, lake: Lake) -> None:
    lake.table()
    with pytest.raises(error) as raised:
        lake.ingest(lake.text(name, content))
    assert says in str(raised.value)
    assert lake.open().opened.state.lance_version == 1


def test_columns_of_other_types_are_refused_together(lake: Lake) -> None:
    lake.table()
    rows = pa.table({"carrier": [1], "flight": ["1"], "at": pa.array([0], pa.timestamp("us")), "delay": [1]})
    with pytest.raises(InvalidInput) as raised:
        lake.ingest(lake.file(rows))
    assert all(f"column {name!r} is" in raised.value.what for name in ("carrier", "flight", "at"))
    assert "column 'delay'" not in raised.value.what


def test_nothing_named_is_nothing_found(lake: Lake) -> None:
    lake.table()
    with pytest.raises(NotFound, match="no such file"):
        lake.ingest(lake.folder / "nowhere.csv")
    with pytest.raises(NotFound, match="did you mean 'flights'"):
        lake.ingest(lake.folder / "nowhere.csv", table="flghts")


def test_extra_columns_can_be_left_out(lake: Lake) -> None:
    lake.table()
    path = lake.text("a.csv", "flight,more,carrier\n1,x,AA\n")
    assert lake.ingest(path, ignore_extra=True, missing_as_null=True).rows == 1


def test_the_same_job_adds_nothing_again(lake: Lake) -> None:
    lake.table()
    path = lake.file(flights(10))
    first = lake.ingest(path, job_id="load-1")
    again = lake.ingest(path, job_id="load-1")
    assert (first.already_done, again.already_done, again.rows) == (False, True, 0)
    assert again.lance_version == first.lance_version
    assert lake.open().count() == 10


def test_auto_says_which_way_and_why(lake: Lake) -> None:
    lake.table()
    result = lake.ingest(lake.file(flights(10)), engine="auto")
    assert result.engine == "driver" and "Spark takes longer to start" in result.reason


@pytest.mark.spark
def test_large_leaves_are_cut_among_tasks(lake: Lake, spark: object, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table()
    monkeypatch.setattr("deployer.tables.ingest.engine_choice.TASK_ROWS", 300)
    result = lake.ingest(lake.file(flights(2000)), engine="spark")
    table = lake.open()
    assert result.files > 4 and table.count() == 2000
    files = sorted(table.opened.state.files, key=lambda file: file.min_key or b"")
    assert all((one.max_key or b"") <= (other.min_key or b"") for one, other in pairwise(files))
    assert sorted_rows(table.scan().to_table()) == sorted_rows(flights(2000))


@pytest.mark.parametrize("row_keys", [(), ("id",)], ids=["keyless", "keyed"])
def test_structs_in_structs_are_written_from_parts_of_batches(row_keys: tuple[str, ...], lake: Lake) -> None:
    kind = pa.struct([("inner", pa.struct([("a", pa.float32())]))])
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("x", kind)])
    lake.table(schema, row_keys, splits=((1,), (2,), (5,)))
    rows = pa.table([pa.array(range(7)), pa.array([{"inner": {"a": float(i)}} for i in range(7)], kind)], schema=schema)
    lake.ingest(lake.file_arrow(rows))
    assert sorted_rows(lake.open().scan().to_table()) == sorted_rows(rows)
