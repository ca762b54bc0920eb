"""F13: `doctor --write-policy` writes policies that IAM takes, named so that the stack's roles find their boundary."""

from __future__ import annotations

import json

import pytest

from deployer.compute.iam.lake import LakeOnAws
from deployer.compute.iam.policy_files import MOST_CHARACTERS, characters, policies
from deployer.specs import load_lake
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project, table
from tests.stacks.conftest import REGION, MakeProject

pytestmark = pytest.mark.full

CLUSTERS = "clusters:\n  small: {kind: emr-serverless, release: emr-7.12.0}\n"


def test_the_policies_of_a_lake_are_written(on_aws: MakeProject, deployer: Deployer) -> None:
    """F13: each file is one managed policy, and the boundary has the name that the deploying role's policies expect."""
    project = on_aws(CLUSTERS)
    ran = deployer("doctor", "--write-policy", "iam", "--json")
    assert ran.code == 0, ran.err
    lake = LakeOnAws.of(load_lake(project, project / "specs", "dev").instance, REGION, "123456789012")
    expected = {f"{lake.own}{name}.json": policy for name, policy in policies(lake).items()}
    written = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (project / "iam").iterdir()}
    assert written == json.loads(json.dumps(expected))
    assert ran.json["policies"] == {f"iam/{name}": characters(policy) for name, policy in expected.items()}
    assert max(ran.json["policies"].values()) <= MOST_CHARACTERS
    assert lake.boundary.endswith(f"policy/{lake.own}boundary") and f"{lake.own}boundary.json" in written
    assert "of 6,144 characters" in deployer("doctor", "--write-policy", "iam").out


def test_what_keeps_policies_from_being_written_is_said(
    on_aws: MakeProject, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F13: an error message, and no file."""
    project = on_aws(CLUSTERS)
    (project / "file").write_text("", encoding="utf-8")
    ran = deployer("doctor", "--write-policy", "file")
    assert (ran.code, "the policies cannot be written" in ran.err) == (3, True), ran.err
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(project / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(project / "none"))
    ran = deployer("doctor", "--write-policy", "iam")
    assert (ran.code, "there are no credentials" in ran.err) == (3, True), ran.err
    monkeypatch.chdir(make_project(project / "local", {"demo.yaml": INSTANCE, "flights.yaml": table("flights")}))
    ran = deployer("doctor", "--write-policy", "iam")
    assert (ran.code, "needs no policies" in ran.err) == (3, True), ran.err
    assert not (project / "iam").exists() and not (project / "local" / "iam").exists()
