"""Fields of files that fill columns of other names: `source:`, `--rename` and `--select`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deployer.errors import InvalidInput, Refused
from deployer.specs.model import TableSpec
from deployer.specs.types.parser import parse_type
from deployer.specs.types.types import Column
from deployer.tables.admin.tables import create_table
from deployer.tables.ingest.rows.field_map import rename_of
from deployer.tables.ingest.rows.selects import select_of
from tests.tables.lakes import Lake

ENGINES = ["driver", pytest.param("spark", marks=pytest.mark.spark)]


def column(name: str, kind: str, source: str | None = None, *, nullable: bool = True, default: str = "") -> Column:
    return Column(name, parse_type(kind), nullable, source=source, default=default)


ID = column("id", "int64", nullable=False)
AMOUNT = column("total_amount", "float64", "Total Amount")


def make(lake: Lake, *columns: Column, keys: tuple[str, ...] = ()) -> None:
    create_table(lake.store, lake.root, TableSpec("air", "flights", columns, keys), "tests/dev")


def stored(lake: Lake) -> list[dict[str, Any]]:
    return sorted(lake.open().scan().to_table().to_pylist(), key=lambda row: str(row["id"]))


def renames(*texts: str) -> tuple[tuple[str, str], ...]:
    return tuple(map(rename_of, texts))


def selects(*texts: str) -> tuple[Any, ...]:
    return tuple(map(select_of, texts))


def file_of(lake: Lake, form: str, rows: list[dict[str, Any]]) -> Path:
    """The rows as a file of any format."""
    table = pa.Table.from_pylist(rows)
    path = lake.folder / f"in.{form}"
    match form:
        case "csv":
            lines = [table.column_names, *(["" if v is None else str(v) for v in row.values()] for row in rows)]
            path.write_text("".join(",".join(line) + "\n" for line in lines), encoding="utf-8")
        case "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        case "json":
            path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
        case "parquet":
            pq.write_table(table, path)
        case "arrow":
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table)
        case "lance":
            lance.write_dataset(table, str(path))
    return path


FORMATS = ["csv", "jsonl", "json", "parquet", "arrow", "lance"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", ["Total Amount", "total_amount"])
def test_a_field_fills_the_column_whose_source_or_name_it_has(form: str, name: str, lake: Lake) -> None:
    make(lake, ID, AMOUNT)
    lake.ingest(file_of(lake, form, [{name: 1.5, "id": 1}, {name: None, "id": 2}]))
    assert stored(lake) == [{"id": 1, "total_amount": 1.5}, {"id": 2, "total_amount": None}]


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "lance"])
def test_a_file_with_both_names_is_refused(form: str, lake: Lake) -> None:
    make(lake, ID, AMOUNT)
    with pytest.raises(InvalidInput, match="fields 'Total Amount' and 'total_amount' both fill column 'total_amount'"):
        lake.ingest(file_of(lake, form, [{"id": 1, "Total Amount": 1.5, "total_amount": 2.5}]))


def test_rows_of_json_have_either_name_but_not_values_in_both(lake: Lake) -> None:
    make(lake, ID, AMOUNT)
    either: list[dict[str, Any]] = [
        {"id": 1, "Total Amount": 1.5},
        {"id": 2, "total_amount": 2.5},
        {"id": 3, "Total Amount": None},
    ]
    lake.ingest(file_of(lake, "jsonl", [*either, {"id": 4, "Total Amount": None, "total_amount": 4.5}]))
    assert [row["total_amount"] for row in stored(lake)] == [1.5, 2.5, None, 4.5]
    both = "row 2: column 'total_amount'.* has values in 'Total Amount' and 'total_amount'"
    with pytest.raises(Refused, match=both):
        lake.ingest(file_of(lake, "jsonl", [{"id": 5}, {"id": 6, "Total Amount": 1.5, "total_amount": 1.5}]))


@pytest.mark.parametrize("form", FORMATS[:-1])  # Lance itself does not read a field without a name
def test_columns_with_sources_may_have_the_names_of_each_other(form: str, lake: Lake) -> None:
    make(lake, ID, column("a", "int64", "b"), column("b", "int64", "a"), column("c", "int64", ""))
    lake.ingest(file_of(lake, form, [{"id": 1, "a": 10, "b": 20, "": 30}]))
    assert stored(lake) == [{"id": 1, "a": 20, "b": 10, "c": 30}]


def test_a_file_without_a_header_line_has_the_columns_in_order(lake: Lake) -> None:
    from deployer.tables.ingest.files.model import ReadOptions

    make(lake, ID, column("a", "int64", "b"), column("b", "int64", "a"))
    lake.ingest(lake.text("in.csv", "1,2,3\n"), options=ReadOptions(header=False))
    assert stored(lake) == [{"id": 1, "a": 2, "b": 3}]
    with pytest.raises(InvalidInput, match="no names"):
        lake.ingest(lake.text("in.csv", "1,2,3\n"), options=ReadOptions(header=False), renames=renames("x=a"))
    lake.ingest(
        lake.text("two.csv", "2,3\n"), options=ReadOptions(header=False), selects=selects("CAST(id AS INT) * 2 AS a")
    )
    assert stored(lake)[1] == {"id": 2, "a": 4, "b": 3}


def test_folders_fill_columns_by_their_sources(lake: Lake) -> None:
    make(lake, ID, column("day", "date32", "Day"))
    for day in ("2024-01-01", "2024-01-02"):
        folder = lake.folder / "sales" / f"Day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [int(day[-1])]}), folder / "part.parquet")
    lake.ingest(lake.folder / "sales")
    assert [str(row["day"]) for row in stored(lake)] == ["2024-01-01", "2024-01-02"]


def test_row_keys_have_sources(lake: Lake) -> None:
    make(lake, column("id", "int64", "Id", nullable=False), AMOUNT, keys=("id",))
    lake.ingest(file_of(lake, "csv", [{"Id": 2, "Total Amount": 1.5}, {"Id": 1, "Total Amount": 2.5}]))
    assert [row["total_amount"] for row in stored(lake)] == [2.5, 1.5]


PROBLEMS: dict[str, tuple[str, str]] = {
    "missing": ("id\n1\n", r"column 'total_amount' \(source 'Total Amount'\) is missing"),
    "another case": (
        "id,total amount\n1,2\n",
        r"no column 'total amount' \(it has 'Total Amount': names differ in case",
    ),
    "similar": ("id,Total Amonut\n1,2\n", r"no column 'Total Amonut' \(did you mean 'Total Amount'\?\)"),
    "bad value": ("id,Total Amount\n1,x\n", r"row 1: column 'total_amount' \(source 'Total Amount'\) 'x' does not fit"),
    "bad value under the own name": ("id,total_amount\n1,x\n", r"row 1: column 'total_amount' 'x' does not fit"),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_messages_name_what_the_file_has(case: str, lake: Lake) -> None:
    text, message = PROBLEMS[case]
    make(lake, ID, column("total_amount", "float64", "Total Amount", nullable=False))
    with pytest.raises((InvalidInput, Refused), match=message):
        lake.ingest(lake.text("in.csv", text))


def test_a_column_that_no_file_has_is_named_with_its_source(lake: Lake) -> None:
    make(lake, ID, AMOUNT)
    with pytest.raises(
        InvalidInput, match=r"no file and no folder has column 'total_amount' \(source 'Total Amount'\)"
    ):
        lake.ingest(lake.text("in.csv", "id\n1\n"))


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_bad_rows_keep_the_names_of_the_file_and_load_once_repaired(form: str, lake: Lake) -> None:
    make(
        lake, ID, column("total_amount", "float64", "Total Amount"), column("code", "string"), column("twice", "int64")
    )
    rows: list[dict[str, Any]] = [
        {"id": "1", "Total Amount": "1.5", "Code": "a", "n": "2"},
        {"id": "2", "Total Amount": "x", "Code": "b", "n": "3"},
    ]
    if form != "csv":
        rows = [{**row, "id": int(row["id"]), "Total Amount": float(n)} for n, row in enumerate(rows)]
        rows[1]["id"] = None
    bad = lake.folder / "bad.jsonl"
    more: dict[str, Any] = {"renames": renames("Code=code"), "selects": selects("CAST(n AS INT) * 2 AS twice")}
    assert lake.ingest(file_of(lake, form, rows), bad_rows=bad, **more).bad_rows == 1
    [row] = [json.loads(line) for line in bad.read_text().splitlines()]
    reasons = row.pop("_bad")
    assert set(row) == {"id", "Total Amount", "Code", "n"} and len(reasons) == 1
    bad.write_text(json.dumps({**row, "id": 2, "Total Amount": 2.5, "_bad": reasons}) + "\n")
    lake.ingest(bad, **more)
    assert [(row["code"], row["twice"]) for row in stored(lake)] == [("a", 4), ("b", 6)]


RENAMES: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]] = {
    "a field that the table lacks": (("X=total_amount",), {"id": 1, "X": 2.0}, {"id": 1, "total_amount": 2.0}),
    "the empty name": (("=total_amount",), {"id": 1, "": 2.0}, {"id": 1, "total_amount": 2.0}),
    "two columns": (("id=total_amount", "total_amount=id"), {"id": 2, "total_amount": 1},
                    {"id": 1, "total_amount": 2.0}),
    "a name with =": (("a=b=total_amount",), {"id": 1, "a=b": 2.0}, {"id": 1, "total_amount": 2.0}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMATS[:-1])
@pytest.mark.parametrize("case", RENAMES)
def test_renamed_fields_fill_columns(case: str, form: str, lake: Lake) -> None:
    texts, row, expected = RENAMES[case]
    make(lake, ID, AMOUNT)
    lake.ingest(file_of(lake, form, [row]), renames=renames(*texts))
    assert stored(lake) == [expected]


SELECTS: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]] = {
    "a field that the table lacks": (("CAST(x AS DOUBLE) * 2 AS total_amount",), {"id": 1, "x": 2.0},
                                     {"id": 1, "total_amount": 4.0, "code": None}),
    "its own field": (("upper(code) as code",), {"id": 1, "code": "ab", "Total Amount": 1.5},
                      {"id": 1, "total_amount": 1.5, "code": "AB"}),
    "a quoted field": (('concat("Post Code", \'!\') AS code',), {"id": 1, "Post Code": "x", "total_amount": 1.0},
                       {"id": 1, "total_amount": 1.0, "code": "x!"}),
    "a constant": (("'new' AS code",), {"id": 1, "total_amount": 1.0}, {"id": 1, "total_amount": 1.0, "code": "new"}),
    "every column": (("7 AS id", "1.5 AS total_amount", "'x' AS code"), {"other": 1},
                     {"id": 7, "total_amount": 1.5, "code": "x"}),
}  # fmt: skip


@pytest.mark.thinned(5, to="full")
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("case", SELECTS)
def test_expressions_give_columns(case: str, form: str, lake: Lake) -> None:
    texts, row, expected = SELECTS[case]
    make(lake, ID, AMOUNT, column("code", "string"))
    extra = case == "every column"
    lake.ingest(
        file_of(lake, form, [row]), selects=selects(*texts), ignore_extra=extra, missing_as_null="code" not in row
    )
    assert stored(lake) == [expected]


def test_text_that_an_expression_gives_is_read_as_that_of_the_file(lake: Lake) -> None:
    make(lake, ID, column("year", "int32"))
    lake.ingest(lake.text("in.csv", "id,code\n1,2024-x\n"), selects=selects("substr(code, 1, 4) AS year"))
    assert stored(lake) == [{"id": 1, "year": 2024}]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_rows_for_which_an_expression_fails_are_bad(form: str, lake: Lake) -> None:
    make(lake, ID, column("size", "int32"))
    rows = [{"id": n, "text": "x" if n in (3, 70) else str(n)} for n in range(100)]
    expressions = selects("CAST(text AS INT) + 1 AS size")
    with pytest.raises(Refused, match=r"2 rows cannot be loaded(?s:.*)row 4: column 'size' has no value"):
        lake.ingest(file_of(lake, form, rows), selects=expressions)
    bad = lake.folder / "bad.jsonl"
    assert lake.ingest(file_of(lake, form, rows), selects=expressions, bad_rows=bad).rows == 98
    assert all(row["size"] == row["id"] + 1 for row in stored(lake))
    kept = [json.loads(line) for line in bad.read_text().splitlines()]
    assert [(row["id"], row["text"]) for row in kept] == [(3, "x"), (70, "x")]


def test_an_expression_that_fails_for_many_rows_is_an_error(lake: Lake) -> None:
    make(lake, ID, column("size", "int32"))
    rows = [{"id": n, "text": "x"} for n in range(1000)]
    with pytest.raises(InvalidInput, match=r"fails for more than 500 rows, of which one says: .*TRY_CAST gives null"):
        lake.ingest(
            file_of(lake, "csv", rows), selects=selects("CAST(text AS INT) AS size"), bad_rows=lake.folder / "bad.jsonl"
        )
    assert stored(lake) == []


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "rename of no field": ({"renames": renames("Totl=total_amount")}, r"no file has a field 'Totl'; did you mean"),
    "rename to no column": ({"renames": renames("Total=amount")}, "--rename is for column 'amount', which the"),
    "two fields for a column": ({"renames": renames("id=total_amount", "Total=total_amount")}, "twice for column"),
    "one field for two": ({"renames": renames("Total=id", "Total=total_amount")}, "given twice for field 'Total'"),
    "select and rename": (
        {"renames": renames("Total=id"), "selects": selects("1 AS id")}, "given twice for column 'id'"
    ),
    "select of no column": ({"selects": selects("1 AS x")}, "--select is for column 'x'"),
    "no such field": ({"selects": selects("total AS total_amount")}, "has no field 'total'; did you mean \"Total\""),
    "text as a number": ({"selects": selects('"Total" * 2 AS total_amount')}, r"Cannot coerce.*CAST\(field AS"),
    "an aggregate": ({"selects": selects("count(*) AS total_amount")}, "--select count"),
    "another type": ({"selects": selects("true AS total_amount")}, "gives column 'total_amount' bool, which cannot"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_options_change_nothing(case: str, lake: Lake) -> None:
    options, message = WRONG[case]
    make(lake, ID, AMOUNT)
    with pytest.raises(InvalidInput, match=message):
        lake.ingest(lake.text("in.csv", "id,Total\n1,2\n"), **options)
    assert stored(lake) == []


@pytest.mark.parametrize("text", ["x", "x=", "=", ""])
def test_what_is_not_a_rename(text: str) -> None:
    with pytest.raises(InvalidInput, match="write FIELD=COLUMN"):
        rename_of(text)


@pytest.mark.parametrize("text", ["x", "x AS", "AS x", "a, b AS c", "1; drop AS x", "(1 AS x", ""])
def test_what_is_not_a_select(text: str) -> None:
    with pytest.raises(InvalidInput, match="--select"):
        select_of(text)


@pytest.mark.spark
def test_spark_maps_fields_as_this_process_does(lake: Lake) -> None:
    make(lake, column("id", "int64", "Id", nullable=False), AMOUNT, column("code", "string"), column("twice", "int64"))
    bad = lake.folder / "bad.jsonl"
    result = lake.ingest(
        lake.text("in.csv", "Id,Total Amount,Code,n\n1,1.5,a,2\n2,x,b,3\n3,2.5,c,y\n"),
        engine="spark",
        renames=renames("Code=code"),
        selects=selects("CAST(n AS INT) * 2 AS twice"),
        bad_rows=bad,
    )
    assert (result.rows, result.bad_rows) == (1, 2)
    assert stored(lake) == [{"id": 1, "total_amount": 1.5, "code": "a", "twice": 4}]
    kept = [json.loads(line) for line in bad.read_text().splitlines()]
    assert [(row["Id"], row["Total Amount"], row["n"]) for row in kept] == [(2, "x", "3"), (3, 2.5, "y")]
