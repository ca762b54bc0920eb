"""What the roles of EMR clusters and the lake's KMS key allow and forbid in the golden stack, call by call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from moto.iam.aws_managed_policies import aws_managed_policies_data

from deployer.compute.iam.emr import emr_service_policy_arn, emr_trust, instance_trust, pass_policy
from deployer.compute.iam.jobs import job_policy
from deployer.compute.iam.key import key_policy
from tests.stacks.lakes import ACCOUNT, DEMO, deploying
from tests.stacks.policies import Call, is_allowed
from tests.stacks.test_access import ALLOWED, BUCKET, FORBIDDEN, LOGS, OTHER_TABLE, TABLE, TLS, inputs

REGION = "eu-central-1"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/KEY"
KEY_ALIAS = f"arn:aws:kms:{REGION}:{ACCOUNT}:{inputs('key-alias/demo')['name']}"
CLUSTER = f"arn:aws:elasticmapreduce:{REGION}:{ACCOUNT}:cluster/j-1"
JOBS = f"{DEMO.roles}{inputs('role/nightly')['name']}"
ADMIN = f"arn:aws:iam::{ACCOUNT}:role/admin"
EMR_TAG = "for-use-with-amazon-emr-managed-policies"


def _name(call: Call) -> str:
    return " ".join((call.action, call.resource.rpartition(":")[2], *map(str, call.context.values())))


def policies(cluster: str) -> list[dict[str, Any]]:
    return [json.loads(inputs(f"lake/{cluster}")["policy"]), json.loads(inputs("tls-only/golden-lakes")["policy"])]


def without_logs(calls: list[Call]) -> list[Call]:
    return [call for call in calls if not call.action.startswith("logs:")]


@pytest.mark.parametrize("cluster", ["nightly", "steady"])
@pytest.mark.parametrize("call", without_logs(ALLOWED), ids=_name)
def test_a_job_on_emr_may(call: Call, cluster: str) -> None:
    assert is_allowed(Call(call.action, call.resource, {**TLS, **call.context}), policies(cluster))


@pytest.mark.parametrize("cluster", ["nightly", "steady"])
@pytest.mark.parametrize(
    "call",
    [
        *FORBIDDEN,
        Call("logs:PutLogEvents", f"{LOGS}:log-stream:a"),
        Call("elasticmapreduce:RunJobFlow", CLUSTER),
        Call("elasticmapreduce:TerminateJobFlows", CLUSTER),
        Call("iam:PassRole", JOBS, {"iam:PassedToService": "ec2.amazonaws.com"}),
        Call("ec2:RunInstances", f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance/i-1"),
    ],
    ids=_name,
)
def test_a_job_on_emr_may_not(call: Call, cluster: str) -> None:
    assert not is_allowed(Call(call.action, call.resource, {**TLS, **call.context}), policies(cluster))


@pytest.mark.parametrize(
    ("cluster", "place", "allowed"),
    [
        ("steady", "our-logs/emr/j-1/steps/s-1/stderr.gz", True),
        ("small", "our-logs/small/applications/1/stdout.gz", True),
        ("steady", "our-logs/other/j-1/stderr.gz", False),
        ("small", "our-logs/emr/j-1/stderr.gz", False),
        ("nightly", "our-logs/emr/j-1/stderr.gz", False),
        ("nightly", "golden-lakes/demo/_job-logs/nightly/j-1/stderr.gz", True),
        ("nightly", "golden-lakes/other/_job-logs/nightly/j-1/stderr.gz", False),
    ],
)
def test_where_logs_may_be_kept(cluster: str, place: str, allowed: bool) -> None:
    assert is_allowed(Call("s3:PutObject", f"arn:aws:s3:::{place}", TLS), policies(cluster)) is allowed
    assert not is_allowed(Call("s3:DeleteObject", "arn:aws:s3:::our-logs/emr/a", TLS), policies(cluster))


def service_policies() -> list[dict[str, Any]]:
    """EMR's own, as AWS publishes it, and what it lacks."""
    managed = json.loads(aws_managed_policies_data)[emr_service_policy_arn(TABLE).rpartition("/")[2]]["Document"]
    return [managed, json.loads(inputs("instances-role/nightly")["policy"])]


EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
TAGGED = {f"aws:RequestTag/{EMR_TAG}": "true"}
ON_TAGGED = {f"aws:ResourceTag/{EMR_TAG}": "true"}


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        (Call("ec2:RunInstances", f"{EC2}:instance/i-1", TAGGED), True),
        (Call("ec2:RunInstances", f"{EC2}:subnet/subnet-1", ON_TAGGED), True),
        (Call("ec2:TerminateInstances", f"{EC2}:instance/i-1", ON_TAGGED), True),
        (Call("iam:PassRole", JOBS, {"iam:PassedToService": "ec2.amazonaws.com"}), True),
        (Call("ec2:RunInstances", f"{EC2}:instance/i-1"), False),
        (Call("ec2:RunInstances", f"{EC2}:subnet/subnet-1"), False),
        (Call("ec2:TerminateInstances", f"{EC2}:instance/i-1"), False),
        (Call("iam:PassRole", JOBS, {"iam:PassedToService": "lambda.amazonaws.com"}), False),
        (Call("iam:PassRole", f"{JOBS}-2", {"iam:PassedToService": "ec2.amazonaws.com"}), False),
        (
            Call("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin", {"iam:PassedToService": "ec2.amazonaws.com"}),
            False,
        ),
        (Call("s3:GetObject", f"{BUCKET}/demo/air/a"), False),
        (Call("dynamodb:GetItem", TABLE), False),
    ],
    ids=lambda value: _name(value) if isinstance(value, Call) else str(value),
)
def test_what_emr_itself_may(call: Call, allowed: bool) -> None:
    assert is_allowed(call, service_policies()) is allowed


@pytest.mark.parametrize(
    ("account", "cluster", "allowed"),
    [
        (ACCOUNT, CLUSTER, True),
        ("222222222222", CLUSTER, False),
        (ACCOUNT, CLUSTER.replace(REGION, "us-east-1"), False),
        (ACCOUNT, CLUSTER.replace(ACCOUNT, "222222222222"), False),
    ],
)
def test_for_whom_emr_may_act(account: str, cluster: str, allowed: bool) -> None:
    trust = json.loads(inputs("emr-role/nightly")["assumeRolePolicy"])
    assert trust["Statement"][0]["Principal"] == {"Service": "elasticmapreduce.amazonaws.com"}
    context = {"aws:SourceAccount": account, "aws:SourceArn": cluster}
    assert is_allowed(Call("sts:AssumeRole", "", context), [trust]) is allowed


def test_services_and_policies_of_another_partition() -> None:
    table = TABLE.replace("arn:aws:", "arn:aws-cn:")
    assert emr_trust(table)["Statement"][0]["Principal"] == {"Service": "elasticmapreduce.amazonaws.com.cn"}
    assert instance_trust(table)["Statement"][0]["Principal"] == {"Service": "ec2.amazonaws.com.cn"}
    assert emr_service_policy_arn(table).startswith("arn:aws-cn:iam::aws:policy/")
    given = {"iam:PassedToService": "ec2.amazonaws.com.cn"}
    assert is_allowed(Call("iam:PassRole", JOBS, given), [pass_policy(JOBS)])


S3, DYNAMODB = ({"kms:ViaService": f"{service}.{REGION}.amazonaws.com"} for service in ("s3", "dynamodb"))
OF_OBJECT, OF_TABLE = "kms:EncryptionContext:aws:s3:arn", "kms:EncryptionContext:aws:dynamodb:tableName"
NAME = TABLE.rpartition("/")[2]


@pytest.mark.parametrize("cluster", ["small", "nightly", "steady"])
@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        (Call("kms:Decrypt", KEY, {**S3, OF_OBJECT: BUCKET}), True),
        (Call("kms:GenerateDataKey", KEY, {**S3, OF_OBJECT: BUCKET}), True),
        (Call("kms:Decrypt", KEY, {**S3, OF_OBJECT: f"{BUCKET}/demo/air/a"}), True),
        (Call("kms:Decrypt", KEY, {**DYNAMODB, OF_TABLE: NAME}), True),
        (Call("kms:Decrypt", KEY, {OF_OBJECT: BUCKET}), False),
        (Call("kms:Decrypt", KEY, {**S3, OF_OBJECT: f"{BUCKET}-2"}), False),
        (Call("kms:Decrypt", KEY, {**S3, OF_OBJECT: f"{BUCKET}/other/a"}), False),
        (Call("kms:Decrypt", KEY, {**DYNAMODB, OF_TABLE: OTHER_TABLE.rpartition("/")[2]}), False),
        (Call("kms:GenerateDataKey", KEY, {**DYNAMODB, OF_TABLE: NAME}), False),
        (Call("kms:Decrypt", f"{KEY}2", {**S3, OF_OBJECT: BUCKET}), False),
        (Call("kms:Encrypt", KEY, {**S3, OF_OBJECT: BUCKET}), False),
        (Call("kms:CreateGrant", KEY, DYNAMODB), False),
        (Call("kms:ScheduleKeyDeletion", KEY), False),
        (Call("kms:PutKeyPolicy", KEY), False),
    ],
    ids=lambda value: _name(value) if isinstance(value, Call) else str(value),
)
def test_what_a_job_may_do_with_the_key(call: Call, allowed: bool, cluster: str) -> None:
    assert is_allowed(call, policies(cluster)) is allowed


