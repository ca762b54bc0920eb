"""`schema infer`: specs from data, which declare tables that take the same data."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from deployer.specs import load_lake
from deployer.specs.model import TableSpec
from deployer.specs.types.types import format_type
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
    (folder / "specs").mkdir(parents=True, exist_ok=True)
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
        pytest.param("t.jsonl", '{"a": 1}\n{"a": "x"}\n', "a json!", id="json-mixed"),
        pytest.param("t.jsonl", '{"a": {"b": 1}}\n{"a": {"b": [1]}}\n{}\n', "a json", id="json-mixed-below"),
        pytest.param(
            "t.jsonl", '{"a": [], "b": {}, "c": [{"x": null}]}\n', "a json!, b json!, c json!", id="json-empty"
        ),
        pytest.param("t.jsonl", '{"a": {"x": 1, "X": 2}}\n', "a json!", id="json-names"),
        pytest.param("t.jsonl", '{"a": 123456789012345678901}\n', "a decimal128(38, 0)!", id="json-long-integer"),
        pytest.param("t.jsonl", f'{{"a": 1{"0" * 50}}}\n', "a json!", id="json-longer-integer"),
    ],
)
def test_text_gets_the_types_that_all_its_values_have(
    deployer: Deployer, tmp_path: Path, name: str, text: str, columns: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    table = spec_of(tmp_path, deployer("schema", "infer", str(tmp_path / name)).out)
    shown = (f"{c.name} {format_type(c.type)}{'' if c.nullable else '!'}" for c in table.columns)
    assert ", ".join(shown) == columns


def test_columns_of_several_json_files_get_a_common_type(deployer: Deployer, tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"a": 1, "b": 1, "c": {"x": 1}}\n', encoding="utf-8")
    (tmp_path / "2.jsonl").write_text('{"a": 1.5, "b": "x", "c": [1]}\n{"c": null}\n', encoding="utf-8")
    ran = deployer("schema", "infer", str(tmp_path / "*.jsonl"))
    columns = spec_of(tmp_path, ran.out).columns
    assert [(c.name, format_type(c.type), c.nullable) for c in columns] == [
        ("a", "float64", True),
        ("b", "json", True),
        ("c", "json", True),
    ]
    assert "json is the type of columns whose values have no common type: b, c" in ran.out


COUNTRIES, YEARS = ("Chad", "Mali", "Peru", "Oman"), range(1955, 2010, 5)
KEYS = {
    "id": ({"pop": [3, 9, 5], "id": [7, 1, 4]}, ["id"]),
    "camel-case": ({"pop": [3, 9, 5], "orderId": [7, 1, 4]}, ["orderId"]),
    "row-numbers": ({"x": [1.5, 2.5, 0.5], "n": [1, 2, 3]}, ["n"]),
    "codes": ({"name": ["Oslo", "Rome", "Bonn"], "port": ["OSL", "FCO", "CGN"]}, ["port"]),
    "two-ids": ({"order_id": [1, 1, 2], "line_no": [1, 2, 1], "qty": [5, 6, 7]}, ["order_id", "line_no"]),
    "gapminder": (
        {
            "year": [year for _ in COUNTRIES for year in YEARS],
            "country": [country for country in COUNTRIES for _ in YEARS],
            "pop": [1000 * i + 7 for i in range(44)],
        },
        ["year", "country"],
    ),
    "barley": (
        {
            "yield": [i * 1.5 for i in range(48)],
            "variety": [f"v{i % 4}" for i in range(48)],
            "year": [1931 + i // 24 for i in range(48)],
            "site": [f"s{i // 4 % 6}" for i in range(48)],
        },
        ["variety", "year", "site"],
    ),
    "four": ({name: [i >> bit & 1 for i in range(16)] for bit, name in enumerate(("a_id", "b_id", "c_id", "d_id"))},
             ["a_id", "b_id", "c_id", "d_id"]),
    "measure": ({"pop": [3, 9, 5]}, []),
    "grows": ({"pop": [3, 9, 50]}, []),
    "names": ({"first_name": ["Ann", "Bob", "Cy"], "kind": ["x", "x", "y"]}, []),
    "repeated": ({"id": [1, 1], "code": ["a", "a"]}, []),
    "nulls": ({"id": [1, None]}, []),
    "floats": ({"id": [1.0, 2.0]}, []),
    "plain-names": ({"a": [1, 1, 2], "b": [1, 2, 1]}, []),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_row_keys_have_the_properties_of_keys(name: str, deployer: Deployer, tmp_path: Path) -> None:
    columns, keys = KEYS[name]
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert deployer("schema", "infer", str(tmp_path / "t.parquet"), "--json").json["row_keys"] == keys


PENGUINS = "species,mass,year,sex\nAdelie,3750,2007,male\nGentoo,NA,2008,NA\nAdelie,3250,2009,\n"
ASSUMPTIONS = {
    "nulls": (
        PENGUINS,
        (),
        "species string!, mass int64, year int64!, sex string",
        "# To load it: deployer ingest main.t FILE --null-value '' --null-value NA\n",
    ),
    "dashes-and-questions": (
        "a,b\n1,2.5\n-,?\n",
        (),
        "a int64, b float64",
        "# '?' is null: without it, the values of b are numbers, dates or booleans\n",
    ),
    "text-keeps-its-dashes": ("a,b\nx,1\n-,2\n", (), "a string!, b int64!", ""),
    "slashes": ("d\n2012/01/01\n", (), "d date32!", "--date-format d=%Y/%m/%d\n"),
    "dots": ("d\n31.12.2012\n1.2.2012\n", (), "d date32!", "--date-format d=%d.%m.%Y\n"),
    "months-first": ("d\n01/02/2012\n12/31/2012\n", (), "d date32!", "--date-format d=%m/%d/%Y\n"),
    "days-first": ("d\n01/02/2012 10:00\n31/12/2012 11:30\n", (), "d timestamp[us]!", "'d=%d/%m/%Y %H:%M'\n"),
    "ambiguous": (
        "d\n01/02/2012\n",
        (),
        "d string!",
        "# dates of d may be %d/%m/%Y or %m/%d/%Y, so it stays text; give --date-format d=%d/%m/%Y if that is right\n",
    ),
    "given": ("d\n01/02/2012\n", ("--date-format", "%m/%d/%Y"), "d date32!", "dates of d are written as %m/%d/%Y\n"),
    "named-months": ("d\nJan 1 2000\n", (), "d date32!", "'d=%b %d %Y'\n"),
    "no-such-day": ("d\n31.02.2012\n", (), "d string!", ""),
    "dates-and-nulls": ("d\n31.12.2012\nNA\n", (), "d date32", "--null-value NA --date-format d=%d.%m.%Y\n"),
    "delimiter": ("a;b\n1;x\n", (), "a int64!, b string!", "# delimiter ';' detected in "),
    "no-header": ("1,x\n2,x\n", ("--no-header",), "column_1 int64!, column_2 string!", "FILE --no-header\n"),
}


@pytest.mark.thinned(4, to="full")
@pytest.mark.parametrize("name", ASSUMPTIONS)
def test_assumptions_are_comments_and_load_the_data(name: str, deployer: Deployer, project: Path) -> None:
    text, given, columns, comment = ASSUMPTIONS[name]
    (project / "t.csv").write_text(text, encoding="utf-8")
    ran = deployer("schema", "infer", "t.csv", *given)
    table = spec_of(project / "other", ran.out)
    shown = (f"{c.name} {format_type(c.type)}{'' if c.nullable else '!'}" for c in table.columns)
    assert ", ".join(shown) == columns
    assert comment in ran.out
    (project / "specs" / "t.yaml").write_text(ran.out, encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    options = ran.out.partition("ingest main.t FILE ")[2].partition("\n")[0]
    ran = deployer("ingest", "main.t", "t.csv", *shlex.split(options), "--json")
    assert (ran.code, ran.json["rows"]) == (0, text.count("\n") - (name != "no-header"))


def test_a_file_without_a_header_line_is_asked_about(deployer: Deployer, tmp_path: Path) -> None:
    (tmp_path / "digits.csv").write_text("0,0,5,13\n", encoding="utf-8")
    ran = deployer("schema", "infer", str(tmp_path / "digits.csv"))
    assert ran.code == 1
    assert "the first line names a column '0', as a row would; if it is a row, give --no-header" in ran.err


@pytest.mark.parametrize(
    ("text", "note"),
    [
        pytest.param("id,2019,2020\n1,5,6\n", False, id="with-a-number-that-has-a-name"),
        pytest.param("country,2019,2020\nA,5,6\n", True, id="years"),
        pytest.param("Total Amount,2nd,km/h\nA,5,6\n", False, id="other-names"),
    ],
)
def test_names_of_columns_that_are_years(text: str, note: bool, deployer: Deployer, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    ran = deployer("schema", "infer", str(tmp_path / "t.csv"))
    assert ran.code == 0, ran.err
    names = [column.name for column in spec_of(tmp_path, ran.out).columns]
    assert names == text.splitlines()[0].split(",")
    said = "# the first line is taken for names, with 2019, 2020; if it is a row, give --no-header\n"
    assert (said in ran.out) == note


def test_rows_of_another_width_are_reported(deployer: Deployer, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("a,b\n1,2,3,4\n2,3,4,5\n", encoding="utf-8")
    ran = deployer("schema", "infer", str(path))
    assert ran.code == 1 and "all rows differ from the header line in their number of values" in ran.err
    path.write_text("a,b\n1,2\n1,2,3\n", encoding="utf-8")
    ran = deployer("schema", "infer", str(path))
    assert ran.code == 0 and f"# 1 rows of {path} were left out, and cannot be loaded: row 2: the row has 3" in ran.out


def test_an_import_loads_with_what_was_assumed(deployer: Deployer, project: Path) -> None:
    (project / "penguins.csv").write_text(PENGUINS.replace("2009", "2010"), encoding="utf-8")
    ran = deployer("import", "table/zoo.penguins", "penguins.csv")
    assert ran.code == 0
    assert "3 rows copied" in ran.out and "'NA' is null" in ran.err
    assert "int64" in deployer("describe", "zoo.penguins").out


def test_an_import_reads_text_as_it_is_told(deployer: Deployer, project: Path) -> None:
    (project / "places.csv").write_bytes("1|café|x\n2|none|y\n".encode("latin-1"))
    arguments = ("--encoding", "latin-1", "--delimiter", "|", "--no-header", "--null-value", "none")
    ran = deployer("import", "table/geo.places", "places.csv", *arguments)
    assert ran.code == 0, ran.err
    found = deployer("query", "geo.places", "--format", "csv").out
    assert found == "column_1,column_2,column_3\n1,café,x\n2,,y\n"


def test_a_part_of_the_rows_says_nothing_about_nulls_or_keys(deployer: Deployer, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, None]}), tmp_path / "t.parquet")
    ran = deployer("schema", "infer", str(tmp_path / "t.parquet"), "--rows", "2")
    assert spec_of(tmp_path, ran.out).columns[0].nullable
    assert "From the first 2 rows" in ran.out
    assert "row_keys" not in ran.out


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("t.csv", "a\x07b\n1\n", "a column 'a\\x07b', which no spec can name"),
        ("t.json", '{\n "a": 1\n}\n', "one JSON object over several lines"),
        ("t.jsonl", "[1]\n", "not a JSON object"),
        ("t.xyz", "a\n", "the name does not show the format"),
        ("t.csv", "1,x\n2,y\n", "names a column '1', as a row would; if it is a row, give --no-header"),
        ("t.csv", "3.5,x\n2,y\n", "names a column '3.5', as a row would; if it is a row"),
        ("t.csv", "0,1,0\n0,2,0\n", "names a column '0', as a row would; if it is a row"),
    ],
    ids=["name", "document", "no-object", "format", "value", "decimal", "no-header"],
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
