"""Files load as they are: `schema infer` writes a spec that `up` accepts and with which `ingest` loads the file."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from deployer.specs.types.column_names import legal_names
from deployer.specs.types.types import Column
from tests.cli.conftest import Deployer

from .test_infer import spec_of

#: The file, its columns with their sources, and the first row that the table then has.
FILES: dict[str, tuple[str, str, str]] = {
    "r-write-csv": (
        '"","mpg","Sepal.Length"\n"Mazda RX4",21,5.1\n"Fiat",22,4.9\n',
        "row_name='' mpg Sepal_Length='Sepal.Length'", "Fiat 22 4.9",
    ),
    "r-write-csv-without-a-first-name": (
        '"mpg","cyl"\n"Mazda RX4",21,6\n"Fiat",22,4\n', "row_name='' mpg cyl", "Fiat 22 4",
    ),
    "r-write-table": (
        '"mpg" "Sepal.Length"\n"Mazda RX4" 21 5.1\n"Fiat" 22 4.9\n',
        "row_name='' mpg Sepal_Length='Sepal.Length'", "Fiat 22 4.9",
    ),
    "ranges-of-numbers": ('"","2-9","20+"\n"a",1,2\n"b",3,4\n', "row_name='' 2-9 20+", "a 1 2"),
    "pandas": (",a\n1,x\n2,y\n", "row_name='' a", "1 x"),
    "an-empty-name-behind": ("a,\n1,x\n2,y\n", "a column_2=''", "1 x"),
    "names-that-are-alike": ("a,A,a_2\n1,2,3\n", "a A_3='A' a_2", "1 2 3"),
    "the-same-name": ("x,x,x.1,y\n1,2,3,4\n", "x x_2='x.2' x_1='x.1' y", "1 2 3 4"),
    "lines-in-a-name": ('a,"Total\nAmount"\n1,2\n', "a Total Amount='Total\\nAmount'", "1 2"),
    "dots-that-meet": ("a.b,a_b\n1,2\n", "a_b_2='a.b' a_b", "1 2"),
    "names-of-lance": ("_rowid,*\n1,2\n", "rowid='_rowid' column_2='*'", "1 2"),
    "runs-of-spaces": ("  mpg   cyl   name\n 18.0   8    \"a  b\"\n 15.0   16   c\t\n", "mpg cyl name", "15.0 16 c"),
    "tabs-and-spaces": ("x  y\n1\t 2\n3 \t4\n", "x y", "1 2"),
}  # fmt: skip


def shown(columns: tuple[Column, ...]) -> str:
    return " ".join(c.name if c.source is None else f"{c.name}={c.source!r}" for c in columns)


@pytest.mark.thinned(4, to="full")
@pytest.mark.parametrize("name", FILES)
def test_a_file_loads_as_it_is(name: str, deployer: Deployer, project: Path) -> None:
    text, columns, first = FILES[name]
    (project / "t.csv").write_text(text, encoding="utf-8")
    ran = deployer("schema", "infer", "t.csv", "--out", "specs/t.yaml")
    assert ran.code == 0, ran.err
    written = (project / "specs" / "t.yaml").read_text(encoding="utf-8")
    found = spec_of(project / "other", written).columns
    assert shown(found) == columns
    assert deployer("validate").code == 0
    assert deployer("up", "--yes").code == 0
    options = written.partition("ingest main.t FILE ")[2].partition("\n")[0]
    ran = deployer("ingest", "main.t", "t.csv", *shlex.split(options), "--json")
    assert ran.code == 0, ran.err
    rows = deployer("query", "main.t", "--json").json["rows"]
    assert sorted(" ".join(str(row[column.name]) for column in found) for row in rows)[0] == first


def test_an_import_has_the_same_names(deployer: Deployer, project: Path) -> None:
    (project / "t.csv").write_text(FILES["r-write-table"][0], encoding="utf-8")
    ran = deployer("import", "table/main.t", "t.csv")
    assert ran.code == 0, ran.err
    described = deployer("describe", "main.t")
    assert "Sepal_Length" in described.out and "'Sepal.Length'" in described.out


@pytest.mark.parametrize("delimiter", [" ", "whitespace"])
def test_a_delimiter_of_spaces_is_given(delimiter: str, deployer: Deployer, project: Path) -> None:
    (project / "t.csv").write_text("a b\nx y\n", encoding="utf-8")  # words alone are not taken for columns
    assert "name: a b" in deployer("schema", "infer", "t.csv").out
    ran = deployer("schema", "infer", "t.csv", "--delimiter", delimiter)
    assert shown(spec_of(project / "other", ran.out).columns) == "a b"
    assert f"--delimiter {shlex.quote(delimiter)}" in ran.out


def test_options_fill_columns_from_other_fields(deployer: Deployer, project: Path) -> None:
    (project / "specs" / "t.yaml").write_text(
        "kind: Table\ndatabase: main\nname: t\ncolumns:\n  - {name: id, type: int64, source: No.}\n"
        "  - {name: total, type: float64}\n  - {name: code, type: string}\n",
        encoding="utf-8",
    )
    assert deployer("up", "--yes").code == 0
    (project / "t.csv").write_text("No.,Unit Price,n,Code\n1,1.5,2,x\n", encoding="utf-8")
    select = 'CAST("Unit Price" AS DOUBLE) * CAST(n AS INT) AS total'
    ran = deployer("ingest", "main.t", "t.csv", "--rename", "Code=code", "--select", select)
    assert ran.code == 0, ran.err
    assert deployer("query", "main.t", "--json").json["rows"] == [{"id": 1, "total": 3.0, "code": "x"}]
    ran = deployer("ingest", "main.t", "t.csv", "--rename", "Code=cod")
    assert ran.code == 1 and "did you mean 'code'?" in ran.err


def test_names_stay_where_columns_can_have_them() -> None:
    names = ["Total Amount", "2nd", "数量", "a-b"]
    assert legal_names(names) == {name: name for name in names}
