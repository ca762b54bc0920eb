"""A lake on S3 with all that it stands on: the program applied by the embedded engine to moto's server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest

from deployer.platform.aws.names import lake_id, name_on_aws, own_name
from deployer.state import open_store
from deployer.state.backends.dynamodb.items import TABLE_SCHEMA
from deployer.state.backends.dynamodb.table import table_name
from tests.cli.conftest import Deployer
from tests.projects import table
from tests.stacks.conftest import MakeProject, bucket_of
from tests.stacks.graph import check_golden, graph_of, outputs_of

pytestmark = pytest.mark.full


def test_the_whole_life(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws("tags: {team: data}\n")
    bucket = bucket_of(project)
    shown = deployer("preview")
    assert "create aws:s3/bucket:Bucket bucket/" in shown.out and "DataBucket" not in shown.out
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0

    s3, dynamodb = boto3.client("s3"), boto3.client("dynamodb")
    table = dynamodb.describe_table(TableName=table_name(f"s3://{bucket}/demo", "demo"))["Table"]
    assert {name: table[name] for name in ("KeySchema",)} == {"KeySchema": TABLE_SCHEMA["KeySchema"]}
    assert [each["IndexName"] for each in table["LocalSecondaryIndexes"]] == ["by_transaction"]
    assert table["DeletionProtectionEnabled"]
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    assert all(s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].values())

    specs = project / "specs" / "demo.yaml"
    specs.write_text(specs.read_text().replace("team: data", "team: science"), encoding="utf-8")
    changed = deployer("preview", "--exit-code")
    assert (changed.code, "update aws:s3/bucket:Bucket" in changed.out) == (2, True)
    assert deployer("up", "--yes").code == 0
    tags = {each["Key"]: each["Value"] for each in s3.get_bucket_tagging(Bucket=bucket)["TagSet"]}
    lake = lake_id(f"s3://{bucket}/demo", "demo")
    assert tags == {
        "team": "science", "deployer:instance": "demo", "deployer:stack": "lakes/dev", "deployer:lake": lake
    }  # fmt: skip

    (project / "rows.csv").write_text("id,delay\n1,10\n2,20\n", encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv", "--json").json["rows"] == 2
    assert "20" in deployer("query", "flights").out
    assert deployer("preview", "--exit-code").code == 0

    state_table = table["TableName"]
    refused = deployer("destroy", "--yes", "--allow-destroy", "table/air.flights")
    assert (refused.code, f"bucket/{bucket}, state-table/{state_table}; nothing was changed" in refused.err) == (
        3,
        True,
    )
    assert open_store(f"s3://{bucket}/demo").instance().tables
    allowed = [
        f"--allow-destroy={name}" for name in ("table/air.flights", f"bucket/{bucket}", f"state-table/{state_table}")
    ]
    gone = deployer("destroy", "--yes", *allowed)
    assert gone.code == 0 and "still in AWS, and no longer part of the stack: " in gone.err
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket)
    assert all(s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].values())
    versions = s3.list_object_versions(Bucket=bucket)["Versions"]
    assert any(each["Key"].endswith(".lance") or "/data/" in each["Key"] for each in versions)
    assert dynamodb.describe_table(TableName=state_table)["Table"]["TableStatus"] == "ACTIVE"


def _open_to_the_public(bucket: str) -> None:
    boto3.client("s3").delete_public_access_block(Bucket=bucket)


def _no_versions(bucket: str) -> None:
    boto3.client("s3").put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})


def _other_policy(bucket: str) -> None:
    statement = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    boto3.client("s3").put_bucket_policy(Bucket=bucket, Policy=policy)


def _no_lifecycle(bucket: str) -> None:
    boto3.client("s3").delete_bucket_lifecycle(Bucket=bucket)


def _no_protection(bucket: str) -> None:
    name = table_name(f"s3://{bucket}/demo", "demo")
    boto3.client("dynamodb").update_table(TableName=name, DeletionProtectionEnabled=False)


def _no_recovery(bucket: str) -> None:
    boto3.client("dynamodb").update_continuous_backups(
        TableName=table_name(f"s3://{bucket}/demo", "demo"),
        PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False},
    )


DRIFT: dict[str, tuple[Callable[[str], None], str]] = {
    "public access": (_open_to_the_public, "create aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"),
    "versions": (_no_versions, "update aws:s3/bucketVersioning:BucketVersioning"),
    "policy": (_other_policy, "update aws:s3/bucketPolicy:BucketPolicy"),
    "lifecycle": (_no_lifecycle, "create aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"),
    "protection": (_no_protection, "update aws:dynamodb/table:Table"),
    "recovery": (_no_recovery, "update aws:dynamodb/table:Table"),
}


def test_what_was_changed_by_hand_is_found_and_mended(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(tables="")
    bucket = bucket_of(project)
    assert deployer("up", "--yes").code == 0
    for change, _ in DRIFT.values():
        change(bucket)
    found = deployer("preview", "--json").json["foreign"]
    shown = [f"{each['action']} {each['address'].split(' ')[0]}" for each in found]
    assert sorted(shown) == sorted({expected for _, expected in DRIFT.values()})
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0


@pytest.mark.parametrize(("managed", "declares"), [("table", {"aws:dynamodb/table:Table"}), ("none", set())])
def test_a_bucket_that_is_there_is_left_alone(
    on_aws: MakeProject, deployer: Deployer, managed: str, declares: set[str]
) -> None:
    project = on_aws()
    bucket = bucket_of(project)
    boto3.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    (project / "Pulumi.dev.yaml").write_text(f"config:\n  deployer:aws: {managed}\n", encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert {each["type"] for each in graph_of(project) if each["type"].startswith("aws:")} == declares
    assert "Status" not in boto3.client("s3").get_bucket_versioning(Bucket=bucket)
    assert deployer("preview", "--exit-code").code == 0


def test_clusters_come_change_and_go(on_aws: MakeProject, deployer: Deployer) -> None:
    cluster = "clusters:\n  small: {kind: emr-serverless, release: emr-7.12.0, idle_minutes: 5}\n"
    project = on_aws(cluster, tables="")
    assert deployer("up", "--yes").code == 0
    specs, emr, iam = project / "specs" / "demo.yaml", boto3.client("emr-serverless"), boto3.client("iam")
    root = f"s3://{bucket_of(project)}/demo"
    name, role = name_on_aws(root, "demo", "small"), own_name(root, "demo", "small")

    def minutes() -> list[int]:
        listed = [each for each in emr.list_applications()["applications"] if each["name"] == name]
        live = [each for each in listed if each["state"] != "TERMINATED"]
        found = [emr.get_application(applicationId=each["id"])["application"] for each in live]
        return [each["autoStopConfiguration"]["idleTimeoutMinutes"] for each in found]

    assert minutes() == [5]
    specs.write_text(specs.read_text().replace("idle_minutes: 5", "idle_minutes: 9"), encoding="utf-8")
    everything = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
    iam.put_role_policy(RoleName=role, PolicyName="lake", PolicyDocument=document)
    found = {each["address"]: each["action"] for each in deployer("preview", "--json").json["foreign"]}
    assert found == {
        "aws:emrserverless/application:Application application/small": "update",
        "aws:iam/rolePolicy:RolePolicy lake/small": "update",
    }
    application = outputs_of(project)["clusters"]["small"]["application"]
    emr.start_application(applicationId=application)
    refused = deployer("up", "--yes")  # F8: the provider for tests stopped it, AWS's does not
    assert refused.code == 1 and "only while it is stopped: wait until it is" in refused.err
    emr.stop_application(applicationId=application)
    assert deployer("up", "--yes").code == 0
    assert (minutes(), deployer("preview", "--exit-code").code) == ([9], 0)
    specs.write_text(specs.read_text().split("clusters:")[0], encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    assert minutes() == []
    assert role not in {each["RoleName"] for each in iam.list_roles()["Roles"]}


def test_what_is_kept_ready_and_where_logs_go(on_aws: MakeProject, deployer: Deployer) -> None:
    cluster = (
        "clusters:\n  small:\n    kind: emr-serverless\n    release: emr-7.12.0\n    max_workers: 8\n"
        "    initial_workers: 2\n    log_uri: s3://our-logs/small\n"
    )
    project = on_aws(cluster, tables="")
    assert deployer("up", "--yes").code == 0
    emr, made = boto3.client("emr-serverless"), outputs_of(project)["clusters"]["small"]
    assert (made["kind"], made["logs"]) == ("emr-serverless", "s3://our-logs/small")

    def ready() -> dict[str, int]:
        found: Any = emr.get_application(applicationId=made["application"])["application"]
        return {kind: each["workerCount"] for kind, each in found.get("initialCapacity", {}).items()}

    assert ready() == {"Driver": 1, "Executor": 2}
    emr.stop_application(applicationId=made["application"])
    emr.update_application(
        applicationId=made["application"],
        architecture="X86_64",
        monitoringConfiguration={"s3MonitoringConfiguration": {"logUri": "s3://theirs/logs"}},
    )
    (found,) = deployer("preview", "--json").json["foreign"]
    assert (found["address"].split()[-1], found["action"]) == ("application/small", "update")
    specs = project / "specs" / "demo.yaml"
    specs.write_text(specs.read_text().replace("    initial_workers: 2\n", ""), encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    application: Any = emr.get_application(applicationId=made["application"])["application"]
    assert (application["architecture"], ready()) == ("ARM64", {})
    logged = application["monitoringConfiguration"]["s3MonitoringConfiguration"]
    assert logged == {"logUri": "s3://our-logs/small"}
    assert deployer("preview", "--exit-code").code == 0


def test_a_bucket_is_let_go_by_name_alone(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(tables="")
    bucket = bucket_of(project)
    assert deployer("up", "--yes").code == 0
    (project / "Pulumi.dev.yaml").write_text("config:\n  deployer:aws: table\n", encoding="utf-8")
    for command in (["preview"], ["up", "--yes"]):
        ran = deployer(*command)
        assert (ran.code, "is protected and not in the program any more" in ran.err) == (1, True)
    ran = deployer("up", "--yes", "--allow-destroy", f"bucket/{bucket}")
    assert ran.code == 0 and "not in the program any more, and stays where it is" in ran.out
    s3 = boto3.client("s3")
    assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
    assert all(s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].values())
    assert deployer("preview", "--exit-code").code == 0


def test_another_setting_is_refused(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws()
    (project / "Pulumi.dev.yaml").write_text("config:\n  deployer:aws: some\n", encoding="utf-8")
    ran = deployer("preview")
    assert (ran.code, "deployer:aws cannot be 'some'; use all, table or none" in ran.err) == (1, True)


def test_a_bucket_of_somebody_else_is_said(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws()
    role = boto3.client("sts").assume_role(RoleArn="arn:aws:iam::222222222222:role/they", RoleSessionName="they")
    keys = role["Credentials"]
    theirs = boto3.client(
        "s3", aws_access_key_id=keys["AccessKeyId"], aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )  # fmt: skip
    where = {"LocationConstraint": "eu-central-1"}
    theirs.create_bucket(Bucket=bucket_of(project), CreateBucketConfiguration=where)
    ran = deployer("up", "--yes")
    assert ran.code == 1
    assert f"bucket/{bucket_of(project)}" in ran.err and "BucketAlreadyExists" in ran.err


def test_the_whole_graph(on_aws: MakeProject, deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "x")
    project = on_aws(PROD, bucket="golden-lakes", tables=table("flights", "delay: int32", more=SERVICES))
    ran = deployer("up", "--yes", "--stack", "prod")
    assert ran.code == 0, ran.err
    check_golden(graph_of(project, "prod"), Path(__file__).with_name("graph.json"))


SERVICES = """\
services:
  compact: {trigger: {schedule: "0 3 * * MON-FRI", timezone: Europe/Berlin}, cluster: small}
  clean: {trigger: {schedule: "30 4 * * *"}, cluster: own-role}
  metasync: {options: {targets: [{type: glue}]}}
