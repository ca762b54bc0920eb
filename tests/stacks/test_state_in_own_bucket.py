"""Pulumi's state in the bucket that the stack itself makes: begun in the folder, moved, and gone on with."""

from __future__ import annotations

import json

import boto3
import pytest

from deployer.platform.storage.s3_objects import S3Objects
from tests.cli.conftest import Deployer
from tests.crash.test_kill_up import killed
from tests.stacks.conftest import REGION, MakeProject, bucket_of

pytestmark = pytest.mark.full


def test_the_state_moves_into_the_bucket_that_it_made(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws()
    bucket, settings = bucket_of(project), project / "Pulumi.yaml"
    place = f"s3://{bucket}/pulumi"
    in_folder = settings.read_text(encoding="utf-8")
    in_bucket = in_folder.replace("url: file://.", f"url: {place}")
    settings.write_text(in_bucket, encoding="utf-8")
    early = deployer("preview")
    assert early.code == 1 and "the bucket does not exist" in early.err

    settings.write_text(in_folder, encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert deployer("stack", "export", "dev.json").code == 0
    settings.write_text(in_bucket, encoding="utf-8")
    assert deployer("stack", "import", "dev.json").code == 0
    assert deployer("preview", "--exit-code").code == 0
    (project / ".pulumi").rename(project / "old-state")

    specs = project / "specs" / "demo.yaml"
    specs.write_text(specs.read_text(encoding="utf-8") + "tags: {team: data}\n", encoding="utf-8")
    assert deployer("preview", "--out", "plan.json", "--exit-code").code == 2
    assert deployer("up", "plan.json").code == 0
    tags = boto3.client("s3").get_bucket_tagging(Bucket=bucket)["TagSet"]
    assert {"Key": "team", "Value": "data"} in tags
    assert not (project / ".pulumi").exists()

    table = next(each["name"] for each in _standing(place) if each["name"].startswith("state-table/"))
    allowed = [f"--allow-destroy={name}" for name in ("table/air.flights", f"bucket/{bucket}", table)]
    assert deployer("destroy", "--yes", *allowed).code == 0
    assert _standing(place) == []
    versions = boto3.client("s3").list_object_versions(Bucket=bucket, Prefix="pulumi/.pulumi/stacks/lakes/dev.json")
    assert len(versions["Versions"]) > 2


ON_AWS = 13  #: resources of AWS; the instance, which needs them all, comes next


# Nothing of AWS is being made at these points. What a provider was making for a killed run exists without being in
# Pulumi's state, and only its user can say whether it is this stack's.
@pytest.mark.parametrize(
    "point",
    [
        "engine.step.begin@1",
        f"engine.step.end@{ON_AWS}",
        f"engine.step.begin@{ON_AWS + 1}",
        f"engine.step.done@{ON_AWS + 1}",
        "engine.checkpoint.begin",
        "engine.checkpoint.written",
    ],
)
def test_an_up_that_was_killed_is_gone_on_with_from_s3(on_aws: MakeProject, deployer: Deployer, point: str) -> None:
    project = on_aws()
    states, settings = f"states-{bucket_of(project)}", project / "Pulumi.yaml"
    boto3.client("s3").create_bucket(Bucket=states, CreateBucketConfiguration={"LocationConstraint": REGION})
    text = settings.read_text(encoding="utf-8").replace("url: file://.", f"url: s3://{states}")
    settings.write_text(text, encoding="utf-8")
    killed("up", "--yes", at=point)
    left = S3Objects(f"s3://{states}").list(".pulumi")
    assert any("/locks/" in path for path in left) and any(".journal/" in path for path in left)
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0
    left = S3Objects(f"s3://{states}").list(".pulumi")
    assert not any("/locks/" in path or ".journal" in path for path in left)


def _standing(place: str) -> list[dict[str, str]]:
    document = json.loads(S3Objects(place).get(".pulumi/stacks/lakes/dev.json"))
    found = document["checkpoint"]["latest"].get("resources") or []
    return [{"name": each["urn"].split("::", 3)[3]} for each in found if not each["type"].startswith("pulumi:")]
