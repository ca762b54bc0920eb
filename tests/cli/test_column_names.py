"""Columns with odd names through the whole life of a table, by the commands: nothing is renamed, nothing is misread."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from deployer.state import open_store
from deployer.tables.read.table import open_table
from tests.cli.conftest import Deployer
from tests.column_names import NAMES, WORST
from tests.projects import applied_project, run

ALL = (*NAMES.values(), WORST)
TYPES = pa.schema([*((name, pa.int64()) for name in ALL), ("my fields", pa.struct([(n, pa.int64()) for n in ALL]))])
KEYS = [WORST, "Total Amount"]
ROOT = "lakes/demo"


def row(number: int) -> dict[str, Any]:
    """A row whose values are different in each column."""
    return {name: 100 * number + place for place, name in enumerate(ALL)} | {
        "my fields": {name: -(100 * number + place) for place, name in enumerate(ALL)}
    }


def document(columns: list[dict[str, Any]], **more: Any) -> str:
    """The spec of air.odd, keyed by the worst name unless it is said otherwise."""
    whole = {"kind": "Table", "database": "air", "name": "odd", "columns": columns, "row_keys": KEYS} | more
    return yaml.safe_dump(json.loads(json.dumps(whole)), allow_unicode=True, sort_keys=False)


def columns() -> list[dict[str, Any]]:
    fields = [{"name": name, "type": "int64"} for name in ALL]
    own = [{**each, "nullable": False} if each["name"] in KEYS else each for each in fields]
    return [*own, {"name": "my fields", "type": {"struct": fields}}]


def declare(project: Path, text: str) -> None:
    (project / "specs" / "odd.yaml").write_text(text, encoding="utf-8")


def dataset(project: Path) -> lance.LanceDataset:
    with closing(open_store(project / ROOT)) as store:
        entry = store.instance().by_name("air.odd")
        assert entry is not None
        return lance.dataset(str(project / ROOT / entry.location))


def applied(deployer: Deployer, *arguments: str) -> None:
    """Applies the specs; a preview is clean afterwards."""
    ran = deployer("up", "--yes", *arguments)
    assert ran.code == 0, ran.out + ran.err
    again = deployer("preview", "--exit-code")
    assert again.code == 0, again.out + again.err


def found(deployer: Deployer, *arguments: str) -> list[dict[str, Any]]:
    ran = deployer("query", "air.odd", "--format", "json", *arguments)
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def loaded(deployer: Deployer, *arguments: str) -> None:
    ran = deployer("ingest", "air.odd", *arguments)
    assert ran.code == 0, ran.err


@pytest.fixture
def filled(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a table of all names and three rows, one of each kind of file; a copy of one filled once."""
    specs = {file.name: file.read_text(encoding="utf-8") for file in (project / "specs").iterdir()}
    folder = applied_project(tmp_path / "filled", {**specs, "odd.yaml": document(columns())}, load_three_rows)
    monkeypatch.chdir(folder)
    return folder


