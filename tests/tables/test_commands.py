"""The commands on data, as a user runs them after `up`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from deployer.cli.main import run
from tests.projects import INSTANCE, make_project

TABLE = """kind: Table
database: air
name: flights
columns:
  - { name: carrier, type: string, nullable: false, description: Two letters. }
  - { name: flight, type: int32, nullable: false }
  - { name: at, type: "timestamp[us, America/New_York]" }
row_keys: [carrier, flight]
partitions: { split_points: [B6, [DL, 500]] }
"""
CSV = "carrier,flight,at\nAA,1,2013-05-01T12:00:00Z\nDL,700,NA\nUA,5,NA\nDL,3,NA\n"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in an applied project with one loaded table; gives its exit code, output and notes."""
    monkeypatch.chdir(make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": TABLE}))
    (tmp_path / "project" / "in.csv").write_text(CSV, encoding="utf-8")

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(arguments)
        return code, *capsys.readouterr()

    assert call("up", "--yes")[0] == 0
    return call


@pytest.fixture
def loaded(command: Run) -> Run:
    assert command("ingest", "flights", "in.csv", "--null-value", "NA", "--job-id", "first")[0] == 0
    return command


def test_ingest_says_what_it_did(command: Run) -> None:
    code, out, notes = command("ingest", "air.flights", "in.csv", "--null-value", "NA", "--job-id", "first")
    assert code == 0 and out.startswith("air.flights: 4 rows added in 3 files")
    assert "loading in this process" in notes
    code, out, _ = command("ingest", "air.flights", "in.csv", "--job-id", "first")
    assert code == 0 and "job first was done before, as version 2" in out


def test_ingest_refuses_in_words(command: Run) -> None:
    code, out, notes = command("ingest", "flights", "in.csv")
    assert code == 3 and out == "" and "give --null-value NA" in notes and "Traceback" not in notes
    code, out, _ = command("ingest", "flights", "in.csv", "--bad-rows", "bad.jsonl", "--json")
    assert code == 0 and (json.loads(out)["rows"], json.loads(out)["bad_rows"]) == (1, 3)
    assert len(Path("bad.jsonl").read_text(encoding="utf-8").splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "expected", "note"),
    [
        (["--keys", "AA"], ["AA,1,2013-05-01T08:00:00-04:00"], "opened 1 of 3 fragments"),
        (["--keys", "DL,3", "--keys", "UA"], ["DL,3,", "UA,5,"], "opened 2 of 3 fragments"),
        (["--range", "carrier=AA..<DL", "--columns", "flight"], ["1"], "opened 1 of 3 fragments"),
        (["--range", "flight=4..", "--columns", "flight"], ["5", "700"], "of 3 fragments"),
        (["--where", "flight > 500", "--columns", "carrier, flight"], ["DL,700"], ""),
        (["--at", "1"], [], ""),
    ],
)
def test_query(arguments: list[str], expected: list[str], note: str, loaded: Run) -> None:
    code, out, notes = loaded("query", "flights", "--format", "csv", *arguments)
    assert code == 0 and sorted(out.splitlines()[1:]) == sorted(expected) and note in notes


def test_query_formats(loaded: Run) -> None:
    assert json.loads(loaded("query", "flights", "--json", "--limit", "2")[1])["fragments"] == 3
    lines = loaded("query", "flights", "--format", "json", "--keys", "AA")[1].splitlines()
    assert json.loads(lines[0])["flight"] == 1
    code, out, notes = loaded("query", "flights", "--limit", "1")
    assert code == 0 and "timestamp[us, America/New_York]" in out and "3 more rows (--limit 0 shows all)" in notes
    assert loaded("query", "flights", "--format", "parquet", "--output", "out.parquet")[0] == 0
    assert pq.read_table("out.parquet").num_rows == 4
    assert "give a file: --output FILE" in loaded("query", "flights", "--format", "parquet")[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["query", "flihts"], "did you mean 'flights'?"),
        (["query", "flights", "--keys", "AA,x"], "'x' is not a value of int32"),
        (["query", "flights", "--range", "att=1..2"], "did you mean 'at'?"),
        (["query", "flights", "--where", "flght = 1"], "did you mean 'flight'?"),
        (["sql", "delete from flights"], "only reads"),
        (["sql", "selec 1"], "cannot be read: Expected: an SQL statement, found: selec"),
        (["describe", "none"], "there is no table 'none'"),
        (["history", "none"], "there is no table 'none'"),
        (["ingest", "flights", "none.csv"], "no such file, folder or glob"),
        (["ingest", "flights", "in.csv", "--delimiter", "ab"], "is not one character"),
    ],
)
def test_mistakes_get_words(arguments: list[str], says: str, loaded: Run) -> None:
    code, out, notes = loaded(*arguments)
    assert code in (1, 3) and out == "" and says in notes and "Traceback" not in notes


def told(loaded: Run, *arguments: str) -> Any:
    code, out, _ = loaded(*arguments, "--json")
    assert code == 0 and loaded(*arguments)[0] == 0  # the form for people too
    return json.loads(out)


def test_tables_describe_history_and_sql(loaded: Run) -> None:
    [table] = told(loaded, "tables")["tables"]
    assert (table["name"], table["rows"], table["files"], table["leaves"]) == ("air.flights", 4, 3, 3)
    described = told(loaded, "describe", "flights")
    assert [leaf["rows"] for leaf in described["leaves"]] == [1, 1, 2]
    assert described["columns"][0]["description"] == "Two letters."
    versions = told(loaded, "history", "flights")["versions"]
    assert [(each["version"], each["kind"], each["job_id"]) for each in versions] == [
        (2, "ingest", "first"),
        (1, "create", ""),
    ]
    assert told(loaded, "sql", "select count(*) n from air.flights")["rows"] == [{"n": 4}]
