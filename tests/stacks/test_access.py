"""What the roles and the bucket's policy of the golden stack allow and forbid, call by call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployer.compute.aws_access import capacity, job_policy
from deployer.compute.aws_names import name_on_aws
from deployer.compute.deploying_access import deploying_grants, deploying_policy
from deployer.compute.grants import Grant
from deployer.compute.key_access import key_alias
from deployer.state.dynamodb_table import table_name
from tests.projects import REPOSITORY
from tests.stacks.policies import Call, is_allowed

GRAPH: list[dict[str, Any]] = json.loads(Path(__file__).with_name("graph.json").read_text(encoding="utf-8"))
TABLE = "arn:aws:dynamodb:eu-central-1:123456789012:table/deployer-demo-aa0c93e7"
OTHER_TABLE = "arn:aws:dynamodb:eu-central-1:123456789012:table/deployer-demo-aa0c93e8"
LOGS = "arn:aws:logs:eu-central-1:123456789012:log-group:/emr-serverless/deployer-demo-small-7e8ceebc"
BUCKET = "arn:aws:s3:::golden-lakes"
TLS = {"aws:SecureTransport": "true"}


def inputs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each["inputs"] for each in GRAPH if each["name"] == name)
    return found


def policies() -> list[dict[str, Any]]:
    """Those that a job's request is judged by: the role's, and the bucket's."""
    return [json.loads(inputs("lake/small")["policy"]), json.loads(inputs("tls-only/golden-lakes")["policy"])]


ALLOWED = [
    *(Call(f"s3:{each}Object", f"{BUCKET}/demo/air/flights-1.lance/data/a.lance") for each in ("Get", "Put", "Delete")),
    Call("s3:AbortMultipartUpload", f"{BUCKET}/demo/air/flights-1.lance/data/a.lance"),
    Call("s3:GetObject", f"{BUCKET}/demo/_state/store.json"),
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
    Call("logs:CreateLogGroup", f"{LOGS}:log-stream:"),
    Call("logs:DescribeLogStreams", f"{LOGS}:log-stream:"),
    Call("logs:CreateLogStream", f"{LOGS}:log-stream:a"),
    Call("logs:PutLogEvents", f"{LOGS}:log-stream:a"),
]  # fmt: skip
FORBIDDEN = [
    Call("s3:PutObject", f"{BUCKET}/demo/_jobs/8b28/ingest.py"),
    Call("s3:DeleteObject", f"{BUCKET}/demo/_jobs/8b28/ingest.py"),
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
    Call("logs:PutLogEvents", LOGS.replace("7e8ceebc", "7e8ceebd") + ":log-stream:a"),
    Call("logs:GetLogEvents", f"{LOGS}:log-stream:a"),
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
    context = {**call.context, "aws:SecureTransport": "false"}
    assert not is_allowed(Call(call.action, call.resource, context), policies())


def test_no_statement_that_allows_has_every_resource_or_action() -> None:
    for document in [each["inputs"]["policy"] for each in GRAPH if each["type"] == "aws:iam/rolePolicy:RolePolicy"]:
        for statement in json.loads(document)["Statement"]:
            actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
            assert statement["Resource"] != "*" and not any("*" in action for action in actions)


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
    policy = job_policy("s3://lakes", TABLE, LOGS)
    assert is_allowed(Call("s3:ListBucket", "arn:aws:s3:::lakes"), [policy])
    assert is_allowed(Call("s3:PutObject", "arn:aws:s3:::lakes/air/a"), [policy])
    assert not is_allowed(Call("s3:PutObject", "arn:aws:s3:::lakes-2/air/a"), [policy])


def test_another_partition() -> None:
    table, logs = (each.replace("arn:aws:", "arn:aws-cn:") for each in (TABLE, LOGS))
    statements = job_policy("s3://lakes/a", table, logs)["Statement"]
    assert all(each["Resource"].startswith("arn:aws-cn:") for each in statements)


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
    made = [name_on_aws(*each) for each in NAMES]
    assert len(set(made)) == len(NAMES) and name_on_aws("s3://a/b/", "demo", "small") == made[0]


names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,127}", fullmatch=True)
roots = st.from_regex(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[a-z]{1,9}){0,2}", fullmatch=True)


@given(st.lists(st.tuples(roots, names, names), min_size=2, max_size=6, unique=True))
def test_names_of_any_length_fit_and_differ(lakes: list[tuple[str, str, str]]) -> None:
    made: list[str] = []
    for root, instance, cluster in lakes:
        own = [name_on_aws(root, instance, what) for what in (cluster, f"{cluster}/emr", "/key")]
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


ACCOUNT = "123456789012"