def load_three_rows() -> None:
    pq.write_table(pa.Table.from_pylist([row(1)], schema=TYPES), "one.parquet")
    Path("two.json").write_text(json.dumps(row(2), ensure_ascii=False) + "\n", encoding="utf-8")
    with Path("three.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ALL, extrasaction="ignore")
        writer.writeheader()
        writer.writerow(row(3))
    for arguments in (("one.parquet",), ("two.json",), ("three.csv", "--missing-as-null")):
        run("ingest", "air.odd", *arguments)
    run("preview", "--exit-code")


@pytest.mark.full
def test_rows_of_each_kind_of_file_are_loaded_and_found(filled: Path, deployer: Deployer) -> None:
    assert sorted(found(deployer), key=lambda each: each[WORST]) == [row(1), row(2), {**row(3), "my fields": None}]
    check_name(deployer, ALL.index(WORST))


@pytest.mark.full
def test_rows_are_found_by_each_name(filled: Path, deployer: Deployer) -> None:
    for place in range(len(ALL)):
        check_name(deployer, place)
    [worst, total] = (row(2)[name] for name in KEYS)
    assert found(deployer, "--keys", f"{worst},{total}") == [row(2)]
    with closing(open_table(str(filled / ROOT), "air.odd")) as table:
        assert table.keys((worst,)).to_table().to_pylist() == [row(2)]
        assert table.scan(f"`{WORST}` > 0", [WORST]).to_table().column_names == [WORST]


def check_name(deployer: Deployer, place: int) -> None:
    """Finds rows by the name at this place of all, however it is quoted."""
    name = ALL[place]
    assert found(deployer, "--where", f"`{name}` = {200 + place}") == [row(2)]
    assert found(deployer, "--where", f"`my fields`.`{name}` = {-200 - place}") == [row(2)]
    assert found(deployer, "--range", f"{name}={200 + place}..{200 + place}") == [row(2)]
    shown = '"' + name.replace('"', '""') + '"'
    assert found(deployer, "--columns", shown, "--range", f"{name}=..199") == [{name: 100 + place}]
    for quoted in (f"`{name}`", shown):
        ran = deployer("sql", f"SELECT {quoted} AS n, t.{quoted} FROM air.odd t WHERE {quoted} > 299", "--json")  # noqa: S608
        assert ran.code == 0, ran.err
        assert ran.json["rows"] == [{"n": 300 + place, name: 300 + place}]


@pytest.mark.full
def test_other_commands_show_the_names(filled: Path, deployer: Deployer) -> None:
    for arguments in (("describe", "air.odd"), ("history", "air.odd"), ("state", "show", "air.odd"), ("tables",)):
        ran = deployer(*arguments)
        assert ran.code == 0, ran.err
    described = deployer("describe", "air.odd", "--json").json
    assert [each["name"] for each in described["columns"]] == [*ALL, "my fields"]
    assert deployer("state", "verify").code == 0
    assert deployer("graph").code == 0
    assert deployer("report", "--html", "report.html").code == 0
    assert "a<b>" not in (filled / "report.html").read_text(encoding="utf-8")
    for form in ("csv", "json", "parquet"):
        ran = deployer("query", "air.odd", "--format", form, "--output", f"all.{form}")
        assert ran.code == 0, ran.err
    assert pq.read_table(filled / "all.parquet").column_names == [*ALL, "my fields"]
    with (filled / "all.csv").open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == [*ALL, "my fields"]


@pytest.mark.full
def test_columns_are_renamed_converted_added_and_dropped(filled: Path, deployer: Deployer) -> None:
    kept = [each for each in columns() if each["name"] in KEYS]
    others = [each for each in columns()[:-1] if each["name"] not in KEYS]
    renamed = [{**each, "name": f"{each['name']} (2)", "renamed_from": each["name"]} for each in others]
    fields = [{"name": f"{name} (2)", "type": "int64", "renamed_from": name} for name in ALL]
    nested = {"name": "my fields", "type": {"struct": fields}}
    declare(filled, document([*kept, *renamed, nested]))
    applied(deployer)
    names = [each["name"] for each in others]
    assert dataset(filled).schema.names == [
        *sorted(KEYS, key=ALL.index),
        *(f"{name} (2)" for name in names),
        "my fields",
    ]
    [first] = found(deployer, "--where", f"`{WORST}` = {row(1)[WORST]}")
    assert {name: first[f"{name} (2)"] for name in names} == {name: row(1)[name] for name in names}
    assert first["my fields"] == {f"{name} (2)": value for name, value in row(1)["my fields"].items()}

    texts = [{"name": f"{name} (2)", "type": "string", "using": f"concat('n', `{name} (2)`)"} for name in names]
    added = [{"name": f"new {name}", "type": "int64", "default": f'"{name}" + 1'} for name in KEYS if '"' not in name]
    declare(filled, document([*kept, *texts, *added]))
    applied(deployer, "--allow-destroy", "table/air.odd")
    [first] = found(deployer, "--where", f"`{WORST}` = {row(1)[WORST]}")
    assert {name: first[f"{name} (2)"] for name in names} == {name: f"n{row(1)[name]}" for name in names}
    assert first["new Total Amount"] == row(1)["Total Amount"] + 1
    assert "my fields" not in first


INDEXED = (WORST, "it's", "2024", "null", 'a" or 1=1 --', " lead")


@pytest.mark.full
def test_keys_partitions_indexes_and_services_take_the_names(filled: Path, deployer: Deployer) -> None:
    keys = ["it's", 'width "']
    new = [{**each, "nullable": each["name"] not in keys} for each in columns()[:-1]] + columns()[-1:]
    words = [{"name": "a text", "type": "string"}, {"name": "a (vector)", "type": "vector<float32, 2>"}]
    indexes = [
        *({"kind": "btree", "columns": [name]} for name in INDEXED),
        {"kind": "bitmap", "columns": [f"my fields.{WORST}"]},
        {"kind": "inverted", "columns": ["a text"]},
        {"kind": "ivf_flat", "columns": ["a (vector)"], "num_partitions": 1},
    ]
    cluster = {"options": {"columns": [WORST, "50%", f"my fields.{WORST}"], "curve": "hilbert"}}
    more = {
        "row_keys": keys,
        "sort_keys": ["Amount, net"],
        "partitions": {"split_points": [[row(2)[name] for name in keys]]},
        "indexes": indexes,
        "services": {"cluster": cluster, "compact": {"trigger_mode": "ON_DEMAND"}},
    }
    declare(filled, document([*new, *words], **more))
    applied(deployer)
    texts = {"a text": "hello world", "a (vector)": [0.5, 1.0]}
    (filled / "four.json").write_text(json.dumps(row(4) | texts) + "\n", encoding="utf-8")
    loaded(deployer, "four.json")
    assert deployer("preview", "--exit-code").code == 0
    described = deployer("describe", "air.odd", "--json").json
    assert {each["status"] for each in described["indexes"]} == {"ready"}
    for name in INDEXED:
        place = ALL.index(name)
        assert "ScalarIndex" in dataset(filled).scanner(filter=f"`{name}` = 1").explain_plan()
        assert [each[name] for each in found(deployer, "--where", f"`{name}` > {300 + place}")] == [400 + place]
    for kind in ("compact", "cluster"):
        ran = deployer("service", "run", "air.odd", kind)
        assert ran.code == 0, ran.out + ran.err
    assert [each[WORST] for each in found(deployer, "--columns", '"' + WORST.replace('"', '""') + '"')] == [
        row(number)[WORST] for number in (1, 2, 3, 4)
    ]


@pytest.mark.full
def test_drift_of_odd_columns_is_written_into_the_spec(filled: Path, deployer: Deployer) -> None:
    kept = (*KEYS, "null", "a: b", "# rows")
    for name in (each for each in ALL if each not in kept):
        dataset(filled).alter_columns({"path": name, "name": f"{name} (2)"})
    dataset(filled).drop_columns(["a: b"])
    dataset(filled).add_columns({"yes: [x], {y} ${z} # \\": "`# rows` + 1"})
    dataset(filled).alter_columns({"path": f"my fields.{WORST}", "name": "the: worst"})
    assert deployer("drift").code == 2
    ran = deployer("drift", "--write-spec")
    assert ran.code == 0, ran.out + ran.err
    again = deployer("preview", "--exit-code")
    assert again.code == 0, again.out + again.err
    names = yaml.safe_load((filled / "specs" / "odd.yaml").read_text(encoding="utf-8").replace("$${", "${"))["columns"]
    assert [each["name"] for each in names] == dataset(filled).schema.names


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("copied", [False, True], ids=["in-place", "copy"])
def test_a_dataset_is_imported_with_its_names(deployer: Deployer, project: Path, copied: bool) -> None:
    place = project / "elsewhere.lance" if copied else project / ROOT / "air" / "odd.lance"
    more = "${not a variable}"
    rows = pa.Table.from_pylist([row(1) | {more: 5}], schema=TYPES.append(pa.field(more, pa.int64())))
    place.parent.mkdir(parents=True, exist_ok=True)
    written = lance.write_dataset(rows, str(place), data_storage_version="2.1")
    written.create_scalar_index("Total Amount", "BTREE", name="Total Amount_idx")
    ran = deployer("import", "table/air.odd", str(place), *(("--row-keys", '"Amount, net",2024') if copied else ()))
    assert ran.code == 0, ran.err
    applied(deployer)
    assert found(deployer) == [row(1) | {more: 5}]
    described = deployer("describe", "air.odd", "--json").json
    assert [each["name"] for each in described["columns"]] == [*ALL, "my fields", more]
    assert [each["name"] for each in described["indexes"]] == ([] if copied else ["Total Amount_idx"])
    assert described["row_keys"] == (["Amount, net", "2024"] if copied else [])


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_are_imported_with_their_names(deployer: Deployer, project: Path, form: str) -> None:
    flat = {name: value for name, value in row(1).items() if name != "my fields"}
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist([flat]), project / "odd.parquet")
    else:
        with (project / "odd.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([[*flat], [*flat.values()]])
    assert deployer("import", "table/air.odd", f"odd.{form}").code == 0
    applied(deployer)
    assert found(deployer) == [flat]


MISTAKES = {
    "bare": ("--where", "Total Amount > 3", "write the column in backticks: `Total Amount`"),
    "double quotes": ("--where", '"Total Amount" > 3', "write `Total Amount` in backticks for the column"),
    "another case": ("--where", '"total amount" > 3', "write `Total Amount` in backticks for the column"),
    "double quotes for text": ("--where", "\"it's\" = 'x'", "or 'it''s' for the text"),
    "misspelt": ("--where", "`Total amont` > 3", "there is no column 'Total amont'; did you mean 'Total Amount'?"),
    "bare percent": ("--where", "50% > 3", "write the column in backticks: `50%`"),
    "comma": ("--columns", "Amount, net", "there is no column 'Amount'"),
    "open quote": ("--columns", '"Amount, net', "has a quote without its other half"),
    "range": ("--range", "Total=1..2", "there is no column 'Total'"),
    "injection": ("--where", "` OR 1=1 --` > 3", "there is no column ' OR 1=1 --'"),
}


def test_a_mistake_is_answered_with_the_quoted_name(filled: Path, deployer: Deployer) -> None:
    for option, text, said in MISTAKES.values():
        ran = deployer("query", "air.odd", option, text)
        assert ran.code == 1, ran.out
        assert said in " ".join(ran.err.split())


def test_names_that_are_sql_find_nothing_else(filled: Path, deployer: Deployer) -> None:
    for name in (name for key, name in NAMES.items() if key.startswith("injection")):
        assert found(deployer, "--where", f"`{name}` < 0") == []
        assert found(deployer, "--range", f"{name}=..0") == []
        ran = deployer("query", "air.odd", "--columns", name.replace('"', "`"))
        assert (ran.code, "there is no column" in ran.err) == ((1, True) if '"' in name else (0, False))


def test_sql_with_a_name_in_no_quotes_is_answered_with_the_quoted_name(filled: Path, deployer: Deployer) -> None:
    ran = deployer("sql", "SELECT upper FROM air.odd")
    assert ran.code == 1
    assert "there is no column 'upper'; did you mean `UPPER`?" in " ".join(ran.err.split())


def test_a_table_is_added_with_odd_columns(project: Path, deployer: Deployer) -> None:
    assert deployer("up", "--yes").code == 0
    given = ("Total Amount:int64", '"a: b":float64 not null', '"width """:string', "it's:struct<x: int64>")
    options = [part for column in given for part in ("--column", column)]
    ran = deployer("table", "add", "air.odd", *options, "--row-key", "Total Amount", "--write-spec")
    assert ran.code == 0, ran.err
    assert 'by "Total Amount"' in ran.out
    described = deployer("describe", "air.odd", "--json").json
    assert [each["name"] for each in described["columns"]] == ["Total Amount", "a: b", 'width "', "it's"]
    assert deployer("preview", "--exit-code").code == 0


def test_possible_row_keys_are_a_comment_that_is_yaml(tmp_path: Path, deployer: Deployer) -> None:
    pq.write_table(pa.table({"order, id": [1, 2, 2], "2nd id": [1, 1, 2], "n": [5, 6, 7]}), tmp_path / "t.parquet")
    ran = deployer("schema", "infer", str(tmp_path / "t.parquet"))
    [line] = (line for line in ran.out.splitlines() if line.startswith("# row_keys:"))
    assert yaml.safe_load(line.removeprefix("# ")) == {"row_keys": ["order, id", "2nd id"]}


def test_bad_rows_are_reported_with_the_names(filled: Path, deployer: Deployer) -> None:
    with (filled / "bad.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([ALL, [*range(len(ALL))], ["x"] * len(ALL)])
    given = ("ingest", "air.odd", "bad.csv", "--missing-as-null", "--bad-rows", "bad.jsonl")
    ran = deployer(*given)
    assert ran.code == 0, ran.err
    [bad] = (json.loads(line) for line in (filled / "bad.jsonl").read_text(encoding="utf-8").splitlines())
    assert {bad[name] for name in ALL} == {"x"}