@pytest.mark.parametrize(("cluster", "allowed"), [("small", False), ("nightly", True), ("steady", True)])
def test_instances_of_emr_encrypt_their_own_disks(cluster: str, allowed: bool) -> None:
    assert is_allowed(Call("kms:Decrypt", KEY), policies(cluster)) is allowed
    disk = Call("kms:GenerateDataKey", KEY, {"kms:EncryptionContext:deployer-lake": DEMO.id})
    assert is_allowed(disk, policies(cluster))


def test_a_job_of_a_lake_without_key_may_use_none() -> None:
    policy = job_policy("s3://golden-lakes/demo", "demo", TABLE, LOGS)
    assert not any("kms" in str(statement) for statement in policy["Statement"])


@pytest.mark.parametrize(
    ("group", "allowed"),
    [
        (LOGS, True),
        (LOGS.replace(DEMO.id, "0000000000"), False),
        (LOGS.replace("/emr-serverless/", "/aws/lambda/"), False),
    ],
)
def test_whose_logs_the_key_is_for(group: str, allowed: bool) -> None:
    policy = json.loads(inputs("key-policy/demo")["policy"])
    assert policy == key_policy(KEY, "s3://golden-lakes/demo", "demo")
    iam, logs, *_ = policy["Statement"]
    assert iam["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    assert logs["Principal"] == {"Service": f"logs.{REGION}.amazonaws.com"}
    call = Call("kms:GenerateDataKey", "", {"kms:EncryptionContext:aws:logs:arn": group})
    assert is_allowed(call, [{"Statement": [logs]}]) is allowed
    assert not is_allowed(Call("kms:ScheduleKeyDeletion", "", call.context), [{"Statement": [logs]}])


def of_key(sid: str) -> dict[str, Any]:
    statements = json.loads(inputs("key-policy/demo")["policy"])["Statement"]
    return {"Statement": [each for each in statements if each["Sid"] == sid]}


APPLICATION_ARN = f"arn:aws:emr-serverless:{REGION}:{ACCOUNT}:/applications/1"
ALARM_ARN = f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{DEMO.own}throttled"
BUDGET_ARN = f"arn:aws:budgets::{ACCOUNT}:budget/any"


@pytest.mark.parametrize(
    ("sid", "source", "context", "allowed"),
    [
        ("Disks", APPLICATION_ARN, {"kms:EncryptionContext:deployer-lake": DEMO.id}, True),
        ("Disks", APPLICATION_ARN, {"kms:EncryptionContext:deployer-lake": "0000000000"}, False),
        ("Disks", APPLICATION_ARN, {}, False),
        ("Alarms", ALARM_ARN, {}, True),
        ("Alarms", ALARM_ARN.replace(DEMO.id, "0000000000"), {}, False),
        ("Budget", BUDGET_ARN, {}, True),
    ],
)
def test_what_services_use_the_key_for(sid: str, source: str, context: dict[str, str], allowed: bool) -> None:
    from_us = {"aws:SourceArn": source, "aws:SourceAccount": ACCOUNT, **context}
    assert is_allowed(Call("kms:GenerateDataKey", "", from_us), [of_key(sid)]) is allowed
    from_others = {**from_us, "aws:SourceAccount": "222222222222"}
    assert not is_allowed(Call("kms:GenerateDataKey", "", from_others), [of_key(sid)])
    assert not is_allowed(Call("kms:Encrypt", "", from_us), [of_key(sid)])


def test_events_have_no_part_in_the_key() -> None:
    """EventBridge acts in a role: as a principal it would let in the rules of everybody."""
    assert "events.amazonaws.com" not in inputs("key-policy/demo")["policy"]


OURS, THEIRS = DEMO.tagged, {"aws:ResourceTag/deployer:lake": "0000000000"}
OUR_KEY, THEIR_KEY = OURS, THEIRS
PROFILE = f"arn:aws:iam::{ACCOUNT}:instance-profile/{inputs('instances/nightly')['name']}"
SERVICE_ROLE = f"{DEMO.roles}{inputs('emr-role/nightly')['name']}"
FULL_ACCESS = "arn:aws:iam::aws:policy/IAMFullAccess"
EMR_POLICY = {"iam:PolicyARN": emr_service_policy_arn(TABLE), "iam:PermissionsBoundary": DEMO.boundary}


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        (Call("elasticmapreduce:RunJobFlow", CLUSTER, DEMO.asked), True),
        (Call("elasticmapreduce:TerminateJobFlows", CLUSTER, OURS), True),
        (Call("elasticmapreduce:PutManagedScalingPolicy", CLUSTER, OURS), True),
        (Call("iam:PassRole", JOBS, {"iam:PassedToService": "ec2.amazonaws.com"}), True),
        (Call("iam:PassRole", SERVICE_ROLE, {"iam:PassedToService": "elasticmapreduce.amazonaws.com"}), True),
        (Call("iam:AttachRolePolicy", SERVICE_ROLE, EMR_POLICY), True),
        (Call("iam:AddRoleToInstanceProfile", PROFILE), True),
        (Call("elasticmapreduce:AddTags", f"arn:aws:elasticmapreduce:{REGION}:{ACCOUNT}:cluster/*", DEMO.asked), True),
        (Call("elasticmapreduce:AddTags", CLUSTER, {**DEMO.asked, **DEMO.tagged}), True),
        (Call("elasticmapreduce:AddTags", CLUSTER, DEMO.asked), False),
        (Call("kms:CreateKey", "*", DEMO.asked), False),
        (Call("kms:PutKeyPolicy", KEY, OUR_KEY), True),
        (Call("kms:CreateAlias", KEY_ALIAS), True),
        (Call("kms:GenerateDataKey", KEY, {**OUR_KEY, **S3}), True),
        (Call("kms:CreateGrant", KEY, {**OUR_KEY, **DYNAMODB}), True),
        (Call("logs:AssociateKmsKey", LOGS), True),
        (Call("elasticmapreduce:RunJobFlow", CLUSTER), False),
        (Call("elasticmapreduce:TerminateJobFlows", CLUSTER), False),
        (Call("elasticmapreduce:TerminateJobFlows", CLUSTER, THEIRS), False),
        (Call("elasticmapreduce:PutBlockPublicAccessConfiguration", CLUSTER, OURS), False),
        (Call("iam:PassRole", JOBS, {"iam:PassedToService": "lambda.amazonaws.com"}), False),
        (Call("iam:PassRole", ADMIN, {"iam:PassedToService": "ec2.amazonaws.com"}), False),
        (Call("iam:AttachRolePolicy", SERVICE_ROLE, {**EMR_POLICY, "iam:PolicyARN": FULL_ACCESS}), False),
        (Call("iam:AttachRolePolicy", SERVICE_ROLE, {"iam:PolicyARN": emr_service_policy_arn(TABLE)}), False),
        (Call("iam:AddRoleToInstanceProfile", f"arn:aws:iam::{ACCOUNT}:instance-profile/other"), False),
        (Call("kms:CreateKey", "*"), False),
        (Call("kms:PutKeyPolicy", KEY), False),
        (Call("kms:PutKeyPolicy", KEY, THEIR_KEY), False),
        (Call("kms:ScheduleKeyDeletion", KEY, OUR_KEY), False),
        (Call("kms:Decrypt", KEY, OUR_KEY), False),
        (Call("kms:Decrypt", KEY, {**THEIR_KEY, **S3}), False),
        (Call("kms:CreateGrant", KEY, {**OUR_KEY, **S3}), False),
    ],
    ids=lambda value: _name(value) if isinstance(value, Call) else str(value),
)  # fmt: skip
def test_what_the_deploying_role_may_do_with_clusters_and_key(call: Call, allowed: bool) -> None:
    assert is_allowed(call, deploying()) is allowed
