"""`schema infer`: specs from data, which declare tables that take the same data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from deployer.specs import load_lake
from deployer.specs.model import TableSpec
from deployer.specs.types import format_type
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "name": pa.array(["a", None, "b"]),
        "kind": pa.array(["x", "x", "y"]).dictionary_encode(),
        "at": pa.array([0, 1, 2], pa.timestamp("us", "UTC")),
        "tags": pa.array([["a"], [], ["b"]]),
    }
)
CSV = (
    "id,code,at,day,flag,x,none\n1,007,2013-01-01T10:00:00Z,2013-01-01,true,1.5,\n2,010,2013-01-01T10:00:00Z,,false,,\n"
)


def spec_of(folder: Path, text: str) -> TableSpec:
    (folder / "specs").mkdir(exist_ok=True)
    (folder / "specs" / "lake.yaml").write_text(INSTANCE + "---\n" + text, encoding="utf-8")
    return load_lake(folder, folder / "specs").tables[0]


def _parquet(path: Path) -> None:
    pq.write_table(ROWS, path)


def _arrow(path: Path) -> None:
    feather.write_feather(ROWS, str(path), compression="uncompressed")


def _lance(path: Path) -> None:
    lance.write_dataset(ROWS.set_column(2, "kind", ROWS["kind"].cast(pa.string())), str(path))


@pytest.mark.parametrize(
    ("name", "write"),
    [("trips.parquet", _parquet), ("trips.arrow", _arrow), ("trips.lance", _lance)],
    ids=["parquet", "arrow", "lance"],
)
def test_columns_keep_their_types(deployer: Deployer, tmp_path: Path, name: str, write: Callable[[Path], None]) -> None:
    write(tmp_path / name)
    ran = deployer("schema", "infer", str(tmp_path / name), "--table", "air.trips")
    table = spec_of(tmp_path, ran.out)
    assert (ran.code, table.full_name) == (0, "air.trips")
    assert [(column.name, format_type(column.type), column.nullable) for column in table.columns] == [
        ("id", "int32", False),
        ("name", "string", True),
        ("kind", "string", False),
        ("at", "timestamp[us, UTC]", False),
        ("tags", "list<string>", False),
    ]
    assert "# row_keys: [id]" in ran.out


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        pytest.param(
            "t.csv",
            CSV,
            "id int64!, code string!, at timestamp[us, UTC]!, day date32, flag bool!, x float64, none string",
            id="csv",
        ),
        pytest.param("t.tsv", "a\tb\n1\tx\n", "a int64!, b string!", id="tsv"),
        pytest.param(
            "t.jsonl",
            '{"a": 1, "b": {"c": ["x"]}, "t": "2013-01-01", "n": "5"}\n{"a": 2.5, "t": "2013-01-02", "n": "6"}\n',
            "a float64!, b struct<c: list<string>>, t date32!, n string!",
            id="json",
        ),
        pytest.param("t.csv", "a,b\n", "a string, b string", id="no-rows"),
    ],
)
def test_text_gets_the_types_that_all_its_values_have(
    deployer: Deployer, tmp_path: Path, name: str, text: str, columns: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    table = spec_of(tmp_path, deployer("schema", "infer", str(tmp_path / name)).out)
    shown = (f"{c.name} {format_type(c.type)}{'' if c.nullable else '!'}" for c in table.columns)
    assert ", ".join(shown) == columns


def test_row_keys_are_a_remark_only_where_they_hold(deployer: Deployer, tmp_path: Path) -> None:
    def keys(**columns: list[Any]) -> Any:
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        return deployer("schema", "infer", str(tmp_path / "t.parquet"), "--json").json["row_keys"]

    assert keys(a=[1, 1, 2], b=[1, 2, 1]) == ["a", "b"]
    assert keys(a=[1, 1], b=[1, 1]) == []
    assert keys(a=[1, None], b=["x", "x"]) == []
    assert keys(a=[1.0, 2.0]) == []


def test_a_part_of_the_rows_says_nothing_about_nulls_or_keys(deployer: Deployer, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, None]}), tmp_path / "t.parquet")
    ran = deployer("schema", "infer", str(tmp_path / "t.parquet"), "--rows", "2")
    assert spec_of(tmp_path, ran.out).columns[0].nullable
    assert "From the first 2 rows" in ran.out
    assert "row_keys" not in ran.out


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.csv", "a b\n1\n", "cannot be the name of a column"),
        ("t.jsonl", '{"a": 1}\n{"a": "x"}\n', "values of several types"),
        ("t.jsonl", "[1]\n", "not a JSON object"),
        ("t.xyz", "a\n", "format cannot be told"),
    ],
    ids=["name", "mixed", "no-object", "format"],
)
def test_what_cannot_be_a_table_is_said(deployer: Deployer, tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    ran = deployer("schema", "infer", str(tmp_path / name))
    assert ran.code == 1
    assert said in ran.err


def test_the_schema_alone_is_still_printed(deployer: Deployer) -> None:
    assert json.loads(deployer("schema").out)["title"] == "deployer spec"


def test_the_inferred_table_takes_the_data(deployer: Deployer, project: Path) -> None:
    (project / "trips.csv").write_text(CSV, encoding="utf-8")
    target = project / "specs" / "trips.yaml"
    assert deployer("schema", "infer", "trips.csv", "--table", "air.trips", "--out", str(target)).code == 0
    assert deployer("up", "--yes").code == 0
    assert deployer("ingest", "air.trips", "trips.csv", "--json").json["rows"] == 2
