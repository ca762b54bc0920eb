"""The code of jobs in the bucket: put back when it is gone, left there when the stack lets it go."""

from __future__ import annotations

import uuid
from pathlib import Path

import boto3
import pulumi
import pytest

from deployer.compute.running.published_clusters import FILE
from tests.aws_provider.kinds import Found
from tests.aws_provider.s3_objects import KINDS
from tests.cli.conftest import Deployer
from tests.stacks.conftest import MakeProject, bucket_of
from tests.stacks.graph import graph_of, outputs_of

pytestmark = pytest.mark.full

CLUSTER = "clusters:\n  small: {kind: emr-serverless, release: emr-spark-8.0.0}\n"
TYPE = "aws:s3/bucketObjectv2:BucketObjectv2"


def _keys(bucket: str) -> list[str]:
    """Of the code; beside it is what `up` says of the clusters, which is no resource of the stack."""
    listed = boto3.client("s3").list_objects_v2(Bucket=bucket, Prefix="demo/_jobs/")
    return [each["Key"] for each in listed.get("Contents", ()) if not each["Key"].endswith(FILE)]


def _objects(project: Path) -> list[str]:
    return [each["name"] for each in graph_of(project) if each["type"] == TYPE]


def test_code_that_is_gone_is_put_back_and_code_that_is_let_go_stays(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(CLUSTER, tables="")
    bucket = bucket_of(project)
    assert deployer("up", "--yes").code == 0
    keys = _keys(bucket)
    assert len(keys) == len(_objects(project)) == len(set(keys)) and len(keys) >= 3

    gone = next(key for key in keys if key.endswith("/ingest.py"))
    boto3.client("s3").delete_object(Bucket=bucket, Key=gone)
    found = deployer("preview", "--json").json["foreign"]
    assert [(each["action"], each["address"]) for each in found] == [("create", f"{TYPE} job-code/ingest")]
    assert deployer("up", "--yes").code == 0
    assert _keys(bucket) == keys

    (project / "Pulumi.dev.yaml").write_text("config:\n  deployer:jobs: none\n", encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert (_objects(project), _keys(bucket), "jobs" in outputs_of(project)) == ([], keys, False)
    assert deployer("preview", "--exit-code").code == 0


def test_a_bucket_that_is_there_takes_the_code_too(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(CLUSTER, tables="")
    where = {"LocationConstraint": "eu-central-1"}
    boto3.client("s3").create_bucket(Bucket=bucket_of(project), CreateBucketConfiguration=where)
    (project / "Pulumi.dev.yaml").write_text("config:\n  deployer:aws: table\n", encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert len(_keys(bucket_of(project))) == len(_objects(project))
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.parametrize("clusters", ["", "clusters:\n  laptop: {kind: local}\n"], ids=["no cluster", "a local one"])
def test_without_clusters_on_aws_there_is_no_code(on_aws: MakeProject, deployer: Deployer, clusters: str) -> None:
    project = on_aws(clusters, tables="")
    assert deployer("up", "--yes").code == 0
    assert (_objects(project), (project / "build").exists(), "jobs" in outputs_of(project)) == ([], False, False)


def test_code_that_is_not_there_is_said(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(CLUSTER, tables="")
    (project / "Pulumi.dev.yaml").write_text("config:\n  deployer:jobs: ci/jobs\n", encoding="utf-8")
    ran = deployer("preview")
    assert ran.code == 1
    assert f"{project}/ci/jobs: there is no code of jobs here; deployer package --out {project}/ci/jobs" in ran.err


def test_the_provider_changes_and_deletes_objects(aws: str, tmp_path: Path) -> None:
    s3, kind, bucket = boto3.client("s3"), KINDS[TYPE], f"objects-{uuid.uuid4().hex[:12]}"
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    (tmp_path / "a").write_text("one", encoding="utf-8")
    (tmp_path / "b").write_text("two", encoding="utf-8")
    inputs = {"bucket": bucket, "key": "x/y", "source": pulumi.FileAsset(str(tmp_path / "a")), "tags": {"a": "1"}}
    id = kind.create(s3, inputs)

    def found() -> Found:
        read = kind.read(s3, id, inputs)
        assert read is not None
        return read

    before = {**inputs, **found().computed}
    assert dict(found().inputs) == inputs
    (tmp_path / "copy").write_text("one", encoding="utf-8")
    moved = {**inputs, "source": pulumi.FileAsset(str(tmp_path / "copy"))}
    changed = {**inputs, "source": pulumi.FileAsset(str(tmp_path / "b"))}
    assert (kind.differs["source"](before, moved), kind.differs["source"](before, changed)) == (False, True)
    kind.update(s3, id, before, {**changed, "tags": {}})
    assert s3.get_object(Bucket=bucket, Key="x/y")["Body"].read() == b"two"
    assert "tags" not in found().inputs and found().computed["etag"] != before["etag"]
    kind.delete(s3, id, changed)
    assert kind.read(s3, id, changed) is None
