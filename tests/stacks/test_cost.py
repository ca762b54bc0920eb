"""`deployer cost`, and the cost in previews, for a lake on moto's S3."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project, table
from tests.stacks.conftest import REGION, MakeProject, bucket_of

pytestmark = pytest.mark.full

CLUSTERS = "clusters:\n  small: {kind: emr-serverless, release: emr-7.12.0, max_workers: 10}\n"
PRICES = """\
format: 1
dated: 2026-01-31
currency: EUR
regions:
  eu-central-1:
    s3-storage: 1000000
    s3-writes: 0
    dynamodb-writes: 0
    kms-key: 0
    dynamodb-storage: 0
    dynamodb-recovery: 0
    logs-ingested: 0
    logs-kept: 0
    emr-serverless-vcpu-arm64: 1
    alarm: 0
    emr-serverless-memory-arm64: 0
"""


def setting(project: Path, text: str) -> None:
    (project / "Pulumi.dev.yaml").write_text(f"config:\n{text}", encoding="utf-8")


def test_the_whole_life(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws()
    (project / "prices.yaml").write_text(PRICES, encoding="utf-8")
    setting(project, "  deployer:prices: prices.yaml\n  deployer:assume: runs_per_day=8, workers=1\n")
    shown = deployer("preview")
    assert "\nCost: no change (0.00 EUR a month), by prices of 2026-01-31 in eu-central-1\n" in shown.out
    assert deployer("up", "--yes").code == 0
    assert "Cost" not in deployer("preview").out and "cost" not in deployer("preview", "--json").json

    (project / "rows.csv").write_text("id,delay\n" + "".join(f"{n},1\n" for n in range(20_000)), encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv").code == 0
    size = deployer("tables", "--json").json["tables"][0]["bytes"]
    found = deployer("cost", "--json").json
    assert found["lines"][0]["quantity"] == pytest.approx(size / 1024**3) and not found["unknown"]
    assert found["monthly_known"] == pytest.approx(size / 1024**3 * 1e6, rel=1e-3)
    assert (found["region"], found["currency"], found["assumptions"]["runs_per_day"]) == (REGION, "EUR", 8)

    specs = project / "specs" / "demo.yaml"
    specs.write_text(specs.read_text(encoding="utf-8") + CLUSTERS, encoding="utf-8")
    document = deployer("preview", "--json").json["cost"]
    hours = 8 * 365.25 / 12 * 0.5 * 2 * 4  # a worker and a driver of four vCPUs
    assert document["monthly_change"] == pytest.approx(hours, rel=1e-3) and document["unknown"] == []
    for form in ("tree", "markdown", "html"):
        assert re.search(r"about \+974\.00 EUR a month", deployer("preview", "--format", form).out), form
    told = deployer("cost", "--assume", "runs_per_day=0", "--format", "markdown").out
    assert "### Cost of `demo` a month: " in told and "runs\\_per\\_day=0" in told

    other = deployer("cost", "--prices", "none.yaml")
    assert (other.code, "none.yaml: this price file does not exist" in other.err) == (1, True)
    table_name = next(line["resource"] for line in found["lines"] if line["resource"].startswith("state-table/"))
    (project / "specs" / "flights.yaml").unlink()
    less = deployer("preview", "--json", "--allow-destroy", "table/air.flights").json["cost"]
    assert less["monthly_after"] == pytest.approx(hours, rel=1e-3) and table_name not in str(less["unknown"])


def test_prices_of_this_release(on_aws: MakeProject, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    on_aws(CLUSTERS)
    shown = deployer("cost")
    assert shown.code == 0 and "vCPUs of" not in shown.out
    assert "eu-central-1; prices of 20" in shown.out and "2 lines are unknown" in shown.out
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert "unknown" not in deployer("cost").out


def test_without_region_or_credentials(
    on_aws: MakeProject, deployer: Deployer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_aws(CLUSTERS)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    ran = deployer("cost")
    assert ran.code == 0 and "no region is set, so no price is known: set AWS_REGION" in ran.out
    assert "Total: at least 0.00 USD; 10 lines are unknown" in ran.out
    assert "the size of the lake is unknown" in ran.err and "no AWS credentials were found" in ran.err
    assert deployer("cost", "--json").json["region"] is None
    monkeypatch.setenv("AWS_PROFILE", "none")
    assert "no region is set" in deployer("cost").out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  deployer:assume: runs=1\n", "deployer:assume: no assumption is called 'runs'"),
        ("  deployer:prices: nowhere.yaml\n", "nowhere.yaml: this price file does not exist"),
    ],
)
def test_settings_that_are_wrong_are_said_in_previews_too(
    on_aws: MakeProject, deployer: Deployer, text: str, said: str
) -> None:
    setting(on_aws(), text)
    for command in ("cost", "preview"):
        ran = deployer(command)
        assert (ran.code, said in ran.err) == (1, True), ran.err


def test_settings_of_the_stack(on_aws: MakeProject, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Live state does not have them: what was applied is in Pulumi's state."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    project = on_aws("aws: {state_capacity: {read: 10, write: 10}}\n", tables="")
    assert deployer("up", "--yes").code == 0
    specs = project / "specs" / "demo.yaml"
    text = specs.read_text(encoding="utf-8")

    def change() -> float:
        found: float = deployer("preview", "--json").json["cost"]["monthly_change"]
        return found

    specs.write_text(text + "tags: {team: data}\n", encoding="utf-8")
    assert change() == 0
    hours = 365.25 / 12 * 24
    specs.write_text(text.replace("read: 10", "read: 110"), encoding="utf-8")
    assert change() == pytest.approx(100 * hours * 0.00013, rel=1e-3)
    specs.write_text(text.replace("aws: {", "aws: {kms_key: managed, "), encoding="utf-8")
    assert change() == pytest.approx(1.0)


def test_against_a_ref(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws()
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "first"]):
        identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
        subprocess.run(["git", "-C", str(project), *identity, *command], check=True, capture_output=True)
    specs = project / "specs" / "demo.yaml"
    specs.write_text(specs.read_text(encoding="utf-8") + CLUSTERS, encoding="utf-8")
    found = deployer("preview", "--against", "main", "--json").json["cost"]
    assert found["unknown"] == ["vCPUs of application/small", "memory of application/small"]
    assert found["monthly_change"] > 0
    (project / "specs" / "flights.yaml").unlink()
    found = deployer("preview", "--against", "main", "--json", "--allow-destroy", "table/air.flights").json["cost"]
    assert f"storage of bucket/{bucket_of(project)}" in found["unknown"]


def test_a_lake_on_a_disk_has_no_cost(tmp_path: Path, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(make_project(tmp_path / "p", {"demo.yaml": INSTANCE, "flights.yaml": table("flights")}))
    for options in ([], ["--json"], ["--format", "markdown"], ["--format", "html"]):
        assert "cost" not in deployer("preview", *options).out.lower()
    ran = deployer("cost")
    assert (ran.code, ran.out, "is on a disk, so it costs nothing" in ran.err) == (0, "", True)
    assert deployer("cost", "--json").json["lines"] == []


def test_a_saved_plan_has_it_too(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws()
    assert deployer("preview", "--out", "demo.plan").code == 0
    saved = json.loads((project / "demo.plan").read_text(encoding="utf-8"))
    assert saved["changes"]["cost"]["region"] == REGION
    shown = deployer("up", "demo.plan")
    assert (shown.code, "Cost: " in shown.out) == (0, True), shown.err
