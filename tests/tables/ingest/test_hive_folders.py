"""Files in folders named `column=value`: the folders' columns are read, typed and decoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from deployer.errors import DeployerError, InvalidInput, Refused
from deployer.specs.types.types import format_type
from deployer.tables.importing.infer import infer
from deployer.tables.ingest.files.find import find_sources
from deployer.tables.ingest.files.folder_names import folder_values, folders_of
from deployer.tables.ingest.files.model import ReadOptions
from tests.tables.ingest.test_ingest import ENGINES, engine
from tests.tables.lakes import Lake

__all__ = ["engine"]

SALES = pa.schema([pa.field("id", pa.int64(), False), pa.field("day", pa.string())])


def write(path: Path, ids: list[int]) -> Path:
    """A file of one column `id`, in the format of its suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.table({"id": ids}), path)
        case ".csv":
            pa_csv.write_csv(pa.table({"id": ids}), path)
        case ".jsonl":
            path.write_text("".join(json.dumps({"id": each}) + "\n" for each in ids), encoding="utf-8")
    return path


def rows(lake: Lake, table: str = "sales") -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in lake.open(table).scan().to_table().to_pylist()), key=repr)


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("row_keys", [("id",), ()], ids=["keys", "no-keys"])
def test_each_row_has_the_values_of_its_folders(form: str, engine: Any, row_keys: tuple[str, ...], lake: Lake) -> None:
    lake.table(SALES, row_keys, splits=(), name="sales")
    for day, ids in (("mon", [1, 2]), ("a%2Fb %C3%BC", [3]), ("__HIVE_DEFAULT_PARTITION__", [4])):
        write(lake.folder / "sales" / f"day={day}" / f"part.{form}", ids)
    assert lake.ingest(lake.folder / "sales", table="sales", engine=engine).rows == 4
    assert rows(lake) == [(1, "mon"), (2, "mon"), (3, "a/b ü"), (4, None)]


def test_values_have_the_declared_types(lake: Lake) -> None:
    fields = {
        "id": pa.int64(),
        "day": pa.date32(),
        "hour": pa.int8(),
        "price": pa.decimal128(8, 2),
        "at": pa.timestamp("us", "UTC"),
        "flag": pa.bool_(),
        "kind": pa.dictionary(pa.int32(), pa.string()),
    }
    lake.table(pa.schema([pa.field(name, kind) for name, kind in fields.items()]), (), name="sales")
    folders = "day=2024-02-29/hour=7/price=1.50/at=2024-01-01T10%3A00%3A00Z/flag=true/kind=x"
    write(lake.folder / "sales" / folders / "part.parquet", [1])
    lake.ingest(lake.folder / "sales", table="sales")
    found = lake.open("sales").scan().to_table().cast(pa.schema([(name, pa.string()) for name in fields]))
    assert list(found.to_pylist()[0].values()) == [
        "1", "2024-02-29", "7", "1.50", "2024-01-01 10:00:00.000000Z", "true", "x",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "given", "columns"),
    [
        ("lake/sales/y=1/m=2/a.csv", "lake/sales", {"y": "1", "m": "2"}),
        ("lake/sales/y=1/part/m=2/a.csv", "lake/sales", {"y": "1", "m": "2"}),
        ("lake/sales/y=1/m=2/a.csv", "lake/sales/y=1/m=2/a.csv", {"y": "1", "m": "2"}),
        ("lake/sales/y=1/m=2/a.csv", "lake/sales/y=1", {"y": "1", "m": "2"}),
        ("env=x/sales/y=1/a.csv", "env=x/sales/y=1/a.csv", {"y": "1"}),
        ("lake/sales/y=1/part/a.csv", "lake/sales/y=*/part/*.csv", {"y": "1"}),
        ("lake/sales/y=1/a.csv", "lake/sales/y=1/*.csv", {"y": "1"}),
        ("s3://b/sales/y=1/a.csv", "s3://b/sales/", {"y": "1"}),
        ("s3://b/sales/y=1/a.csv", "s3://b/**/*.csv", {"y": "1"}),
        ("lake/sales/y=/=x/a=b.csv", "lake", {"y": ""}),
        ("lake/sales/y=a=b/a.csv", "lake", {"y": "a=b"}),
        ("lake/sales/my%20day=1%252/a.csv", "lake", {"my day": "1%2"}),
        ("lake/sales/y=1/x.lance", "lake", {"y": "1"}),
    ],
)
def test_which_folders_count(path: str, given: str, columns: dict[str, str]) -> None:
    found = folder_values(path, given)
    assert dict(found) == columns
    assert folder_values("/".join(("s3://b", *folders_of(found), "a.csv")), "s3://b") == found


