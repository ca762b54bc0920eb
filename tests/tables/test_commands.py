"""The commands on data, as a user runs them after `up`."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow.parquet as pq
import pytest

from deployer.cli.main import run
from tests.projects import INSTANCE, applied_project

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
    monkeypatch.chdir(applied_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": TABLE}))
    (tmp_path / "project" / "in.csv").write_text(CSV, encoding="utf-8")

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(arguments)
        return code, *capsys.readouterr()

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
        (["ingest", "flights", "in.csv", "--delimiter", "§"], "is not one character of ASCII"),
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


@pytest.mark.parametrize(
    ("condition", "rows"), [("on true", 16), ("on false", 0), ("on a.flight = b.flight where null", 0)]
)
def test_conditions_without_columns(condition: str, rows: int, loaded: Run) -> None:
    query = f"select count(*) n from flights a join air.flights b {condition}"  # noqa: S608
    assert told(loaded, "sql", query)["rows"] == [{"n": rows}]


@pytest.mark.parametrize("command_name", ["query", "sql"])
def test_a_limit_that_is_too_large_is_a_wrong_option(command_name: str, loaded: Run) -> None:
    what = "flights" if command_name == "query" else "select * from flights"
    code, _, notes = loaded(command_name, what, "--limit", "9" * 21)
    assert code != 0 and "--limit" in notes and "is not in the range" in notes and "Traceback" not in notes
    assert loaded(command_name, what, "--limit", str(2**63 - 1), "--json")[0] == 0


@pytest.mark.thinned(2, to="full")
@pytest.mark.parametrize("place", ["pipe", "file"])
def test_parquet_goes_to_a_pipe(place: str, loaded: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "deployer", "query", "flights", "--format", "parquet"]
    environment = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS")}
    if place == "pipe":
        data = subprocess.run(program, check=True, capture_output=True, env=environment).stdout
    else:
        with (tmp_path / "out").open("wb") as file:
            subprocess.run(program, check=True, stdout=file, env=environment)
        data = (tmp_path / "out").read_bytes()
    assert pq.read_table(io.BytesIO(data)).num_rows == 4
    refused = subprocess.run(program, check=False, capture_output=True, env={**environment, "CI": "1"})
    assert refused.returncode == 1 and b"the log of a CI system" in refused.stderr


def test_keys_of_an_older_version_are_of_its_row_keys(loaded: Run) -> None:
    spec = Path("specs/flights.yaml")
    changed = TABLE.replace("row_keys: [carrier, flight]", "row_keys: [flight, carrier]").replace(
        "split_points: [B6, [DL, 500]]", "split_points: [500]"
    )
    spec.write_text(changed, encoding="utf-8")
    assert loaded("up", "--yes")[0] == 0
    query = ("query", "flights", "--columns", "flight", "--format", "csv")
    code, out, notes = loaded(*query, "--keys", "DL", "--at", "1:2")
    assert (code, out.split()) == (
        0,
        ["flight", "3", "700"],
    ) and "row keys of that version are carrier, flight" in notes
    assert loaded(*query, "--range", "carrier=DL..DL", "--at", "1:2")[1].split() == ["flight", "3", "700"]
    assert loaded(*query, "--keys", "3")[1].split() == ["flight", "3"]
    renamed = changed.replace("name: flight, ", "name: number, renamed_from: flight, ")
    renamed = renamed.replace("row_keys: [flight", "row_keys: [number")
    spec.write_text(renamed, encoding="utf-8")
    code, _, notes = loaded("up", "--yes")
    assert code == 0, notes
    version = told(loaded, "history", "flights")["versions"][1]["version"]
    assert loaded(*query, "--keys", "3", "--at", str(version))[1].split() == ["flight", "3"]


@pytest.mark.parametrize("write", ["append", "delete", "overwrite"])
def test_the_last_write_may_be_by_others(write: str, loaded: Run) -> None:
    def last_write() -> str:
        return str(told(loaded, "tables")["tables"][0]["last_write"])

    before = last_write()
    (location,) = Path("lakes/demo/air").glob("flights-*.lance")
    dataset = lance.dataset(str(location))
    if write == "delete":
        dataset.delete("flight = 3")
    else:
        lance.write_dataset(dataset.to_table(), str(location), mode=write)
    after = last_write()
    assert after > before
    assert loaded("tables")[0] == 0 and loaded("up", "--yes")[0] == 0  # whatever records it
    assert last_write() == after
    assert loaded("ingest", "flights", "in.csv", "--null-value", "NA")[0] == 0
    assert last_write() > after
