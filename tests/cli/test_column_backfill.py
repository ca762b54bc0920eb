"""`deployer column backfill|plan|errors` and `deployer job`: what they compute and print."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project

FLIGHTS = """\
kind: Table
database: air
name: flights
columns:
  - { name: flight, type: int32, nullable: false }
  - { name: distance, type: float64 }
  - { name: km, type: float64, computed: { sql: "distance * 1.5" } }
  - { name: label, type: string, computed: { udf: "features:label", inputs: [flight], version: "1" } }
row_keys: [flight]
"""
FEATURES = """\
from deployer.functions import skip, udf

@udf(on_error=skip(ValueError))
def label(flight: int) -> str:
    if flight == 7:
        raise ValueError("seven")
    return f"flight {flight}"
"""


@pytest.fixture
def applied(deployer: Deployer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a table of 20 rows and two computed columns; the current folder."""
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": FLIGHTS})
    (folder / "features.py").write_text(FEATURES)
    monkeypatch.chdir(folder)
    assert deployer("up", "--yes").code == 0
    rows = {"flight": pa.array(range(20), pa.int32()), "distance": pa.array(map(float, range(20)), pa.float64())}
    pq.write_table(pa.table(rows), "flights.parquet")
    ingested = deployer("ingest", "flights", "flights.parquet", "--missing-as-null")
    assert ingested.code == 0, ingested.err
    return folder


@pytest.mark.usefixtures("applied")
def test_a_column_is_planned_computed_and_listed(deployer: Deployer) -> None:
    planned = deployer("column", "plan", "flights", "km")
    assert planned.code == 0 and "20 rows to compute in 1 of 1 fragments, as 1 commit" in planned.out
    assert "100% not computed" in planned.out
    done = deployer("column", "backfill", "flights", "km", "--job-id", "monday")
    assert done.code == 0 and "computed km of 20 rows in 1 fragment" in done.out and "(job monday)" in done.out
    assert deployer("query", "flights", "--where", "flight = 4", "--json").json["rows"][0]["km"] == 6.0
    assert "job monday was done before" in deployer("column", "backfill", "flights", "km", "--job-id", "monday").out
    assert "all rows of km are computed; nothing was written" in deployer("column", "backfill", "flights", "km").out
    document = deployer("column", "plan", "flights", "km", "--json").json
    assert (document["rows"], list(document["by_version"].values())) == (0, [20])
    assert deployer("drift").code == 0


@pytest.mark.usefixtures("applied")
def test_failed_rows_are_listed(deployer: Deployer) -> None:
    done = deployer("column", "backfill", "flights", "label", "--job-id", "monday")
    assert done.code == 0, done.err
    assert "1 row failed" in done.out and "deployer column errors air.flights --job-id monday" in done.err
    shown = deployer("column", "errors", "flights")
    assert shown.code == 0 and "flight 7" in shown.out and "ValueError: seven" in shown.out
    [found] = deployer("column", "errors", "flights", "--job-id", "monday", "--type", "ValueError", "--json").json[
        "errors"
    ]
    assert found["row_key"] == {"flight": 7} and found["at"].endswith("+00:00")
    assert deployer("column", "errors", "flights", "--column", "km", "--json").json["errors"] == []
    assert deployer("query", "flights", "--where", "flight = 8", "--json").json["rows"][0]["label"] == "flight 8"


@pytest.mark.usefixtures("applied")
def test_jobs_are_listed_shown_and_cancelled(deployer: Deployer) -> None:
    assert "there are no jobs yet" in deployer("job", "list").err
    deployer("column", "backfill", "flights", "km", "--job-id", "monday")
    listed = deployer("job", "list", "--json").json["jobs"]
    assert [(each["job_id"], each["status"], each["columns"], each["rows"]) for each in listed] == [
        ("monday", "DONE", ["km"], 20)
    ]
    assert all(listed[0][name].endswith("+00:00") for name in ("queued_at", "started_at", "ended_at"))
    assert "monday" in deployer("job", "list", "--table", "flights").out
    shown = deployer("job", "show", "monday")
    assert shown.code == 0 and "job monday: BACKFILL of km of air.flights" in shown.out and "DONE: 20 rows" in shown.out
    assert deployer("job", "show", "monday", "--follow").out.strip() == "DONE: 20 rows"
    assert "job monday is not running" in deployer("job", "cancel", "monday").err
    missing = deployer("job", "show", "mondays")
    assert missing.code == 1 and "there is no job 'mondays'" in missing.err and "did you mean 'monday'" in missing.err


@pytest.mark.usefixtures("applied")
def test_options_of_clusters(deployer: Deployer) -> None:
    for arguments, words in (
        (("--cluster", "large"), "no cluster 'large' is declared"),
        (("--detach",), "--detach is for clusters on AWS"),
        (("--task-size", "0"), "task_size=0 is not a positive whole number"),
    ):
        ran = deployer("column", "backfill", "flights", "km", *arguments)
        assert ran.code == 1 and words in ran.err


@pytest.mark.spark
@pytest.mark.usefixtures("applied", "spark")
def test_spark_is_used_where_it_is_asked_for(deployer: Deployer) -> None:
    """Its workers do not find the modules of the project: the function goes along by value."""
    ran = deployer("column", "backfill", "flights", "label", "--engine", "spark")
    assert ran.code == 0, ran.err
    assert "computing with Spark: as asked for (up to 20 rows)" in ran.err
    assert "computed label of 20 rows in 1 fragment" in ran.out and "1 row failed" in ran.out
    assert deployer("query", "flights", "--where", "flight = 8", "--json").json["rows"][0]["label"] == "flight 8"


@pytest.mark.usefixtures("applied")
def test_bad_input_is_named(deployer: Deployer) -> None:
    for arguments, words in (
        (("distance",), "column distance is not computed"),
        (("kmm",), "there is no column 'kmm'"),
        (("km", "--where", "flight +"), "is not one SQL expression"),
        (("km", "--skip-frags", "5"), "skips all of the 1 fragments"),
    ):
        ran = deployer("column", "backfill", "flights", *arguments)
        assert ran.code == 1 and words in ran.err and "Traceback" not in ran.err and "resumes" not in ran.err
