"""Unique row keys from the command line: declared, refused, applied, loaded, taken over from drift and verified."""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from deployer.live.reader import live_table
from deployer.state import open_store
from deployer.tables.admin.tables import update_table
from deployer.tables.read.table import open_table
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, applied_project, run, table

ROOT = "lakes/demo"
SPEC = Path("specs/flights.yaml")


def load() -> None:
    Path("first.csv").write_text("id,delay\n1,10\n2,20\n3,30\n4,40\n2,25\n", encoding="utf-8")
    run("ingest", "flights", "first.csv")


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a table of five flights, one of which occurs twice; the current folder."""
    folder = applied_project(
        tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": table("flights", "delay: int32")}, load
    )
    monkeypatch.chdir(folder)
    return folder


def located() -> str:
    return open_table(ROOT, "air.flights").opened.location


def test_keys_become_unique(applied: Path, deployer: Deployer) -> None:
    SPEC.write_text(table("flights", "delay: int32", more="unique: true\n"), encoding="utf-8")
    planned = deployer("preview")
    assert "row keys id are unique" in planned.out and "1 of 5 rows have row keys that another row has" in planned.out
    refused = deployer("up", "--yes")
    assert refused.code == 3 and "such as id=2; remove all but one of the rows of each key" in refused.out + refused.err
    lance.dataset(located()).delete("delay = 25")
    assert "none of 4 rows has the row keys of another" in deployer("preview").out
    assert deployer("up", "--yes").code == 0
    assert "nothing to do" in deployer("preview").out
    assert "id (unique)" in deployer("describe", "flights").out
    assert deployer("describe", "flights", "--json").json["unique"] is True
    assert "unique: true" in deployer("render").out


def test_keys_of_a_column_that_is_converted_are_compared_as_they_become(applied: Path, deployer: Deployer) -> None:
    lance.dataset(located()).delete("delay = 25")
    spec = table("flights", "delay: int32").replace("row_keys: [id]", "row_keys: [delay]\nunique: true")
    shorter = "{name: delay, type: int16, nullable: false, using: delay / 100}"
    SPEC.write_text(re.sub(r"\{ *name: delay.*?\}", shorter, spec), encoding="utf-8")
    planned = deployer("preview")
    assert planned.code == 0 and "has the row keys of another" not in planned.out
    refused = deployer("up", "--yes")
    assert refused.code != 0 and "3 of 4 rows have row keys that another row has" in refused.out + refused.err
    assert sorted(open_table(ROOT, "air.flights").scan().to_table()["id"].to_pylist()) == [1, 2, 3, 4]


def test_loads_of_a_unique_table(applied: Path, deployer: Deployer) -> None:
    lance.dataset(located()).delete("delay = 25")
    SPEC.write_text(table("flights", "delay: int32", more="unique: true\n"), encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    Path("more.csv").write_text("id,delay\n5,50\n3,33\n5,55\n", encoding="utf-8")
    refused = deployer("ingest", "flights", "more.csv")
    assert refused.code == 3 and "2 of 3 rows have keys that the table or the load already has (first: id=3, id=5)" in (
        " ".join(refused.err.split())
    )
    done = deployer("ingest", "flights", "more.csv", "--on-duplicate", "skip")
    assert done.code == 0 and "1 row added" in done.out and "2 rows were skipped, whose keys exist already" in done.out
    again = deployer("ingest", "flights", "more.csv", "--on-duplicate", "skip", "--json").json
    assert (again["rows"], again["duplicates_skipped"], again["bad_rows"]) == (0, 3, 0)
    Path("other.csv").write_text("id,delay\n6,60\n1,11\n", encoding="utf-8")
    aside = deployer("ingest", "flights", "other.csv", "more.csv", "--bad-rows", "bad.jsonl")
    assert aside.code == 0 and "4 bad rows were set aside" in aside.out
    assert "more.csv was loaded before, as version" in aside.err and "twice" not in aside.err
    rows = [json.loads(line) for line in Path("bad.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["delay"]) for row in rows] == [(1, 11), (5, 50), (3, 33), (5, 55)]
    assert deployer("ingest", "flights", "bad.jsonl").code == 3
    assert deployer("state", "verify", "--full").code == 0
    lance.write_dataset(pa.table({"id": [6], "delay": pa.array([7], pa.int32())}), located(), mode="append")
    assert deployer("ingest", "flights", "other.csv", "--on-duplicate", "skip").code == 0
    found = deployer("state", "verify", "--full")
    assert found.code == 2 and "1 row has the row key of another, such as id=6" in " ".join(found.out.split())


def test_drift_of_unique_keys_becomes_the_spec(applied: Path, deployer: Deployer) -> None:
    lance.dataset(located()).delete("delay = 25")
    with closing(open_store(ROOT)) as store:
        for unique in (True, False):
            opened = open_table(ROOT, "air.flights").opened
            spec = live_table(opened.entry, opened.state).spec
            update_table(store, ROOT, opened.entry.table_id, replace(spec, unique=unique))
            found = deployer("drift", "--write-spec")
            assert ("row keys id are unique" if unique else "row keys need not be unique") in found.out
            assert ("unique: true" in SPEC.read_text(encoding="utf-8")) is unique
            assert "nothing to do" in deployer("preview").out


def test_a_table_that_is_added_with_unique_keys(applied: Path, deployer: Deployer) -> None:
    made = deployer("table", "add", "air.gates", "--column", "id:int64", "--row-key", "id", "--unique", "--write-spec")
    assert made.code == 0 and "by id (unique)" in made.out
    (path,) = (line.removeprefix("wrote ") for line in made.out.splitlines() if line.startswith("wrote "))
    assert "row_keys:\n  - id\nunique: true\n" in Path(path).read_text(encoding="utf-8")
    assert "nothing to do" in deployer("preview").out
    without = deployer("table", "add", "air.more", "--column", "id:int64", "--unique")
    assert without.code == 1 and "has no row keys" in without.err
