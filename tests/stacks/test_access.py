"""What the roles and the bucket's policy of the golden stack allow and forbid, call by call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.compute.iam.bucket import bucket_policy
from deployer.compute.iam.jobs import capacity, job_policy
from deployer.compute.iam.key import key_alias
from deployer.platform.aws.names import lake_id, log_bucket_name, name_on_aws, own_name, own_names, role_path
from deployer.specs.model import AccessOnlyFrom
from deployer.state.backends.dynamodb.table import table_name
from tests.stacks.lakes import ACCOUNT
from tests.stacks.policies import Call, is_allowed, is_denied

GRAPH: list[dict[str, Any]] = json.loads(Path(__file__).with_name("graph.json").read_text(encoding="utf-8"))


def inputs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each["inputs"] for each in GRAPH if each["name"] == name)
    return found


TABLE = "arn:aws:dynamodb:eu-central-1:123456789012:table/deployer-demo-aa0c93e7"
OTHER_TABLE = "arn:aws:dynamodb:eu-central-1:123456789012:table/deployer-demo-aa0c93e8"
LOGS = f"arn:aws:logs:eu-central-1:{ACCOUNT}:log-group:{inputs('logs/small')['name']}"
BUCKET = "arn:aws:s3:::golden-lakes"
TLS = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3", "aws:PrincipalOrgID": "o-a1b2c3d4e5"}


def policies() -> list[dict[str, Any]]:
    """Those that a job's request is judged by: the role's, and the bucket's."""
    return [json.loads(inputs("lake/small")["policy"]), json.loads(inputs("tls-only/golden-lakes")["policy"])]


ALLOWED = [
    *(Call(f"s3:{each}Object", f"{BUCKET}/demo/air/flights-1.lance/data/a.lance") for each in ("Get", "Put", "Delete")),
    Call("s3:AbortMultipartUpload", f"{BUCKET}/demo/air/flights-1.lance/data/a.lance"),
    Call("s3:GetObject", f"{BUCKET}/demo/_state/store.json"),
    Call("s3:PutObject", f"{BUCKET}/demo/_runs/8b28.json"),
    Call("s3:PutObject", f"{BUCKET}/demo/_job-logs/small/j-1/stdout.gz"),
    Call("s3:GetObject", f"{BUCKET}/demo/_jobs/8b28/environment-arm64.tar.gz"),
    Call("s3:ListBucket", BUCKET, {"s3:prefix": "demo/_jobs/"}),
    Call("s3:ListBucket", BUCKET, {"s3:prefix": "demo/air/"}),
    Call("s3:ListBucket", BUCKET, {"s3:prefix": "demo/"}),
    *(
        Call(f"dynamodb:{each}", TABLE)
        for each in (
            "GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchGetItem", "BatchWriteItem",
            "ConditionCheckItem",
        )
    ),
    Call("dynamodb:Query", f"{TABLE}/index/by_transaction"),
    Call("logs:DescribeLogGroups", f"{LOGS}:log-stream:"),
    Call("logs:DescribeLogStreams", f"{LOGS}:log-stream:"),
    Call("logs:CreateLogStream", f"{LOGS}:log-stream:a"),
    Call("logs:PutLogEvents", f"{LOGS}:log-stream:a"),
]  # fmt: skip
FORBIDDEN = [
    Call("s3:PutObject", f"{BUCKET}/demo/_jobs/8b28/ingest.py"),
    Call("s3:DeleteObject", f"{BUCKET}/demo/_jobs/8b28/ingest.py"),
    Call("s3:DeleteObject", f"{BUCKET}/demo/_job-logs/small/j-1/stdout.gz"),
    Call("s3:DeleteObject", f"{BUCKET}/demo/_runs/8b28.json"),
    Call("s3:GetObject", f"{BUCKET}/other/_jobs/8b28/ingest.py"),
    Call("s3:GetObject", f"{BUCKET}/other/air/flights-1.lance/data/a.lance"),
    Call("s3:GetObject", f"{BUCKET}/demo-2/air/flights-1.lance/data/a.lance"),
    Call("s3:GetObject", "arn:aws:s3:::golden-lakes-2/demo/a"),
    Call("s3:ListBucket", BUCKET),
    Call("s3:ListBucket", BUCKET, {"s3:prefix": ""}),
    Call("s3:ListBucket", BUCKET, {"s3:prefix": "demo"}),
    Call("s3:ListBucket", BUCKET, {"s3:prefix": "demo-2/"}),
    Call("s3:DeleteObjectVersion", f"{BUCKET}/demo/air/a"),
    Call("s3:PutBucketPolicy", BUCKET),
    Call("s3:PutBucketVersioning", BUCKET),
    Call("s3:PutLifecycleConfiguration", BUCKET),
    Call("s3:DeleteBucket", BUCKET),
    Call("dynamodb:GetItem", OTHER_TABLE),
    Call("dynamodb:DeleteTable", TABLE),
    Call("dynamodb:UpdateTable", TABLE),
    Call("dynamodb:CreateTable", TABLE),
    Call("dynamodb:Scan", TABLE),
    Call("dynamodb:PutItem", f"{TABLE}/index/by_transaction"),
    Call("logs:PutLogEvents", (LOGS + "2") + ":log-stream:a"),
    Call("logs:GetLogEvents", f"{LOGS}:log-stream:a"),
    Call("logs:CreateLogGroup", f"{LOGS}:log-stream:"),
    Call("logs:DeleteLogGroup", LOGS),
    Call("logs:PutRetentionPolicy", LOGS),
    Call("iam:PassRole", "arn:aws:iam::123456789012:role/deployer-demo-small"),
    Call("sts:AssumeRole", "arn:aws:iam::123456789012:role/admin"),
    Call("emr-serverless:StartJobRun", "arn:aws:emr-serverless:eu-central-1:123456789012:/applications/1"),
]


