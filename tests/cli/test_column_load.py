"""`deployer column load`: what it writes and prints, its drift, and the spec that declares the column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, applied_project, run

FLIGHTS = """\
kind: Table
database: air
name: flights
columns:
  - { name: flight, type: int32, nullable: false }
row_keys: [flight]
"""


def fill() -> None:
    pq.write_table(pa.table({"flight": pa.array(range(20), pa.int32())}), "flights.parquet")
    run("ingest", "flights", "flights.parquet")
    pq.write_table(pa.table({"flight": range(15), "label": [f"l{i}" for i in range(15)]}), "labels.parquet")


@pytest.fixture
def applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a table of 20 rows, and `labels.parquet` for 15 of them; the current folder."""
    folder = applied_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": FLIGHTS}, fill)
    monkeypatch.chdir(folder)
    return folder


def load(deployer: Deployer, *more: str) -> tuple[int, str]:
    ran = deployer("column", "load", "flights", "labels.parquet", "--pk", "flight", "--columns", "label", *more)
    return ran.code, ran.out + ran.err


@pytest.mark.usefixtures("applied")
def test_a_column_is_loaded_and_declared(deployer: Deployer) -> None:
    code, out = load(deployer, "--job-id", "monday")
    assert code == 0 and "loaded label of 20 rows in 1 fragment" in out and "added label (job monday)" in out
    assert "the new columns are drift" in out
    assert deployer("query", "flights", "--where", "flight = 3", "--json").json["rows"] == [
        {"flight": 3, "label": "l3"}
    ]
    assert "job monday was done before; nothing was written" in load(deployer, "--job-id", "monday")[1]
    assert deployer("drift").code == 2
    code, out = load(deployer, "--write-spec")
    assert code == 0 and "edited specs/flights.yaml" in out
    assert deployer("drift").code == 0 and deployer("preview", "--exit-code").code == 0
    runs = deployer("service", "runs", "flights", "--json").json["runs"]
    assert [run["service"] for run in runs] == ["LOAD_COLUMNS", "LOAD_COLUMNS"]


@pytest.mark.usefixtures("applied")
def test_what_is_missing_is_named(deployer: Deployer) -> None:
    code, out = load(deployer, "--on-missing", "error")
    assert code == 3 and "5 of 20 rows have no match in the source: flight 15, 16, 17, 18, 19" in out
    assert "resumes it" in out
    ran = deployer("column", "load", "flights", "labels.parquet", "--pk", "fligth", "--columns", "label", "--json")
    assert ran.code == 1 and "has no column fligth" in ran.json["error"]["what"]
    assert deployer("drift").code == 0


@pytest.mark.usefixtures("applied")
def test_options_of_clusters(deployer: Deployer) -> None:
    code, out = load(deployer, "--cluster", "large")
    assert code == 1 and "no cluster 'large' is declared" in out
    code, out = load(deployer, "--detach")
    assert code == 1 and "--detach is for clusters on AWS" in out
    assert load(deployer, "--engine", "driver")[0] == 0


@pytest.mark.spark
@pytest.mark.usefixtures("applied", "spark")
def test_spark_is_used_where_it_is_asked_for(deployer: Deployer) -> None:
    code, out = load(deployer, "--engine", "spark")
    assert code == 0, out
    assert "loading with Spark: as asked for (about 15 rows" in out
    assert "loaded label of 20 rows in 1 fragment" in out
    assert deployer("query", "flights", "--where", "flight = 3", "--json").json["rows"][0]["label"] == "l3"
