"""What is said of rows that cannot be loaded, and where they go when they are set aside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.errors import InvalidInput, Refused
from deployer.tables.ingest.files.model import ReadOptions
from tests.tables.lakes import Lake

GOLDEN = Path(__file__).parent / "golden"
ENGINES = ["driver", pytest.param("spark", marks=pytest.mark.spark)]
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int32(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("at", pa.timestamp("s", "UTC")),
        pa.field("local", pa.timestamp("s")),
        pa.field("day", pa.date32()),
        pa.field("price", pa.decimal128(5, 2)),
        pa.field("ok", pa.bool_()),
        pa.field("ratio", pa.float32()),
        pa.field("time", pa.time32("s")),
        pa.field("took", pa.duration("s")),
        pa.field("code", pa.binary(2)),
        pa.field("uid", pa.uuid()),
        pa.field("doc", pa.json_()),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
    ]
)
GOOD = '1,a,2020-01-01T00:00:00Z,2020-01-01 00:00:00,2020-01-01,1.25,true,0.5,10:11:12,5,ab,{uid},"{{""a"": 1}}",x'
UID = "12345678-1234-5678-1234-567812345678"
CSV = {
    "types": [
        GOOD.format(uid=UID),
        "x,b" + "," * 12,
        "3000000000,b" + "," * 12,
        "2,," + "," * 11,
        ",b" + "," * 12,
        "3,b,2020-01-01T00:00:00" + "," * 11,
        "4,b,,2020-01-01T00:00:00Z" + "," * 10,
        "5,b,,,01/02/2020" + "," * 9,
        "6,b,,,,1.255" + "," * 8,
        "7,b,,,,1000.00" + "," * 8,
        "8,b,,,,,yes" + "," * 7,
        "9,b,,,,,,NA" + "," * 6,
        "10,b,,,,,,,25:00:00" + "," * 5,
        "11,b,,,,,,,,1.5" + "," * 4,
        "12,b,,,,,,,,,abc" + "," * 3,
        "13,b,,,,,,,,,,no-uuid,,",
        "14,b,,,,,,,,,,,{,",
        "15,b",
        " 16 ,b,2020-01-01T02:00:00+02:00" + "," * 11,
        GOOD.format(uid=UID),
    ],
    "one": ["x,b" + "," * 12],
    "nulls": ["1,b,NULL" + "," * 11],
}


def write_csv(lake: Lake, name: str) -> Path:
    return lake.text("in.csv", ",".join(SCHEMA.names) + "\n" + "\n".join(CSV[name]) + "\n")


def golden(name: str, text: str) -> None:
    """Compares with the golden file; one that is not there is written, and the test fails once so that it is read."""
    path = GOLDEN / f"{name}.txt"
    if not path.exists():
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path} was written: read it, then run again")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CSV)
def test_refusals_say_which_rows_and_why(name: str, engine: Any, lake: Lake, request: Any) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    lake.table(SCHEMA, ("id",), splits=((10,),))
    with pytest.raises(Refused) as raised:
        lake.ingest(write_csv(lake, name), engine=engine)
    golden(f"refused-{name}", str(raised.value).replace(str(lake.folder), "FOLDER") + "\n")
    assert lake.open().count() == 0 and lake.open().opened.state.lance_version == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_bad_rows_are_set_aside_and_the_others_loaded(engine: Any, lake: Lake, request: Any) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    lake.table(SCHEMA, ("id",), splits=((10,),))
    aside = lake.folder / "bad.jsonl"
    result = lake.ingest(write_csv(lake, "types"), engine=engine, bad_rows=aside)
    assert (result.rows, result.bad_rows) == (3, 17)
    assert sorted(lake.open().scan(columns=["id"]).to_table()["id"].to_pylist()) == [1, 1, 16]
    golden("set-aside", aside.read_text(encoding="utf-8").replace(str(lake.folder), "FOLDER"))


def reasons(aside: Path) -> list[dict[str, Any]]:
    return [reason for line in aside.read_text(encoding="utf-8").splitlines() for reason in json.loads(line)["_bad"]]


def test_bad_rows_as_parquet(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    aside = lake.folder / "bad.parquet"
    with pytest.raises(InvalidInput, match="the only row is bad"):
        lake.ingest(write_csv(lake, "one"), bad_rows=aside)
    (found,) = pq.read_table(aside).to_pylist()
    source = json.loads(found.pop("source"))
    assert found == {"file": str(lake.folder / "in.csv"), "row": 1, "column": "id", "reason": "does not fit int32"}
    assert (source["id"], source["name"], source["ratio"]) == ("x", "b", None)


def test_the_usual_null_can_be_given(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    assert lake.ingest(write_csv(lake, "nulls"), options=ReadOptions(("", "NULL"))).rows == 1


def test_json_lines(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    lines = [
        '{"id": 1, "name": "a"}',
        "",
        '{"id": 2}',
        "{oops",
        "[1]",
        '{"id": "4", "name": "a"}',
        '{"id": 5, "name": "b"}',
    ]
    aside = lake.folder / "bad.jsonl"
    path = lake.text("in.jsonl", "\n".join(lines))
    assert lake.ingest(path, bad_rows=aside, missing_as_null=True).rows == 2
    found = reasons(aside)
    assert [(each["row"], each["column"]) for each in found] == [(2, "name"), (3, ""), (4, ""), (5, "id")]


@pytest.mark.parametrize(
    ("target", "values", "fitting"),
    [
        (pa.int8(), pa.array([1, 127, 128, -129]), [1, 127]),
        (pa.uint64(), pa.array([1, -1]), [1]),
        (pa.int32(), pa.array([1.0, 1.5, float("nan")]), [1]),
        (pa.float32(), pa.array([0.5, 0.1]), [0.5]),
        (pa.float32(), pa.array([1, 2**24 + 1]), [1.0]),
        (pa.float64(), pa.array([2**53, 2**53 + 1]), [2.0**53]),
        (pa.timestamp("s"), pa.array([10**6, 1], pa.timestamp("us")), [1]),
        (pa.date32(), pa.array([86_400, 1], pa.timestamp("s")), [1]),
        (pa.decimal128(4, 1), pa.array([1, 1000]), [1]),
        (pa.list_(pa.int8()), pa.array([[1], [1000], None]), [[1], None]),
    ],
    ids=str,
)
def test_typed_values_convert_only_without_loss(target: Any, values: Any, fitting: list[Any], lake: Lake) -> None:
    schema = pa.schema([pa.field("value", target)])
    lake.table(schema, ())
    path = lake.file(pa.table({"value": values}))
    result = lake.ingest(path, bad_rows=lake.folder / "bad.jsonl")
    assert result.rows + result.bad_rows == len(values)
    assert lake.open().scan().to_table()["value"].to_pylist() == pa.array(fitting, target).to_pylist()


def test_nulls_inside_nested_values_are_found(lake: Lake) -> None:
    inner = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    schema = pa.schema([pa.field("s", inner), pa.field("l", pa.list_(pa.field("item", pa.string(), nullable=False)))])
    lake.table(schema, ())
    rows = pa.table(
        {
            "s": pa.array([{"a": 1}, {"a": None}, None, {"a": 2}], pa.struct([("a", pa.int32())])),
            "l": [["x"], ["x"], None, ["x", None]],
        }
    )
    aside = lake.folder / "bad.jsonl"
    assert lake.ingest(lake.file(rows), bad_rows=aside).rows == 2
    found = reasons(aside)
    assert [(each["row"], each["column"]) for each in found] == [(2, "s"), (4, "l")]


def test_rows_are_numbered_within_a_file_of_many_splits(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deployer.tables.ingest.files.find.SPLIT_BYTES", 100)
    lake.table(SCHEMA, ("id",), splits=())
    rows = [f"{'x' if i in (7, 99, 150) else i},n{',' * 12}" for i in range(1, 201)]
    aside = lake.folder / "bad.jsonl"
    lake.ingest(lake.text("in.csv", ",".join(SCHEMA.names) + "\n" + "\n".join(rows) + "\n"), bad_rows=aside)
    assert [each["row"] for each in reasons(aside)] == [7, 99, 150]


def test_bad_rows_need_a_place_that_can_be_written(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    lake.text("file", "")
    with pytest.raises(InvalidInput, match="bad rows cannot be written"):
        lake.ingest(write_csv(lake, "one"), bad_rows=lake.folder / "file" / "bad.jsonl")
