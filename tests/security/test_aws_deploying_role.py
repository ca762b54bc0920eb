"""F5, F6, F13, F14: what whoever holds the deploying role can make of it, by IAM's evaluation of its policies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deployer.compute.iam.boundary import boundary_policy
from deployer.compute.iam.deploying import deploying_grants
from deployer.compute.iam.lake import LakeOnAws
from deployer.compute.iam.policy_files import (
    MOST_CHARACTERS,
    MOST_POLICIES,
    NEW_KEY,
    characters,
    policies,
    previewing_grants,
)
from deployer.errors import Refused
from deployer.specs.model import AwsSettings, ReplicateTo
from tests.stacks.lakes import ACCOUNT, DEMO, REGION, deploying, lake
from tests.stacks.policies import Call, is_allowed

ROLE = f"{DEMO.roles}small"
BOUNDED = {"iam:PermissionsBoundary": DEMO.boundary}
ADMIN = f"arn:aws:iam::{ACCOUNT}:role/admin"
#: Only some actions have the boundary in their context; the others are for roles that were made with it.
BOUNDED_WRITES = ("CreateRole", "PutRolePolicy", "DeleteRolePolicy")
WRITES = (*BOUNDED_WRITES, "UpdateAssumeRolePolicy", "UpdateRole")


@pytest.mark.parametrize("action", WRITES)
@pytest.mark.parametrize(
    ("role", "context", "allowed"),
    [
        (ROLE, BOUNDED, True),
        (ROLE, {}, False),
        (ROLE, {"iam:PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess"}, False),
        (ADMIN, BOUNDED, False),
        (f"arn:aws:iam::{ACCOUNT}:role/deployer-demo-backdoor", BOUNDED, False),
        (f"arn:aws:iam::{ACCOUNT}:role/deployer/0000000000/small", BOUNDED, False),
        (f"{DEMO.roles.rstrip('/')}2/small", BOUNDED, False),
    ],
    ids=["own", "no boundary", "another boundary", "admin", "no path", "another lake", "longer path"],
)
def test_roles_are_made_within_the_boundary_alone(
    action: str, role: str, context: dict[str, str], allowed: bool
) -> None:
    """F5: `iam:CreateRole` and `PutRolePolicy` had no condition, so the role could write itself any right."""
    if action in BOUNDED_WRITES:
        assert is_allowed(Call(f"iam:{action}", role, context), deploying()) is allowed
    else:
        assert is_allowed(Call(f"iam:{action}", role), deploying()) is (role == ROLE)


#: All of IAM that could lead to more rights, whatever the resource (https://docs.aws.amazon.com/service-authorization/).
ESCALATIONS = (
    "AddUserToGroup", "AttachGroupPolicy", "AttachUserPolicy", "CreateAccessKey", "CreateLoginProfile", "CreatePolicy",
    "CreatePolicyVersion", "CreateUser", "DeleteRolePermissionsBoundary", "DeletePolicyVersion",
    "PutGroupPolicy", "PutRolePermissionsBoundary", "PutUserPermissionsBoundary", "PutUserPolicy",
    "SetDefaultPolicyVersion", "UpdateAccessKey", "UpdateLoginProfile", "CreateOpenIDConnectProvider",
    "UpdateOpenIDConnectProviderThumbprint", "CreateSAMLProvider", "CreateServiceLinkedRole",
)  # fmt: skip


def everything() -> Iterator[str]:
    yield from (ROLE, ADMIN, DEMO.boundary, "*")
    yield from (f"arn:aws:iam::{ACCOUNT}:{each}" for each in ("user/somebody", "group/all", "policy/admin"))


@pytest.mark.parametrize("action", ESCALATIONS)
def test_nothing_else_of_iam_is_allowed(action: str) -> None:
    """F5: neither the boundary, nor which one a role has, nor users, groups and policies can be changed."""
    documents = [*deploying(), policies(DEMO)[NEW_KEY]]
    assert not any(is_allowed(Call(f"iam:{action}", each, BOUNDED), documents) for each in everything())
    assert not any(is_allowed(Call(f"iam:{action}", each, BOUNDED), [boundary_policy(DEMO)]) for each in everything())


SERVICES = (
    "ec2", "lambda", "glue", "ecs-tasks", "cloudformation", "codebuild", "sagemaker", "states", "scheduler", "events",
    "s3", "emr-serverless", "elasticmapreduce", "ssm", "datapipeline", "batch",
)  # fmt: skip


@pytest.mark.parametrize("service", SERVICES)
def test_roles_of_others_are_handed_to_nobody(service: str) -> None:
    """F5: `iam:PassRole` is for the lake's own roles, and for the services that run or tell of its jobs."""
    to = {"iam:PassedToService": f"{service}.amazonaws.com"}
    handed = {"ec2", "elasticmapreduce", "emr-serverless", "scheduler", "events", "s3"}
    assert is_allowed(Call("iam:PassRole", ROLE, to), deploying()) is (service in handed)
    assert not is_allowed(Call("iam:PassRole", ADMIN, to), deploying())
    assert not is_allowed(Call("iam:PassRole", ADMIN, to), [boundary_policy(DEMO)])
    assert not is_allowed(Call("iam:PassRole", ROLE), deploying())


