"""`deployer doctor` for a lake on S3: moto as AWS, and a server before it for what moto does not know."""

from __future__ import annotations

import datetime as dt
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from deployer.compute.iam.deploying import deploying_grants
from deployer.compute.iam.lake import LakeOnAws
from deployer.platform.aws.names import own_name
from deployer.specs import load_lake
from tests.cli.conftest import Deployer
from tests.stacks.answers import Answers, answering
from tests.stacks.conftest import REGION, MakeProject, bucket_of

pytestmark = pytest.mark.full

CLUSTERS = "clusters:\n  small: {kind: emr-serverless, release: emr-7.12.0, cores: 4, max_workers: 10}\n"
ACCOUNT = "123456789012"
#: Checks that this project does not need: its root is a bucket, and the embedded engine has the provider inside.
NOT_HERE = ("root", "state-store", "emr", "job-roles", "lake-provider", "functions")
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


def deploying(project: Path) -> dict[str, Any]:
    """All that the deploying role of the declared lake may do, in one policy."""
    where = LakeOnAws.of(load_lake(project, project / "specs", "dev").instance, REGION, ACCOUNT)
    return {"Statement": [grant.statement() for grant in deploying_grants(where)]}


@pytest.fixture
def lake(on_aws: MakeProject, aws: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Answers]]:
    """A project with a bucket with versions, before a server by which everything is allowed."""
    project = on_aws(CLUSTERS)
    bucket = bucket_of(project)
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    policy = deploying(project)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(project / "aws-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(project / "aws-credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with answering(aws, policy=policy, vcpus=100.0) as answers:
        monkeypatch.setenv("AWS_ENDPOINT_URL", answers.url)
        yield project, answers


def looked(deployer: Deployer, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the findings by check."""
    ran = deployer("doctor", "--json", *options)
    assert SECRET not in ran.out + ran.err and "Traceback" not in ran.err
    return ran.code, {each["check"]: each for each in ran.json["checks"]}


def test_everything_is_fine(lake: tuple[Path, Answers], deployer: Deployer) -> None:
    project, answers = lake
    code, found = looked(deployer)
    expected = dict.fromkeys(found, "ok") | dict.fromkeys(NOT_HERE, "not applicable")
    assert ({name: each["status"] for name, each in found.items()}, code) == (expected, 0), found
    assert found["identity"]["details"] == {"account": ACCOUNT, "arn": f"arn:aws:sts::{ACCOUNT}:user/moto"}
    assert found["credentials"]["details"] == {"source": "env", "expires": None}
    assert found["aws-provider"]["details"] == {"version": "7.51.1"}
    assert found["quotas"]["what"] == "100 vCPUs of EMR Serverless at a time; 1 cluster within it"
    principal = f"arn:aws:sts::{ACCOUNT}:user/moto"
    assert {each for each, _ in answers.simulated} == {principal}
    assert found["permissions"]["details"]["calls"] == len(answers.simulated) > 70
    s3 = boto3.client("s3")
    assert not s3.list_object_versions(Bucket=bucket_of(project)).get("Versions")
    assert not s3.list_multipart_uploads(Bucket=bucket_of(project)).get("Uploads")


def test_the_lake_that_was_applied(lake: tuple[Path, Answers], deployer: Deployer) -> None:
    project, _ = lake
    (project / "Pulumi.dev.yaml").write_text("config:\n  deployer:aws: none\n", encoding="utf-8")
    assert deployer("up", "--yes").code == 0
    code, found = looked(deployer)
    assert code == 0
    assert found["state-store"]["what"] == "DynamoDB, format 1, 1 table"
    assert found["aws-package"]["what"] == found["aws-provider"]["what"] == "deployer:aws is none"
    assert found["pulumi-state"]["status"] == "ok" and "resources in" in found["pulumi-state"]["what"]


Setting = Callable[[Path, Answers, pytest.MonkeyPatch], None]


def _no_versions(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
    boto3.client("s3").put_bucket_versioning(Bucket=bucket_of(project), VersioningConfiguration={"Status": "Suspended"})


def _no_bucket(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
    boto3.client("s3").delete_bucket(Bucket=bucket_of(project))


def _no_bucket_and_none_made(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
    _no_bucket(project, answers, environment)
    (project / "Pulumi.dev.yaml").write_text("config:\n  deployer:aws: table\n", encoding="utf-8")


def _in_another_region(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_REGION", "us-west-2")


def _set(**values: Any) -> Setting:
    def change(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
        for name, value in values.items():
            setattr(answers, name, value)

    return change


def _less(sid: str) -> Setting:
    """A policy without one of the statements."""

    def change(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
        assert answers.policy is not None
        statements = [each for each in answers.policy["Statement"] if each["Sid"] != sid]
        answers.policy = {**answers.policy, "Statement": statements}

    return change


def _environment(**values: str | None) -> Setting:
    def change(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
        for name, value in values.items():
            environment.delenv(name, raising=False) if value is None else environment.setenv(name, value)

    return change


def _expiring(hours: float) -> Setting:
    """Credentials whose time is over so many hours from when the test begins."""

    def change(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
        end = dt.datetime.now(dt.UTC) + dt.timedelta(hours=hours)
        environment.setenv("AWS_CREDENTIAL_EXPIRATION", end.isoformat())

    return change


_NO_KEYS = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}


def _profile(text: str) -> Setting:
    """A config file with the profile `lake`, and no credentials in the environment."""

    def change(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
        _environment(**_NO_KEYS, AWS_PROFILE="lake")(project, answers, environment)
        (project / "aws-config").write_text(f"[profile lake]\nregion = {REGION}\n{text}", encoding="utf-8")

    return change


def _no_plugin(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
    (project / "bin" / "pulumi-resource-aws").unlink()


def _plugin(text: str) -> Setting:
    def change(project: Path, answers: Answers, environment: pytest.MonkeyPatch) -> None:
        file = project / "bin" / "pulumi-resource-aws"
        file.write_text(text, encoding="utf-8")

    return change


ROLE = f"arn:aws:iam::{ACCOUNT}:role/teams/data/deployer"
SESSION = f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/ci"

CASES: Mapping[str, tuple[Setting, str, str, str, str]] = {
    # name: (what is otherwise, check, status, words of what, words of the remedy)
    "no versions": (_no_versions, "bucket", "warning", "keeps no versions", "deployer up"),
    "no bucket": (_no_bucket, "bucket", "ok", "does not exist yet: `deployer up` creates it", ""),
    "no bucket, none made": (_no_bucket_and_none_made, "bucket", "wrong", "there is no bucket", "s3api create-bucket"),
    "another region": (_in_another_region, "bucket", "wrong", f"is in {REGION}, and", f"set AWS_REGION={REGION}"),
    "not written": (_set(read_only=True), "bucket", "warning", "objects cannot be written", "enough for previews"),
    "may not simulate": (_set(policy=None), "permissions", "warning", "may not simulate", "SimulatePrincipalPolicy"),
    "roles denied": (_less("BoundedRoles"), "permissions", "wrong", "iam:CreateRole on", "docs/aws-perm"),
    "bucket denied": (_less("BucketItself"), "permissions", "wrong", "and 56 more", "docs/aws-permissions.md"),
    "listing denied": (_less("ListLake"), "permissions", "ok", "", ""),  # BucketItself allows it, too
    "role with a path": (_set(identity=SESSION, role=ROLE), "permissions", "ok", f"allowed to {ROLE}", ""),
    "role not told": (_set(identity=SESSION), "permissions", "ok", f"to arn:aws:iam::{ACCOUNT}:role/deployer", ""),
    "root user": (_set(identity=f"arn:aws:iam::{ACCOUNT}:root"), "permissions", "warning", "root user", "use a role"),
    "federated": (
        _set(identity=f"arn:aws:sts::{ACCOUNT}:federated-user/bob"), "permissions", "not applicable", "federated", ""
    ),
    "small quota": (_set(vcpus=16.0), "quotas", "warning", "small (44) may take more", "request a higher quota in"),
    "no quota": (_set(vcpus=None), "quotas", "warning", "AccessDenied", "servicequotas:ListServiceQuotas"),
    "clock behind": (_set(skew=dt.timedelta(minutes=20)), "clock", "wrong", "s behind the clock", "set the clock"),
    "clock before": (_set(skew=dt.timedelta(minutes=-20)), "clock", "wrong", "s ahead of the clock", "set the clock"),
    "clock a little off": (_set(skew=dt.timedelta(seconds=100)), "clock", "warning", "s behind the clock", "set the"),
    "expired token": (_set(refused="ExpiredToken"), "identity", "wrong", "ExpiredToken", "renew the credentials"),
    "identity denied": (_set(refused="AccessDenied"), "identity", "warning", "AccessDenied", "sts:GetCallerIdentity"),
    "identity denied: bucket": (
        _set(refused="AccessDenied"),
        "bucket",
        "not applicable",
        "STS did not report the caller's identity: AccessDenied",
        "",
    ),
    "no credentials": (_environment(**_NO_KEYS), "credentials", "wrong", "none were found", "run `aws configure`"),
    "no credentials: bucket": (_environment(**_NO_KEYS), "bucket", "not applicable", "there are no credentials", ""),
    "half of them": (
        _environment(AWS_SECRET_ACCESS_KEY=None), "credentials", "wrong", "Partial credentials", "run `aws configure`"
    ),
    "soon over": (_expiring(0.15), "credentials", "warning", "expire at", "renew them"),
    "over later": (_expiring(10), "credentials", "ok", "expire at", ""),
    "over": (_expiring(-1), "credentials", "wrong", "have expired", "renew them"),
    "over: identity": (
        _expiring(-1), "identity", "not applicable", "no credentials that work", ""
    ),
    "a token": (_environment(AWS_SESSION_TOKEN="t"), "credentials", "ok", "temporary, with an unknown expiry", ""),
    "another profile": (_environment(AWS_PROFILE="none"), "credentials", "wrong", "(none)", "set AWS_PROFILE"),
    "profile": (
        _profile(f"aws_access_key_id = a\naws_secret_access_key = {SECRET}\n"),
        "credentials", "ok", "from the config file, profile lake; they do not expire", "",
    ),
    "process": (
        _profile(f"credential_process = sh -c 'echo {SECRET} >&2; exit 1'\n"),
        "credentials", "wrong", "custom-process gave no credentials", "run it by hand",
    ),
    "role with a code": (
        _profile("role_arn = arn:aws:iam::1:role/r\nmfa_serial = m\nsource_profile = s\n"
                 "[profile s]\naws_access_key_id = a\naws_secret_access_key = b\n"),
        "credentials", "wrong", "the profile needs a code (MFA)", "aws sts assume-role",
    ),
    "single sign-on": (
        _profile("sso_session = c\nsso_account_id = 1\nsso_role_name = r\n"
                 "[sso-session c]\nsso_region = us-east-1\nsso_start_url = https://c.example/start\n"),
        "credentials", "wrong", "", "log in again: `aws sso login`",
    ),
    "no region": (_environment(AWS_DEFAULT_REGION=None), "region", "wrong", "none is set", "set AWS_REGION"),
    "no region: bucket": (_environment(AWS_DEFAULT_REGION=None), "bucket", "not applicable", "there is no region", ""),
    "another name": (_environment(AWS_REGION="eu-centrl-1"), "region", "warning", "that this boto3", "typing"),
    "no plugin": (_no_plugin, "aws-provider", "wrong", "no executable pulumi-resource-aws", "install the provider"),
    "plugin breaks": (
        _plugin("#!/bin/sh\necho no such library >&2\nexit 1\n"), "aws-provider", "wrong", "did not start", "by hand"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_said_with_its_remedy(
    name: str, lake: tuple[Path, Answers], deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, check, status, what, remedy = CASES[name]
    _plugin("#!/bin/sh\nexit 1\n")(*lake, monkeypatch)  # the real one takes a second to start
    change(*lake, monkeypatch)
    code, checks = looked(deployer)
    found = checks[check]
    assert found["status"] == status, found
    assert what in found["what"] and remedy in (found["remedy"] or ""), found
    assert bool(found["remedy"]) == (status in ("warning", "wrong"))
    assert code == any(each["status"] == "wrong" for each in checks.values())


def test_permissions_are_asked_for_what_is_declared(lake: tuple[Path, Answers], deployer: Deployer) -> None:
    project, answers = lake

    def services() -> set[str]:
        answers.simulated.clear()
        _, found = looked(deployer)
        assert found["permissions"]["status"] == "ok", found["permissions"]
        return {call.action.partition(":")[0] for _, call in answers.simulated}

    alarms = {"budgets", "cloudwatch", "events", "sns", "sqs"}
    of_clusters = {"s3", "dynamodb", "emr-serverless", "iam", "logs", *alarms}
    assert services() == of_clusters
    specs = project / "specs" / "demo.yaml"
    text = specs.read_text(encoding="utf-8")
    specs.write_text(f"notify: [ops@example.com]\n{text}", encoding="utf-8")
    assert services() == {*of_clusters, "scheduler", "glue"}
    specs.write_text(text.split("clusters:")[0], encoding="utf-8")
    assert services() == {"s3", "dynamodb"}
    big = "clusters:\n  big: {kind: emr, release: emr-7.12.0, instance_type: m5.xlarge}\n"
    specs.write_text(text.split("clusters:")[0] + big, encoding="utf-8")
    _, found = looked(deployer)
    assert (found["emr"]["status"], found["emr-serverless"]["status"]) == ("ok", "not applicable")
    assert services() >= {"iam", "s3", "elasticmapreduce"} and "emr-serverless" not in services()
    specs.write_text(text.split("clusters:")[0] + "aws: {kms_key: managed}\n", encoding="utf-8")
    answers.policy = deploying(project)
    assert services() == {"s3", "dynamodb", "kms"}


def test_roles_of_jobs_are_looked_at_where_they_are(lake: tuple[Path, Answers], deployer: Deployer) -> None:
    project, answers = lake
    iam, name = boto3.client("iam"), own_name(f"s3://{bucket_of(project)}/demo", "demo", "small")
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")["Role"]["Arn"]
    code, found = looked(deployer)
    assert (code, found["job-roles"]["what"]) == (0, "jobs may read and write the lake on small")
    asked = {call.action for principal, call in answers.simulated if principal == made}
    assert asked >= {"s3:PutObject", "s3:ListBucket", "dynamodb:ConditionCheckItem"} and "iam:CreateRole" not in asked
    _less("LakeState")(*lake, pytest.MonkeyPatch())
    code, found = looked(deployer)
    assert (code, found["job-roles"]["status"]) == (1, "wrong")
    assert "dynamodb:BatchGetItem on arn:aws:dynamodb" in found["job-roles"]["what"]
    assert "(cluster small)" in found["job-roles"]["what"]
    specs = project / "specs" / "demo.yaml"
    role = f"arn:aws:iam::{ACCOUNT}:role/another"
    specs.write_text(specs.read_text().replace("cores: 4", f"cores: 4, execution_role: '{role}'"), encoding="utf-8")
    assert f"the role of cluster small is not in this account: {role}" in looked(deployer)[1]["job-roles"]["what"]


def test_pulumi_state_in_a_bucket_is_looked_at(
    lake: tuple[Path, Answers], deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, _ = lake
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"s3://{bucket_of(project)}/pulumi?region={REGION}")
    specs = project / "specs" / "demo.yaml"
    specs.write_text("kind: Instance\nname: demo\nroot: lakes/demo\nengine: embedded\n", encoding="utf-8")
    code, found = looked(deployer)
    assert (code, found["pulumi-state"]["what"]) == (0, "nothing was applied to the stack dev yet"), found
    assert {found[name]["status"] for name in ("credentials", "region", "identity", "s3", "clock")} == {"ok"}
    assert {found[name]["what"] for name in ("bucket", "permissions", "dynamodb")} == {"the root is not on S3"}
    _profile("role_arn = arn:aws:iam::1:role/r\nmfa_serial = m\nsource_profile = s\n"
             "[profile s]\naws_access_key_id = a\naws_secret_access_key = b\n")(*lake, monkeypatch)  # fmt: skip
    code, found = looked(deployer)  # nobody is asked for a code
    assert (code, found["pulumi-state"]["what"]) == (1, "there are no credentials that work"), found
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://there-is-none/pulumi")
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    code, found = looked(deployer)
    assert (code, found["pulumi-state"]["status"], bool(found["pulumi-state"]["remedy"])) == (1, "wrong", True)


def test_what_is_denied_is_told_whole_to_machines(lake: tuple[Path, Answers], deployer: Deployer) -> None:
    _less("BucketItself")(*lake, pytest.MonkeyPatch())
    _, found = looked(deployer)
    denied = found["permissions"]["details"]["denied"]
    assert f"s3:GetBucketVersioning on arn:aws:s3:::{bucket_of(lake[0])}" in denied
    assert f"{len(denied)} of " in found["permissions"]["what"]


@contextmanager
def silent_server() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_an_endpoint_that_never_answers_does_not_hold_it(
    lake: tuple[Path, Answers], deployer: Deployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silent_server() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        began = time.monotonic()
        code, found = looked(deployer, "--timeout", "3")
        assert time.monotonic() - began < 20
    assert code == 1
    assert found["s3"]["status"] == "wrong" and "no result after 3 s" in found["s3"]["what"]
    assert found["specs"]["status"] == "ok"


def test_nobody_answers(lake: tuple[Path, Answers], deployer: Deployer, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    code, found = looked(deployer)
    assert code == 1
    assert {name: found[name]["status"] for name in ("s3", "dynamodb", "sts", "emr-serverless", "clock")} == {
        "s3": "wrong", "dynamodb": "wrong", "sts": "warning", "emr-serverless": "wrong", "clock": "not applicable",
    }  # fmt: skip
    assert "HTTPS_PROXY" in found["s3"]["remedy"]
    assert found["bucket"]["what"] == "STS did not answer"


def test_people_read_a_checklist(lake: tuple[Path, Answers], deployer: Deployer) -> None:
    _less("BoundedRoles")(*lake, pytest.MonkeyPatch())
    ran = deployer("doctor")
    lines = [line.rstrip() for line in ran.out.splitlines()]
    assert ran.code == 1
    assert any(line.startswith("wrong  permissions") and "iam:CreateRole" in line for line in lines)
    assert any(line.strip() == "→ allow them; docs/aws-permissions.md has the whole policy" for line in lines)
    assert "not applicable: root (see `bucket`)" in lines
    assert lines[-1].startswith("Doctor: ") and lines[-1].endswith("1 wrong, 6 not applicable")
