"""A stack that a project's own copy of the program applied, as `init` of earlier releases wrote it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.archives import unpack
from tests.cli.conftest import Deployer
from tests.projects import REPOSITORY, table
from tests.stacks.conftest import MakeProject
from tests.stacks.test_aws import PROD, SERVICES

pytestmark = pytest.mark.full

PROGRAM = Path(__file__).with_name("program_4c7e83a.tar.gz")  #: `stacks/` of that release


def resources(project: Path) -> list[dict[str, Any]]:
    file = project / ".pulumi" / "stacks" / "lakes" / "dev.json"
    found: list[dict[str, Any]] = json.loads(file.read_text())["checkpoint"]["latest"]["resources"]
    return found


def ids(project: Path) -> dict[str, str]:
    """The ids of all that a provider has made, by type and name."""
    found = (each for each in resources(project) if "id" in each and not each["type"].startswith("pulumi:"))
    return {f"{each['type']} {each['urn'].rpartition('::')[2]}": each["id"] for each in found}


def test_an_applied_stack_shows_no_change_under_the_components(
    on_aws: MakeProject, deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "x")  # the key of replicas is a secret to the AWS types
    project = on_aws(PROD, tables=table("flights", "delay: int32", more=SERVICES))
    shutil.rmtree(project / "stacks")
    unpack(PROGRAM, project)
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err
    before = ids(project)
    kinds = {each["type"] for each in resources(project)}
    assert {
        "aws:glue/catalogDatabase:CatalogDatabase",
        "aws:s3/bucketReplicationConfig:BucketReplicationConfig",
    } <= kinds
    assert not any("deployer:aws:Lake$" in each["urn"] for each in resources(project))

    [told] = [each for each in deployer("doctor", "--json").json["checks"] if each["check"] == "program"]
    assert told["status"] == "warning" and "aws_services.py" in told["what"], told
    assert "declare_project()" in told["remedy"]

    shutil.rmtree(project / "stacks")
    shutil.copytree(REPOSITORY / "stacks", project / "stacks")
    shown = deployer("preview", "--exit-code")
    assert shown.code == 0, shown.out + shown.err
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err
    assert ids(project) == before
    inside = [each["urn"] for each in resources(project) if each["type"].startswith("aws:")]
    assert inside and all("::deployer:aws:Lake$" in urn for urn in inside)
    assert deployer("preview", "--exit-code").code == 0