BEYOND = [
    Call("s3:GetObject", "arn:aws:s3:::payroll/a"),
    Call("s3:PutBucketPolicy", DEMO.bucket),
    Call("s3:PutLifecycleConfiguration", DEMO.bucket),
    Call("s3:DeleteObjectVersion", f"{DEMO.bucket}/demo/a"),
    Call("s3:GetObject", f"{DEMO.bucket}/pulumi/state.json"),
    Call("dynamodb:DeleteTable", DEMO.table_arn),
    Call("dynamodb:GetItem", DEMO.arn("dynamodb", "table/orders")),
    Call("kms:Decrypt", DEMO.arn("kms", "key/payroll")),
    Call("kms:Decrypt", DEMO.arn("kms", "key/payroll"), {"aws:ResourceTag/deployer:lake": "0000000000"}),
    Call("kms:PutKeyPolicy", DEMO.arn("kms", "key/own"), DEMO.tagged),
    Call("kms:ScheduleKeyDeletion", DEMO.arn("kms", "key/own"), DEMO.tagged),
    Call("sts:AssumeRole", ADMIN),
    Call("lambda:CreateFunction", DEMO.arn("lambda", "function:any")),
    Call("ec2:RunInstances", DEMO.arn("ec2", "subnet/subnet-1")),
    Call("ec2:RunInstances", DEMO.arn("ec2", "instance/*")),
    Call("ec2:TerminateInstances", DEMO.arn("ec2", "instance/i-1")),
    Call("ec2:CreateTags", DEMO.arn("ec2", "instance/i-1"), {"ec2:CreateAction": "CreateVolume"}),
    Call("emr-serverless:StartJobRun", DEMO.arn("emr-serverless", "/applications/1")),
    Call("elasticmapreduce:AddJobFlowSteps", DEMO.arn("elasticmapreduce", "cluster/j-1")),
    Call("secretsmanager:GetSecretValue", DEMO.arn("secretsmanager", "secret:any")),
    Call("glue:CreateTable", DEMO.arn("glue", "table/orders/any")),
    Call("sns:Publish", DEMO.arn("sns", "orders")),
    Call("logs:GetLogEvents", DEMO.arn("logs", "log-group:any:log-stream:any")),
]


@pytest.mark.parametrize("call", BEYOND, ids=lambda call: f"{call.action} {call.resource.rpartition(':')[2]}")
def test_no_role_of_the_stack_comes_beyond_the_boundary(call: Call) -> None:
    """F5: a role within the boundary has no more than it, whatever policy the deploying role writes into it."""
    anything = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    assert is_allowed(call, [anything])
    assert not is_allowed(call, [anything], boundary_policy(DEMO))


def test_a_bounded_role_writes_no_roles() -> None:
    """F5: so a role that was let in by `UpdateAssumeRolePolicy` cannot make another one without the boundary."""
    anything = {"Statement": [{"Effect": "Allow", "Action": "iam:*", "Resource": "*"}]}
    for action in (*WRITES, *ESCALATIONS, "AttachRolePolicy", "TagRole", "AddRoleToInstanceProfile"):
        for resource in everything():
            assert not is_allowed(Call(f"iam:{action}", resource, BOUNDED), [anything], boundary_policy(DEMO)), action


