"""Files of bad rows: whole rows with their reasons, which load once they are repaired."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.errors import Conflict, Interrupted, InvalidInput, Refused
from deployer.tables.ingest.request import IngestRequest
from deployer.tables.ingest.rows.bad_rows import BadRowLimit
from tests.tables.lakes import Lake

ENGINES = ["driver", pytest.param("spark", marks=pytest.mark.spark)]
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string()),
        pa.field("price", pa.decimal128(30, 20)),
        pa.field("ratio", pa.float64()),
        pa.field("ok", pa.bool_()),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("took", pa.duration("s")),
        pa.field("raw", pa.binary()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.struct([("x", pa.int32()), ("y", pa.decimal128(5, 2))])),
    ]
)
PRICE = Decimal("1.12345678901234567891")
GOOD: dict[str, Any] = {
    "name": "a,b\n\"c\" ü", "price": PRICE, "ratio": 0.1, "ok": True, "took": 5, "raw": b"raw",
    "tags": ["x", None], "place": {"x": 1, "y": Decimal("1.25")},
}  # fmt: skip


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def stored(lake: Lake) -> list[dict[str, Any]]:
    return sorted(lake.open().scan().to_table().to_pylist(), key=lambda row: int(row["id"]))


def source(lake: Lake, form: str) -> Path:
    """Two rows: one that fits, and one whose id is null."""
    if form == "csv":
        header = "id,name,price,ratio,ok,at,took,raw\n"
        row = f'"a,b\n""c"" ü",{PRICE},0.1,true,2024-01-02T03:04:05Z,5,raw\n'
        return lake.text("in.csv", f"{header}1,{row},{row}")
    if form == "json":
        fields = f'"ratio": 0.1, "price": {PRICE}, "ok": true, "at": "2024-01-02T03:04:05Z", "took": 5, "raw": "raw"'
        rest = f'"name": "a,b\\n\\"c\\" ü", {fields}, "tags": ["x", null], "place": {{"x": 1, "y": 1.25}}'
        return lake.text("in.jsonl", f'{{"id": 1, {rest}}}\n{{"id": null, {rest}}}\n')
    rows = [{"id": 1, **GOOD}, {"id": None, **GOOD}]
    schema = pa.schema([field.with_nullable(True) for field in SCHEMA])
    plain = {name: [row.get(name) for row in rows] for name in SCHEMA.names}
    plain["at"] = [1_704_164_645_000_000] * 2
    table = pa.table([pa.array(plain[field.name], field.type) for field in schema], schema=schema)
    return lake.file_arrow(table)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("form", ["csv", "json", "arrow"])
def test_a_bad_row_is_kept_whole_and_loads_once_repaired(form: str, engine: Any, lake: Lake, request: Any) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    lake.table(SCHEMA, ("id",), splits=())
    aside, path = lake.folder / "bad.jsonl", source(lake, form)
    assert lake.ingest(path, engine=engine, bad_rows=aside, missing_as_null=True).rows == 1
    (row,) = read(aside)
    assert row.pop("_bad") == [{"file": str(path), "row": 2, "column": "id", "reason": "is null, and it is a row key"}]
    assert row["id"] is None and row["name"] == GOOD["name"] and row["price"] == str(PRICE)
    repaired = write(aside, [{**read(aside)[0], "id": 2}])
    assert lake.ingest(repaired, engine=engine, missing_as_null=True).rows == 1
    first, second = stored(lake)
    assert {**first, "id": 2} == second and second["price"] == PRICE and second["took"].seconds == 5


def test_values_that_do_not_fit_are_kept_as_they_are(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    path = lake.text("in.csv", "id,name,ok,ratio\n007,a,1,1e3\nx,b,yes,1;5\n")
    lake.ingest(path, bad_rows=lake.folder / "bad.jsonl", missing_as_null=True)
    (row,) = read(lake.folder / "bad.jsonl")
    assert [reason["column"] for reason in row.pop("_bad")] == ["id", "ratio", "ok"]
    assert row == {"id": "x", "name": "b", "ok": "yes", "ratio": "1;5"}


def test_lines_without_fields_are_kept_as_text(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    csv = lake.text("in.csv", "id,name\n1,a\n2,b,c\n")
    json_lines = lake.text("in.jsonl", '{"id": 2}\n{oops\n[3]\n')
    assert lake.ingest(csv, json_lines, bad_rows=lake.folder / "bad.jsonl", missing_as_null=True).rows == 2
    found = [(reason["row"], reason["line"]) for row in read(lake.folder / "bad.jsonl") for reason in row["_bad"]]
    assert found == [(2, "2,b,c"), (2, "{oops"), (3, "[3]")]
    with pytest.raises(Refused, match="row 1: the row has only its reasons"):
        lake.ingest(lake.folder / "bad.jsonl", missing_as_null=True)
    again = lake.folder / "again.jsonl"
    with pytest.raises(InvalidInput, match="all 3 rows are bad"):
        lake.ingest(lake.folder / "bad.jsonl", bad_rows=again, missing_as_null=True)
    assert [row["_bad"][0]["line"] for row in read(again)] == ["2,b,c", "{oops", "[3]"]


def test_fields_that_were_to_be_ignored_are_not_kept(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    path = lake.text("in.jsonl", '{"id": 1, "more": {"a": 1}}\n{"id": null, "name": "b", "more": {"a": 1}}\n')
    lake.ingest(path, bad_rows=lake.folder / "bad.jsonl", ignore_extra=True, missing_as_null=True)
    (row,) = read(lake.folder / "bad.jsonl")
    assert row.keys() == {"id", "name", "_bad"}


def test_bytes_that_are_not_text_never_load_as_others(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    rows = pa.table({"id": pa.array([1, None], pa.int64()), "raw": pa.array([b"\xff", b"\xff"], pa.binary())})
    lake.ingest(lake.file(rows), bad_rows=lake.folder / "bad.jsonl", missing_as_null=True)
    (row,) = read(lake.folder / "bad.jsonl")
    assert row["raw"] == {"base64": "/w=="}
    with pytest.raises(Refused, match="column 'raw'"):
        lake.ingest(write(lake.folder / "fixed.jsonl", [{**row, "id": 2}]), missing_as_null=True)


@pytest.mark.parametrize("name", ["bad.jsonl", "bad.parquet"])
def test_a_file_that_is_there_is_not_replaced(name: str, lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    path = lake.text("in.csv", "id\n1\nx\n")
    lake.ingest(path, bad_rows=lake.folder / name, missing_as_null=True)
    before = (lake.folder / name).read_bytes()
    with pytest.raises(InvalidInput, match=r"exists already.*another name"):
        lake.ingest(path, bad_rows=lake.folder / name, missing_as_null=True)
    assert (lake.folder / name).read_bytes() == before and lake.open().count() == 1


def test_a_load_that_is_repeated_finds_its_own_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    path, other = lake.text("in.csv", "id\n1\nx\n"), lake.text("other.csv", "id\n1\ny\n")
    aside = lake.folder / "bad.jsonl"

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(Interrupted):
        patched.setattr("deployer.tables.ingest.attempt.commit_append", killed)
        lake.ingest(path, bad_rows=aside, job_id="daily", missing_as_null=True)
    with pytest.raises(InvalidInput, match="exists already"):
        lake.ingest(other, bad_rows=aside, job_id="daily", missing_as_null=True)
    assert lake.ingest(path, bad_rows=aside, job_id="daily", missing_as_null=True).rows == 1
    assert lake.ingest(path, bad_rows=aside, job_id="daily", missing_as_null=True).already_done


def test_a_load_that_lost_a_race_leaves_no_file(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table(SCHEMA, ("id",), splits=())

    def lost(*_: object, **__: object) -> None:
        raise Conflict("the table was changed")

    monkeypatch.setattr("deployer.tables.ingest.attempt.commit_append", lost)
    with pytest.raises(Conflict):
        lake.ingest(lake.text("in.csv", "id\n1\nx\n"), bad_rows=lake.folder / "bad.jsonl", missing_as_null=True)
    assert not (lake.folder / "bad.jsonl").exists()


def test_a_load_without_bad_rows_writes_no_file(lake: Lake) -> None:
    lake.table(SCHEMA, ("id",), splits=())
    lake.ingest(lake.text("in.csv", "id\n1\n"), bad_rows=lake.folder / "bad.jsonl", missing_as_null=True)
    assert not (lake.folder / "bad.jsonl").exists()


def test_a_table_with_the_field_of_the_reasons(lake: Lake) -> None:
    lake.table(pa.schema([pa.field("id", pa.int64()), pa.field("_bad", pa.string())]), ())
    path = lake.text("in.jsonl", '{"id": 1, "_bad": "a"}\n{"id": "x", "_bad": "b"}\n')
    with pytest.raises(InvalidInput, match=r"has a column '_bad'.*\.parquet"):
        lake.ingest(path, bad_rows=lake.folder / "bad.jsonl", missing_as_null=True)
    assert lake.ingest(path, bad_rows=lake.folder / "bad.parquet", missing_as_null=True).rows == 1
    assert lake.open().scan().to_table()["_bad"].to_pylist() == ["a"]
    (row,) = pq.read_table(lake.folder / "bad.parquet").to_pylist()
    assert json.loads(row["source"]) == {"id": "x", "_bad": "b"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("bad", "limit", "loaded"),
    [(3, "3", True), (3, "2", False), (3, "30%", True), (3, "29.9%", False), (1, "0", False), (10, None, False)],
)
def test_a_load_ends_with_too_many_bad_rows(
    bad: int, limit: str | None, loaded: bool, engine: Any, lake: Lake, request: Any
) -> None:
    """All rows are too many without a limit, too. The file is written so that its user can look at the rows."""
    if engine == "spark":
        request.getfixturevalue("spark")
    lake.table(SCHEMA, ("id",), splits=())
    before = lake.data_files()
    path = lake.text("in.csv", "id\n" + "x\n" * bad + "".join(f"{i}\n" for i in range(10 - bad)))
    options: dict[str, Any] = {
        "bad_rows": lake.folder / "bad.jsonl",
        "max_bad_rows": BadRowLimit.parse(limit) if limit else None,
    }
    if loaded:
        assert lake.ingest(path, engine=engine, **options, missing_as_null=True).rows == 10 - bad
    else:
        with pytest.raises(InvalidInput) as raised:
            lake.ingest(path, engine=engine, **options, missing_as_null=True)
        what = (
            "all 10 rows are bad" if limit is None else f"{bad} of 10 rows are bad, which is more than --max-bad-rows"
        )
        assert what in str(raised.value) and "row 1: column 'id' 'x' does not fit int64" in str(raised.value)
        assert lake.open().count() == 0 and lake.data_files() == before
    assert len(read(lake.folder / "bad.jsonl")) == bad


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "101%", "5 %%", "1e3", "nan%"])
def test_limits_that_are_none(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"write 100, or 5%"):
        BadRowLimit.parse(text)


def test_a_limit_needs_a_file() -> None:
    with pytest.raises(InvalidInput, match="--max-bad-rows is given without --bad-rows"):
        IngestRequest(("a.csv",), max_bad_rows=BadRowLimit(1))