def test_the_working_directory_may_be_such_a_folder(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.table(SALES, ("id",), splits=(), name="sales")
    monkeypatch.chdir(write(lake.folder / "sales" / "day=mon" / "part.csv", [1]).parent)
    lake.ingest("part.csv", table="sales")
    lake.ingest(".", table="sales")
    assert rows(lake) == [(1, "mon"), (1, "mon")]


def test_a_folder_of_a_column_with_a_leading_underscore_is_not_hidden(tmp_path: Path) -> None:
    path = write(tmp_path / "sales" / "_day=mon" / "part.csv", [1])
    write(tmp_path / "sales" / "_day=mon" / "_aside.csv", [1])
    assert [source.path for source in find_sources([str(tmp_path / "sales")], None)] == [str(path)]


@pytest.mark.parametrize(
    ("files", "error", "said"),
    [
        (
            ["y=1/a.csv", "b.csv"],
            InvalidInput,
            "in/y=1/a.csv: its folders give column 'y', and those of {folder}/in/b.csv give no column",
        ),
        (["y=1/a.csv", "m=1/b.csv"], InvalidInput, "give column 'y', and those of"),
        (["y=1/y=2/a.csv"], InvalidInput, "two folders name column 'y'"),
        (["y=%FF/a.csv"], InvalidInput, "the name of folder 'y=%FF' is not UTF-8"),
        (["y=1/a.csv"], InvalidInput, "the table has no column 'y'"),
        (["day=monday/a.csv"], InvalidInput, "its folder says day=monday, which does not fit date32"),
        (["tags=x/day=2024-01-01/a.csv"], InvalidInput, "its folder says tags=x, which does not fit list<string>"),
        (["id=__HIVE_DEFAULT_PARTITION__/day=2024-01-01/a.csv"], InvalidInput, "has the value 1, and its folder says"),
    ],
)
def test_folders_that_cannot_be_read(files: list[str], error: type[DeployerError], said: str, lake: Lake) -> None:
    schema = pa.schema(
        [pa.field("id", pa.int64(), False), pa.field("day", pa.date32()), pa.field("tags", pa.list_(pa.string()))]
    )
    lake.table(schema, ("id",), splits=(), name="sales")
    for file in files:
        write(lake.folder / "in" / file, [1])
    with pytest.raises(error) as raised:
        lake.ingest(lake.folder / "in", table="sales", missing_as_null=True)
    assert said.format(folder=lake.folder) in str(raised.value)
    assert lake.open("sales").count() == 0


def test_a_null_folder_is_no_value_of_a_row_key(lake: Lake) -> None:
    lake.table(pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.string(), False)]), ("day",), (), (), "sales")
    write(lake.folder / "sales" / "day=__HIVE_DEFAULT_PARTITION__" / "part.csv", [1])
    with pytest.raises(Refused, match="column 'day' is null, and it is a row key"):
        lake.ingest(lake.folder / "sales", table="sales")


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_a_column_of_the_file_agrees_with_its_folder_or_is_an_error(form: str, lake: Lake) -> None:
    lake.table(SALES, ("id",), splits=(), name="sales")
    write(lake.folder / "ok" / "id=1" / "day=mon" / f"a.{form}", [1, 1])
    lake.ingest(lake.folder / "ok", table="sales")
    write(lake.folder / "bad" / "id=1" / "day=mon" / f"a.{form}", [1, 2])
    with pytest.raises(InvalidInput, match="column 'id' in the file has the value 2, and its folder says 1"):
        lake.ingest(lake.folder / "bad", table="sales")
    assert rows(lake) == [(1, "mon"), (1, "mon")]


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "20"], "int64"),
        (["1", "__HIVE_DEFAULT_PARTITION__"], "int64?"),
        (["2024-01-01", "2024-02-29"], "date32"),
        (["2024-01-01", "x"], "string"),
        (["01", "02"], "string"),
        (["1.5"], "string"),
        (["__HIVE_DEFAULT_PARTITION__"], "string?"),
    ],
)
def test_the_type_is_inferred_from_all_folders(form: str, values: list[str], expected: str, tmp_path: Path) -> None:
    for value in values:
        write(tmp_path / f"v={value}" / f"part.{form}", [1])
    columns = infer([str(tmp_path)], None, ReadOptions()).columns
    assert [column.name for column in columns] == ["id", "v"]
    assert format_type(columns[1].type) + ("?" if columns[1].nullable else "") == expected


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_a_column_that_nothing_has_is_an_error(form: str, engine: Any, lake: Lake) -> None:
    schema = SALES.append(pa.field("note", pa.string())).append(pa.field("more", pa.int32()))
    lake.table(schema, (), name="sales")
    path = write(lake.folder / "day=mon" / f"a.{form}", [1])
    with pytest.raises(InvalidInput, match="no file and no folder has columns 'note', 'more'"):
        lake.ingest(path, table="sales", engine=engine)
    assert lake.open("sales").count() == 0
    assert not lake.data_files("sales")
    lake.ingest(path, table="sales", engine=engine, missing_as_null=True)
    assert rows(lake) == [(1, "mon", None, None)]


def test_a_field_that_only_late_json_rows_have_is_found(lake: Lake) -> None:
    lake.table(SALES, (), name="sales")
    lines = [*('{"id": 1}' for _ in range(2000)), '{"id": 2, "day": "mon"}']
    assert lake.ingest(lake.text("a.jsonl", "\n".join(lines)), table="sales").rows == 2001


def test_a_column_that_one_of_the_files_has_is_null_in_the_others(lake: Lake) -> None:
    lake.table(SALES, (), name="sales")
    lake.ingest(lake.text("a.csv", "id\n1\n"), lake.text("b.csv", "id,day\n2,mon\n"), table="sales")
    assert rows(lake) == [(1, None), (2, "mon")]