KEYS = DEMO.arn("kms", "key/payroll")
OURS, THEIRS = DEMO.tagged, {"aws:ResourceTag/deployer:lake": "0000000000"}


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("kms:TagResource", KEYS),
        ("kms:UntagResource", KEYS),
        ("kms:PutKeyPolicy", KEYS),
        ("kms:CreateAlias", KEYS),
        ("kms:UpdateAlias", KEYS),
        ("kms:CreateGrant", KEYS),
        ("dynamodb:TagResource", DEMO.arn("dynamodb", "table/orders")),
        ("sns:TagResource", DEMO.arn("sns", "orders")),
        ("sqs:TagQueue", DEMO.arn("sqs", "orders")),
        ("elasticmapreduce:AddTags", DEMO.arn("elasticmapreduce", "cluster/j-1")),
        ("emr-serverless:TagResource", DEMO.arn("emr-serverless", "/applications/00theirs")),
        ("emr-serverless:TagResource", DEMO.arn("emr-serverless", "/applications/00theirs/jobruns/1")),
        ("events:TagResource", DEMO.arn("events", "rule/orders")),
        ("logs:TagResource", DEMO.arn("logs", "log-group:/emr-serverless/orders")),
        ("scheduler:TagResource", DEMO.arn("scheduler", "schedule-group/orders")),
        ("glue:TagResource", DEMO.arn("glue", "database/demo_orders")),
        ("glue:TagResource", DEMO.arn("glue", "job/demo_orders")),
        ("cloudwatch:TagResource", DEMO.arn("cloudwatch", "alarm:orders")),
        ("budgets:TagResource", f"arn:aws:budgets::{ACCOUNT}:budget/orders"),
        ("iam:TagRole", ADMIN),
        ("s3:PutBucketTagging", "arn:aws:s3:::payroll"),
        ("s3:TagResource", "arn:aws:s3:::payroll"),
    ],
)
def test_no_resource_of_others_can_be_adopted(action: str, resource: str) -> None:
    """F6: `kms:TagResource` was allowed on any key that was to get the lake's tag, which made it the lake's own."""
    for tags in ({}, THEIRS):
        assert not is_allowed(Call(action, resource, {**DEMO.asked, **tags}), deploying())


def test_a_key_is_not_given_away_and_not_locked() -> None:
    """F6: the tag of the lake's own key stays the lake's, and its policy stays changeable."""
    key = DEMO.arn("kms", "key/own")
    other = {"aws:RequestTag/deployer:lake": "0000000000"}
    assert is_allowed(Call("kms:TagResource", key, {**OURS, **DEMO.asked}), deploying())
    assert is_allowed(Call("kms:TagResource", key, {**OURS, "aws:RequestTag/team": "data"}), deploying())
    assert not is_allowed(Call("kms:TagResource", key, {**OURS, **other}), deploying())
    assert is_allowed(Call("kms:PutKeyPolicy", key, OURS), deploying())
    assert not is_allowed(
        Call("kms:PutKeyPolicy", key, {**OURS, "kms:BypassPolicyLockoutSafetyCheck": "true"}), deploying()
    )


def test_the_right_to_make_a_key_is_apart() -> None:
    """F6: KMS cannot tell a new key's tags from those of a key that is there, so that right is not always attached."""
    assert not any("kms:CreateKey" in str(document) for document in deploying())
    new = policies(DEMO)[NEW_KEY]
    assert is_allowed(Call("kms:CreateKey", "*", DEMO.asked), [new])
    assert not is_allowed(Call("kms:PutKeyPolicy", KEYS, DEMO.asked), [new])


ALIKE = [
    ("s3://lakes-1/nyc", "nyc", "s3://lakes-2/prod", "nyc-prod"),
    ("s3://lakes-1/nyc", "nyc", "s3://lakes-2/prod", "nyc_prod"),
    ("s3://lakes-1/a", "nyc_prod", "s3://lakes-2/b", "nyc-prod"),
    ("s3://lakes-1/dev", "nyc", "s3://lakes-2/prod", "nyc"),
    ("s3://lakes-1/a", "a" * 60, "s3://lakes-2/b", "a" * 61),
]


@pytest.mark.parametrize("names", ALIKE, ids=lambda names: f"{names[1][:9]} {names[3][:9]}")
def test_lakes_with_names_alike_do_not_touch_each_other(names: tuple[str, str, str, str]) -> None:
    """F14: `deployer-nyc-*` covered the roles, tables and log groups of `nyc-prod` and `nyc_prod`."""
    one, two = lake(*names[:2]), lake(*names[2:])
    for mine, theirs in ((one, two), (two, one)):
        attached = deploying(mine)
        for call in changes(theirs):
            assert not is_allowed(call, attached), call


