"""BACKFILL on EMR Serverless from end to end: the stack applied to moto with the project's modules and what it trusts,
and the job of its schedule, run as it was submitted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from tests.aws_provider.install import install_aws_provider
from tests.cli.conftest import Deployer
from tests.compute.runner import runner
from tests.projects import make_project
from tests.stacks.conftest import empty
from tests.stacks.test_services import decapitalised
from tests.wheelhouse import trust_wheelhouse

pytestmark = pytest.mark.full

BUCKET = "remote-backfill-lakes"
INSTANCE = f"""kind: Instance
name: demo
root: s3://{BUCKET}/demo
engine: embedded
clusters:
  small: {{kind: emr-serverless, release: emr-7.12.0, cores: 2, memory: 1g, max_workers: 2}}
"""
FLIGHTS = """kind: Table
database: air
name: flights
columns:
  - {name: id, type: int64, nullable: false}
  - {name: distance, type: int32}
  - {name: speed, type: float64, computed: {udf: "features.flights:speed", inputs: [distance], version: "1"}}
row_keys: [id]
services:
  backfill: {trigger: {schedule: "0 3 * * *"}}
"""
MODULE = "from . import units\n\ndef speed(distance: int) -> float:\n    return distance * units.FACTOR\n"
TRUSTED = "config:\n  deployer:trusted_functions: features.flights:speed\n"


@pytest.fixture
def project(aws: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    empty(aws)
    folder = make_project(tmp_path / "project", {"demo.yaml": INSTANCE, "flights.yaml": FLIGHTS})
    (folder / "features").mkdir()
    (folder / "features" / "__init__.py").write_text("")
    (folder / "features" / "flights.py").write_text(MODULE)
    (folder / "features" / "units.py").write_text("FACTOR = 2.5\n")
    (folder / "Pulumi.dev.yaml").write_text(TRUSTED)
    (folder / "rows.csv").write_text("id,distance\n1,10\n2,20\n")
    install_aws_provider(folder)
    trust_wheelhouse(folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def running(aws: str, tmp_path: Path) -> Iterator[list[str]]:
    failures: list[BaseException] = []
    with runner(aws, tmp_path / "cluster", BUCKET, failures) as commands:
        yield commands
    assert not failures


def speeds(deployer: Deployer) -> list[float | None]:
    rows = deployer("query", "air.flights", "--json").json["rows"]
    return [row["speed"] for row in sorted(rows, key=lambda row: row["id"])]


def run_schedule(at: str) -> str:
    """Starts what the schedule starts, as AWS does at that time; returns the state that its run comes to."""
    scheduler, emr = boto3.client("scheduler"), boto3.client("emr-serverless")
    [listed] = scheduler.list_schedules()["Schedules"]
    target = scheduler.get_schedule(GroupName=listed["GroupName"], Name=listed["Name"])["Target"]
    text = target["Input"].replace("<aws.scheduler.execution-id>", f"run{at[:4]}")
    run = emr.start_job_run(**decapitalised(json.loads(text.replace("<aws.scheduler.scheduled-time>", at))))
    for _ in range(600):
        state = emr.get_job_run(applicationId=run["applicationId"], jobRunId=run["jobRunId"])["jobRun"]["state"]
        if state in ("SUCCESS", "FAILED", "CANCELLED"):
            return str(state)
        time.sleep(0.2)
    raise AssertionError("the run of the schedule does not end")


def test_the_job_of_a_schedule_computes_columns_there(project: Path, deployer: Deployer, running: list[str]) -> None:
    applied = deployer("up", "--yes")
    assert applied.code == 0, applied.err
    assert deployer("ingest", "air.flights", "rows.csv", "--no-services").code == 0
    assert run_schedule("2027-03-22T03:00:00Z") == "SUCCESS"
    assert "modules.zip" in running[0] and speeds(deployer) == [25.0, 50.0]


def test_a_module_that_jobs_cannot_import_is_found_before_anything_is_applied(
    project: Path, deployer: Deployer
) -> None:
    (project / "features" / "units.py").write_text("import polars_of_no_one\nFACTOR = 2.5\n")
    failed = deployer("up", "--yes")
    assert failed.code == 1 and "module features.units imports polars_of_no_one" in " ".join(failed.err.split())
    assert not boto3.client("emr-serverless").list_applications()["applications"]