def test_the_documentation_has_the_policy_of_the_code(update_golden: bool) -> None:
    page = REPOSITORY / "docs" / "aws.md"
    text = page.read_text(encoding="utf-8")
    begin = text.index("```json\n", text.index("\n## Permissions\n"))
    before, rest = text[:begin], text[begin:].removeprefix("```json\n")
    told, after = rest.split("```", 1)
    policy = deploying_policy("s3://our-lakes/nyc", "nyc", "REGION", "ACCOUNT")
    if update_golden:
        told = json.dumps(policy, indent=2) + "\n"
        page.write_text(f"{before}```json\n{told}```{after}", encoding="utf-8")
    assert json.loads(told) == policy


GRANTS = deploying_grants("s3://golden-lakes/demo", "demo", "eu-central-1", ACCOUNT)


@pytest.mark.parametrize("grant", GRANTS, ids=lambda grant: grant.sid)
def test_examples_of_a_grant_are_covered_by_its_statement(grant: Grant) -> None:
    policy = {"Statement": [grant.statement()]}
    assert all(
        is_allowed(Call(call, example, grant.context), [policy]) for call in grant.calls for example in grant.examples
    )
    assert not any("*" in text for text in (*grant.calls, *grant.examples))


ROLE = "arn:aws:iam::123456789012:role/deployer-demo-small-7e8ceebc"
APPLICATION = "arn:aws:emr-serverless:eu-central-1:123456789012:/applications/1"
DEPLOYING = [
    Call("s3:PutObject", f"{BUCKET}/demo/_jobs/8b28/ingest.py"),
    Call("s3:GetObjectTagging", f"{BUCKET}/demo/_jobs/8b28/ingest.py"),
    *(call for call in ALLOWED if not call.action.startswith("logs:")),
    Call("logs:DescribeLogGroups", "arn:aws:logs:eu-central-1:123456789012:log-group::log-stream:"),
    *(
        Call(f"logs:{action}", f"{LOGS}{end}")
        for action in ("CreateLogGroup", "DeleteLogGroup", "PutRetentionPolicy", "ListTagsForResource", "TagResource")
        for end in ("", ":log-stream:")
    ),
    *(
        Call(f"s3:{action}", BUCKET)
        for action in (
            "CreateBucket", "PutBucketTagging", "GetBucketTagging", "PutBucketVersioning", "GetBucketVersioning",
            "PutEncryptionConfiguration", "GetEncryptionConfiguration", "PutBucketPublicAccessBlock",
            "GetBucketPublicAccessBlock", "PutBucketOwnershipControls", "GetBucketOwnershipControls",
            "PutBucketPolicy", "GetBucketPolicy", "PutLifecycleConfiguration", "GetLifecycleConfiguration",
        )
    ),
    *(
        Call(f"dynamodb:{action}", TABLE)
        for action in (
            "CreateTable", "DescribeTable", "UpdateTable", "DescribeContinuousBackups", "UpdateContinuousBackups",
            "ListTagsOfResource", "TagResource", "UntagResource", "Scan",
        )
    ),
    *(
        Call(f"iam:{action}", ROLE)
        for action in (
            "CreateRole", "GetRole", "UpdateRole", "UpdateAssumeRolePolicy", "TagRole", "UntagRole", "DeleteRole",
            "PutRolePolicy", "GetRolePolicy", "DeleteRolePolicy",
        )
    ),
    Call("emr-serverless:CreateApplication", "arn:aws:emr-serverless:eu-central-1:123456789012:/"),
    *(
        Call(f"emr-serverless:{action}", APPLICATION)
        for action in ("GetApplication", "UpdateApplication", "StopApplication", "DeleteApplication", "TagResource")
    ),
]  # fmt: skip


@pytest.mark.parametrize("call", DEPLOYING, ids=_name)
def test_the_deploying_role_of_the_documentation_may(call: Call) -> None:
    assert is_allowed(call, [deploying_policy("s3://golden-lakes/demo", "demo", "eu-central-1", ACCOUNT)])


@pytest.mark.parametrize(
    "call",
    [
        Call("s3:DeleteBucket", BUCKET),
        Call("s3:GetObject", f"{BUCKET}/other/a"),
        Call("s3:GetObjectTagging", f"{BUCKET}/demo/air/flights-1.lance/data/a.lance"),
        Call("s3:PutBucketPolicy", "arn:aws:s3:::other-lakes"),
        Call("dynamodb:DeleteTable", TABLE),
        Call("dynamodb:UpdateTable", TABLE.replace("deployer-demo", "orders")),
        Call("iam:CreateRole", "arn:aws:iam::123456789012:role/admin"),
        Call("iam:PutRolePolicy", "arn:aws:iam::123456789012:role/admin"),
        Call("iam:AttachRolePolicy", ROLE),
        Call("logs:DeleteLogGroup", LOGS.replace("/emr-serverless", "")),
        Call("logs:GetLogEvents", f"{LOGS}:log-stream:a"),
        Call("iam:PassRole", ROLE),
    ],
    ids=_name,
)
def test_the_deploying_role_of_the_documentation_may_not(call: Call) -> None:
    assert not is_allowed(call, [deploying_policy("s3://golden-lakes/demo", "demo", "eu-central-1", ACCOUNT)])