def _name(call: Call) -> str:
    return f"{call.action} {call.resource.rpartition(':')[2]} {call.context.get('s3:prefix', '')}".strip()


@pytest.mark.parametrize("call", ALLOWED, ids=_name)
def test_a_job_may(call: Call) -> None:
    assert is_allowed(Call(call.action, call.resource, {**TLS, **call.context}), policies())


@pytest.mark.parametrize("call", FORBIDDEN, ids=_name)
def test_a_job_may_not(call: Call) -> None:
    assert not is_allowed(Call(call.action, call.resource, {**TLS, **call.context}), policies())


@pytest.mark.parametrize("call", [each for each in ALLOWED if each.action.startswith("s3:")], ids=_name)
def test_nothing_without_tls(call: Call) -> None:
    context = {**TLS, **call.context, "aws:SecureTransport": "false"}
    assert not is_allowed(Call(call.action, call.resource, context), policies())


@pytest.mark.parametrize("call", [each for each in ALLOWED if each.action.startswith("s3:")], ids=_name)
@pytest.mark.parametrize(
    "context",
    [{"s3:TlsVersion": "1.1"}, {"aws:PrincipalOrgID": "o-another"}],
    ids=["old TLS", "another organization"],
)
def test_nothing_with_an_old_tls_or_from_elsewhere(call: Call, context: dict[str, str]) -> None:
    assert not is_allowed(Call(call.action, call.resource, {**TLS, **call.context, **context}), policies())


SSE, KEY_ID = "s3:x-amz-server-side-encryption", "s3:x-amz-server-side-encryption-aws-kms-key-id"
OWN_KEY = "arn:aws:kms:eu-central-1:123456789012:key/KEY"


@pytest.mark.parametrize(
    ("context", "allowed"),
    [
        ({}, True),  # the bucket's own encryption
        ({SSE: "aws:kms"}, True),
        ({SSE: "aws:kms", KEY_ID: OWN_KEY}, True),
        ({SSE: "AES256"}, False),
        ({SSE: "aws:kms", KEY_ID: OWN_KEY.replace("KEY", "foreign")}, False),
        ({"s3:x-amz-server-side-encryption-customer-algorithm": "AES256"}, False),
    ],
)
def test_what_is_written_is_encrypted_by_the_lakes_key(context: dict[str, str], allowed: bool) -> None:
    data, pulumi = (f"{BUCKET}/{each}" for each in ("demo/air/a", "pulumi/a"))
    assert is_allowed(Call("s3:PutObject", data, {**TLS, **context}), policies()) is allowed
    assert not is_denied(Call("s3:PutObject", pulumi, {**TLS, **context}), policies()[1])


def test_only_through_the_vpcs_endpoints() -> None:
    policy = bucket_policy(BUCKET, "demo/", None, AccessOnlyFrom(vpc_endpoints=("vpce-1", "vpce-2")))
    read = Call("s3:GetObject", f"{BUCKET}/demo/air/a", {**TLS, "aws:SourceVpce": "vpce-2"})
    assert not is_denied(read, policy)
    assert is_denied(Call(read.action, read.resource, {**TLS, "aws:SourceVpce": "vpce-3"}), policy)
    assert is_denied(Call(read.action, read.resource, TLS), policy)
    assert not is_denied(Call("s3:GetBucketPolicy", BUCKET, TLS), policy)  # so that it can be fixed


def test_no_statement_that_allows_has_every_resource_or_action() -> None:
    for document in [each["inputs"]["policy"] for each in GRAPH if each["type"] == "aws:iam/rolePolicy:RolePolicy"]:
        for statement in json.loads(document)["Statement"]:
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            assert statement["Resource"] != "*" and not any("*" in action for action in actions), statement