"""
PROD = """\
description: A small stack of production.
notify: [ops@example.com]
tags: {team: data, "cost centre": "4711"}
clusters:
  small:
    {kind: emr-serverless, release: emr-7.12.0, architecture: x86_64, cores: 4, memory: 14g, max_workers: 10,
     initial_workers: 2, log_uri: s3://our-logs/small}
  own-role:
    kind: emr-serverless
    release: emr-7.12.0
    execution_role: arn:aws:iam::123456789012:role/jobs
    subnets: [subnet-1, subnet-2]
    security_groups: [sg-1]
  nightly:
    kind: emr
    release: emr-7.12.0
    fleets: {types: [m7i.xlarge, m6i.xlarge], on_demand: 1, spot: 3}
    max_instances: 10
    subnets: [subnet-1, subnet-2]
  steady:
    kind: emr
    release: emr-7.12.0
    lifetime: long
    instance_type: m7i.xlarge
    instances: 2
    max_instances: 4
    idle_minutes: 60
    subnets: [subnet-1]
    log_uri: s3://our-logs/emr
  laptop: {kind: local, cores: 2}
aws:
  kms_key: managed
  permissions_boundary: arn:aws:iam::123456789012:policy/deployer-demo-boundary
  state_capacity: {read: 10, write: 5}
  object_lock: {mode: governance, days: 7}
  replicate_to:
    bucket: arn:aws:s3:::golden-lakes-copy
    kms_key: arn:aws:kms:eu-west-1:123456789012:key/copies
  emr_certificates: s3://our-logs/certificates.zip
  only_from: {organization: o-a1b2c3d4e5}
"""


def test_a_missing_plugin_and_a_missing_package_are_said(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws()
    (project / "bin" / "pulumi-resource-aws").unlink()
    ran = deployer("preview")
    assert (ran.code, "no executable pulumi-resource-aws there; install the provider" in ran.err) == (1, True)
    program = project / "stacks" / "__main__.py"  # its process marks it as Python does with what is not there
    program.write_text("import sys\nsys.modules['pulumi_aws'] = None\n" + program.read_text())
    ran = deployer("preview")
    assert (ran.code, "needs the package pulumi-aws, which is not installed; pip install" in ran.err) == (1, True)