def changes(of: LakeOnAws) -> Iterator[Call]:
    """Each change that a lake's grants allow, on their examples, but for what is to be made: that gets the tag of
    whoever makes it. Who deletes a database is asked for what is in it besides."""
    for grant in deploying_grants(of):
        makes = "aws:RequestTag/deployer:lake" in grant.context and grant.sid != "TagsOfKey"
        if makes or grant.sid in ("Catalog", "InsideDatabases"):
            continue
        reads = {call for each in previewing_grants([grant]) for call in each.calls}
        for action in set(grant.calls) - reads - WITHOUT_RESOURCE:
            for example in grant.examples:
                yield Call(action, example, grant.context)


#: IAM knows no resource for these.
WITHOUT_RESOURCE = {
    "sns:Unsubscribe",
    "elasticmapreduce:CreateSecurityConfiguration",
    "elasticmapreduce:DeleteSecurityConfiguration",
}


def test_every_application_of_the_account_was_one_pattern() -> None:
    """F14: `emr-serverless:DeleteApplication` held for `/applications/*`."""
    theirs = DEMO.arn("emr-serverless", "/applications/anyone")
    assert not is_allowed(Call("emr-serverless:DeleteApplication", theirs), deploying())
    assert not is_allowed(Call("emr-serverless:DeleteApplication", theirs, THEIRS), deploying())
    assert is_allowed(Call("emr-serverless:DeleteApplication", theirs, OURS), deploying())


def test_alarms_and_rules_reach_nothing_of_others() -> None:
    """F14: an alarm can stop machines, and a rule send to any function; both only tell the lake's own topic."""
    alarm, rule = DEMO.arn("cloudwatch", f"alarm:{DEMO.own}a"), DEMO.arn("events", f"rule/{DEMO.own}a")
    topic, stop = DEMO.arn("sns", f"{DEMO.own}a"), f"arn:aws:automate:{REGION}:ec2:terminate"
    assert is_allowed(Call("cloudwatch:PutMetricAlarm", alarm, {"cloudwatch:AlarmActions": [topic]}), deploying())
    assert not is_allowed(
        Call("cloudwatch:PutMetricAlarm", alarm, {"cloudwatch:AlarmActions": [topic, stop]}), deploying()
    )
    assert is_allowed(Call("events:PutTargets", rule, {"events:TargetArn": [topic]}), deploying())
    theirs = DEMO.arn("lambda", "function:any")
    assert not is_allowed(Call("events:PutTargets", rule, {"events:TargetArn": [theirs]}), deploying())


LONGEST = lake(
    f"s3://{'b' * 63}/{'p' * 128}",
    "i" * 128,
    region="ap-southeast-99",
    partition="aws-us-gov",
    borrowed_roles=(f"arn:aws-us-gov:iam::{ACCOUNT}:role/{'r' * 64}",) * 2,
    log_folders=(f"s3://{'l' * 63}/{'m' * 40}",),
    settings=AwsSettings(
        kms_key="managed",
        permissions_boundary=f"arn:aws-us-gov:iam::{ACCOUNT}:policy/{'x' * 128}",
        replicate_to=ReplicateTo(f"arn:aws-us-gov:s3:::{'c' * 63}"),
    ),
)


@pytest.mark.parametrize("of", [DEMO, LONGEST], ids=["short", "longest"])
def test_every_policy_fits_into_iam(of: LakeOnAws) -> None:
    """F13: the one policy of the docs had 9,419 characters, and a managed policy takes 6,144."""
    written = policies(of)
    assert {"boundary", "deploy-lake", "deploy-clusters", "deploy-services", "new-key", "preview"} <= written.keys()
    assert all(characters(each) <= MOST_CHARACTERS for each in written.values())
    assert sum(name.startswith("deploy") for name in written) + 1 <= MOST_POLICIES


def test_names_that_are_too_long_for_iam_are_refused() -> None:
    """F13: better a message than a policy that IAM does not take."""
    with pytest.raises(Refused, match=r"the policy boundary has .* characters, and IAM takes 6,144; shorten"):
        policies(lake(f"s3://lakes/{'p' * 900}"))