@pytest.mark.parametrize(
    ("source", "allowed"),
    [("", True), ("2", False)],
    ids=["its own application", "another application"],
)
def test_who_may_act_in_the_role(source: str, allowed: bool) -> None:
    trust = json.loads(inputs("role/small")["assumeRolePolicy"])
    (statement,) = trust["Statement"]
    assert statement["Principal"] == {"Service": "emr-serverless.amazonaws.com"}
    own = statement["Condition"]["ArnEquals"]["aws:SourceArn"]
    assert own.rpartition("/")[0].endswith(":/applications")
    assert is_allowed(Call("sts:AssumeRole", "", {"aws:SourceArn": own + source}), [trust]) is allowed


def test_the_execution_role_that_is_declared_is_left_alone() -> None:
    roles = {each["name"] for each in GRAPH if each["type"] == "aws:iam/role:Role"}
    assert "role/small" in roles and "role/own-role" not in roles


def test_a_lake_at_the_root_of_its_bucket() -> None:
    policy = job_policy("s3://lakes", "demo", TABLE, LOGS)
    assert is_allowed(Call("s3:ListBucket", "arn:aws:s3:::lakes"), [policy])
    assert is_allowed(Call("s3:PutObject", "arn:aws:s3:::lakes/air/a"), [policy])
    assert not is_allowed(Call("s3:PutObject", "arn:aws:s3:::lakes-2/air/a"), [policy])


def test_another_partition() -> None:
    table, logs = (each.replace("arn:aws:", "arn:aws-cn:") for each in (TABLE, LOGS))
    statements = job_policy("s3://lakes/a", "demo", table, logs)["Statement"]
    assert "arn:aws:" not in json.dumps(statements)


NAMES = [
    ("s3://a/b", "demo", "small"),
    ("s3://a/c", "demo", "small"),
    ("s3://a/b", "demo-small", "x"),
    ("s3://a/b", "demo", "small-x"),
    ("s3://a/b", "d" * 200, "small"),
    ("s3://a/b", "d" * 200, "smaller"),
    ("s3://a/b", "d_emo.", "small"),
]


def test_names_never_clash() -> None:
    for name in (name_on_aws, own_name):
        made = [name(*each) for each in NAMES]
        assert len(set(made)) == len(NAMES) and name("s3://a/b/", "demo", "small") == made[0]


@pytest.mark.parametrize(
    ("one", "other"),
    [("nyc", "nyc-prod"), ("nyc", "nyc_prod"), ("nyc_prod", "nyc-prod"), ("a", lake_id("s3://lakes/b", "a"))],
)
def test_no_name_begins_as_those_of_another_lake(one: str, other: str) -> None:
    for mine, theirs in ((one, other), (other, one)):
        name = own_name("s3://lakes/b", theirs, "small")
        assert not name.startswith(own_names("s3://lakes/b", mine))
        assert name.startswith(own_names("s3://lakes/b", theirs))
    assert own_names("s3://lakes/dev", one) != own_names("s3://lakes/prod", one)


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,127}", fullmatch=True)
roots = st.from_regex(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[a-z]{1,9}){0,2}", fullmatch=True)


@given(st.lists(st.tuples(roots, names, names), min_size=2, max_size=6, unique=True))
def test_names_of_any_length_fit_and_differ(lakes: list[tuple[str, str, str]]) -> None:
    made: list[str] = []
    for root, instance, cluster in lakes:
        own = [name_on_aws(root, instance, what) for what in (cluster, f"{cluster}/emr", "/key")]
        own += [own_name(root, instance, what) for what in (cluster, f"{cluster}/emr", "/services")]
        assert re.fullmatch("[a-z0-9][a-z0-9-]{1,61}[a-z0-9]", log_bucket_name(root, instance))
        assert len(role_path(root, instance)) <= 512
        assert all(
            re.fullmatch("[A-Za-z0-9-]{1,64}", each) for each in own
        )  # of roles, profiles, applications, clusters
        assert len(f"/emr-serverless/{own[0]}") <= 512  # of log groups
        assert re.fullmatch("alias/[A-Za-z0-9/_-]{1,250}", key_alias(root, instance))
        assert re.fullmatch("[A-Za-z0-9_.-]{3,255}", table_name(root, instance))
        made += own[:2]
    lowered = [each.lower() for each in made]  # IAM's names differ by more than case
    assert len(set(lowered)) == len(made)


@pytest.mark.parametrize(
    ("max_workers", "cores", "memory", "expected"),
    [
        (10, 4, "14g", {"cpu": "44 vCPU", "memory": "176 GB"}),
        (1, 2, "4g", {"cpu": "4 vCPU", "memory": "10 GB"}),
        (1, 1, "900m", {"cpu": "2 vCPU", "memory": "4 GB"}),
        (3, 8, "30g", {"cpu": "32 vCPU", "memory": "144 GB"}),
        (1, 16, "60g", {"cpu": "32 vCPU", "memory": "144 GB"}),
    ],
)
def test_capacity(max_workers: int, cores: int, memory: str, expected: dict[str, str]) -> None:
    assert capacity(max_workers, cores, memory) == expected
