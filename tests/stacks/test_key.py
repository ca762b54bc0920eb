"""A lake with a KMS key: what the key encrypts, how it changes, and what stays of it."""

from __future__ import annotations

import json

import boto3
import pytest

from deployer.compute.iam.key import key_alias
from deployer.platform.aws.names import lake_id, own_name
from deployer.state.backends.dynamodb.table import table_name
from tests.cli.conftest import Deployer
from tests.stacks.conftest import MakeProject, bucket_of
from tests.stacks.test_emr import change, planned

pytestmark = pytest.mark.full

CLUSTER = "clusters:\n  small: {kind: emr-serverless, release: emr-7.12.0}\n"


def encrypted_by(bucket: str) -> tuple[str | None, str | None, str | None]:
    """The keys of the bucket, of the state's table and of the cluster's logs; None for AWS's own."""
    root = f"s3://{bucket}/demo"
    rules = boto3.client("s3").get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    table = boto3.client("dynamodb").describe_table(TableName=table_name(root, "demo"))["Table"]
    group = f"/emr-serverless/{own_name(root, 'demo', 'small')}"
    logs = boto3.client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"][0]
    return (
        rules[0]["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID"),
        table.get("SSEDescription", {}).get("KMSMasterKeyArn"),
        logs.get("kmsKeyId"),
    )


def test_a_key_of_the_lakes_own(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws(CLUSTER, tables="")
    bucket, kms = bucket_of(project), boto3.client("kms")
    assert deployer("up", "--yes").code == 0
    assert encrypted_by(bucket) == (None, None, None)

    specs = project / "specs" / "demo.yaml"
    specs.write_text(specs.read_text() + "aws: {kms_key: managed}\n", encoding="utf-8")
    assert planned(deployer) == {
        "key/demo": "create",
        "key-alias/demo": "create",
        "key-policy/demo": "create",
        f"encryption/{bucket}": "update",
        f"state-table/{table_name(f's3://{bucket}/demo', 'demo')}": "update",
        "logs/small": "update",
        "lake/small": "update",
        "alarms/demo": "update",
        "tell/demo/events": "update",
        f"tls-only/{bucket}": "update",
    }
    ran = deployer("up", "--yes")
    assert ran.code == 0, ran.err
    assert deployer("preview", "--exit-code").code == 0
    key = kms.describe_key(KeyId=key_alias(f"s3://{bucket}/demo", "demo"))["KeyMetadata"]
    assert encrypted_by(bucket) == (key["Arn"], key["Arn"], key["Arn"])
    assert kms.get_key_rotation_status(KeyId=key["KeyId"])["KeyRotationEnabled"]
    tags = {each["TagKey"]: each["TagValue"] for each in kms.list_resource_tags(KeyId=key["KeyId"])["Tags"]}
    lake = lake_id(f"s3://{bucket}/demo", "demo")
    assert tags == {"deployer:instance": "demo", "deployer:stack": "lakes/dev", "deployer:lake": lake}
    rules = boto3.client("s3").get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    assert rules[0]["BucketKeyEnabled"]

    kms.disable_key_rotation(KeyId=key["KeyId"])
    statement = {"Effect": "Allow", "Principal": "*", "Action": "kms:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    kms.put_key_policy(KeyId=key["KeyId"], PolicyName="default", Policy=policy)
    assert planned(deployer) == {"key/demo": "update", "key-policy/demo": "update"}
    assert deployer("up", "--yes").code == 0
    assert kms.get_key_rotation_status(KeyId=key["KeyId"])["KeyRotationEnabled"]

    (project / "specs" / "flights.yaml").write_text(
        "kind: Table\ndatabase: air\nname: flights\ncolumns: [{name: id, type: int64, nullable: false}]\n"
        "row_keys: [id]\ndeletion_protection: false\n",
        encoding="utf-8",
    )
    assert deployer("up", "--yes").code == 0
    (project / "rows.csv").write_text("id\n1\n2\n", encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv", "--json").json["rows"] == 2

    change(project, ("managed", f"'{key['Arn']}'"))
    refused = deployer("up", "--yes")
    assert (refused.code, "key/demo: it is protected and not in the program" in refused.err) == (1, True)
    allowed = [
        f"--allow-destroy={name}"
        for name in (
            "table/air.flights",
            f"bucket/{bucket}",
            f"state-table/{table_name(f's3://{bucket}/demo', 'demo')}",
        )
    ]
    change(project, (f"'{key['Arn']}'", "managed"))
    refused = deployer("destroy", "--yes", *allowed)
    assert (refused.code, "key/demo" in refused.err) == (3, True)
    assert deployer("destroy", "--yes", *allowed, "--allow-destroy=key/demo").code == 0
    assert kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]["KeyState"] == "Enabled"


@pytest.mark.slow
def test_a_key_that_is_there(on_aws: MakeProject, deployer: Deployer) -> None:
    kms = boto3.client("kms")
    arn = kms.create_key(Description="ours")["KeyMetadata"]["Arn"]
    before = len(kms.list_keys()["Keys"])
    project = on_aws(f"{CLUSTER}aws: {{kms_key: '{arn}'}}\n", tables="")
    assert deployer("up", "--yes").code == 0
    assert encrypted_by(bucket_of(project)) == (arn, arn, arn)
    assert len(kms.list_keys()["Keys"]) == before
    change(project, (f"aws: {{kms_key: '{arn}'}}\n", ""))
    assert deployer("up", "--yes").code == 0
    assert encrypted_by(bucket_of(project)) == (None, None, None)
    assert deployer("preview", "--exit-code").code == 0


def test_capacity_that_is_set_aside_for_the_state(on_aws: MakeProject, deployer: Deployer) -> None:
    project = on_aws("aws: {state_capacity: {read: 5, write: 3}}\n")
    name = table_name(f"s3://{bucket_of(project)}/demo", "demo")
    dynamodb = boto3.client("dynamodb")

    def capacity() -> tuple[str, int, int]:
        table = dynamodb.describe_table(TableName=name)["Table"]
        units = table["ProvisionedThroughput"]
        return table["BillingModeSummary"]["BillingMode"], units["ReadCapacityUnits"], units["WriteCapacityUnits"]

    assert deployer("up", "--yes").code == 0
    assert capacity() == ("PROVISIONED", 5, 3)
    assert deployer("preview", "--exit-code").code == 0
    dynamodb.update_table(TableName=name, ProvisionedThroughput={"ReadCapacityUnits": 50, "WriteCapacityUnits": 3})
    assert planned(deployer) == {f"state-table/{name}": "update"}
    change(project, ("read: 5", "read: 7"))
    assert deployer("up", "--yes").code == 0
    assert capacity() == ("PROVISIONED", 7, 3)
    change(project, ("aws: {state_capacity: {read: 7, write: 3}}\n", ""))
    assert deployer("up", "--yes").code == 0
    assert capacity()[0] == "PAY_PER_REQUEST"
    assert deployer("preview", "--exit-code").code == 0
