"""Credentials as a pipeline has them: a role assumed by a web identity, renewed in mid-run, and never written."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3
import pytest

from tests.cli.conftest import Deployer, Ran
from tests.stacks.conftest import MakeProject, bucket_of
from tests.state.faults import Asked, Fault, Proxy, proxy

pytestmark = pytest.mark.full

IDENTITY = "eyJhbGciOiJub25lIn0.a-web-identity-that-nobody-writes.c2lnbmF0dXJl"
USES = 6  #: of a token until it counts as old: a request reads it, some are sent with it at once


@dataclass
class Tokens:
    """STS's answers: what it gave out, with an end so near that every client renews at once. Old tokens are refused."""

    issued: list[str] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set)
    used: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    last: bool = False  #: that nothing is renewed any more

    def shorten(self, asked: Asked, answer: bytes) -> bytes:
        text = answer.decode("utf-8", "replace")
        if "<SessionToken>" not in text:
            return answer
        self.issued += re.findall("<SessionToken>(.*?)<", text)
        self.secrets |= set(re.findall("<SecretAccessKey>(.*?)<", text))
        end = datetime.now(UTC) + timedelta(seconds=20)
        return re.sub("<Expiration>.*?<", f"<Expiration>{end:%Y-%m-%dT%H:%M:%SZ}<", text).encode()

    def rule(self, asked: Asked) -> Fault | None:
        if asked.service == "sts" and asked.operation == "AssumeRoleWithWebIdentity":
            return "expired" if self.last else None
        if not asked.token:
            return "deny"
        self.used[asked.token] += 1
        newest = asked.token in self.issued[-3:]
        if self.last or (self.used[asked.token] > USES and not newest):
            self.refused += 1
            return "expired"
        return None


@pytest.fixture
def tokens(aws: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Tokens, Proxy]]:
    found = Tokens()
    with proxy(aws, {}) as between:
        between.rule, between.answered = found.rule, found.shorten
        file = tmp_path / "identity"
        file.write_text(IDENTITY, encoding="utf-8")
        for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "PROFILE"):
            monkeypatch.delenv(f"AWS_{name}", raising=False)
        for name, value in (
            ("ENDPOINT_URL", between.url),
            ("WEB_IDENTITY_TOKEN_FILE", str(file)),
            ("ROLE_ARN", "arn:aws:iam::123456789012:role/pipeline"),
            ("ROLE_SESSION_NAME", "pipeline"),
            ("REGION", "eu-central-1"),
            ("EC2_METADATA_DISABLED", "true"),
        ):
            monkeypatch.setenv(f"AWS_{name}", value)
        yield found, between


def everything_stored(aws: str) -> Iterator[tuple[str, bytes]]:
    """All objects of all buckets with their versions, and all items of all tables, as the server has them."""
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "endpoint_url": aws, "region_name": "eu-central-1"}
    s3, dynamodb = boto3.client("s3", **keys), boto3.client("dynamodb", **keys)  # type: ignore[call-overload]
    for bucket in s3.list_buckets()["Buckets"]:
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket["Name"]):
            for each in page.get("Versions", ()):
                where = {"Bucket": bucket["Name"], "Key": each["Key"], "VersionId": each["VersionId"]}
                yield f"s3://{bucket['Name']}/{each['Key']}", s3.get_object(**where)["Body"].read()
    for table in dynamodb.list_tables()["TableNames"]:
        for page in dynamodb.get_paginator("scan").paginate(TableName=table):
            yield table, repr(page["Items"]).encode()


def test_a_life_in_a_pipeline_leaves_no_credential_anywhere(
    on_aws: MakeProject, deployer: Deployer, tokens: tuple[Tokens, Proxy], aws: str
) -> None:
    found, _ = tokens
    project = on_aws()
    settings = project / "Pulumi.yaml"
    states = f"states-{bucket_of(project)}"
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "endpoint_url": aws}
    boto3.client("s3", **keys).create_bucket(  # type: ignore[call-overload]
        Bucket=states, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    settings.write_text(settings.read_text().replace("url: file://.", f"url: s3://{states}/pulumi"), encoding="utf-8")
    ran: list[Ran] = []

    def run(code: int, *arguments: str) -> Ran:
        ran.append(deployer(*arguments))
        assert ran[-1].code == code, ran[-1]
        assert "Traceback" not in ran[-1].err
        return ran[-1]

    run(0, "up", "--yes", "--json")
    (project / "rows.csv").write_text("id,delay\n1,10\n2,20\n", encoding="utf-8")
    run(0, "ingest", "flights", "rows.csv")
    specs = project / "specs" / "flights.yaml"
    specs.write_text(specs.read_text().replace("name: delay, type: 'int32'", "name: delay, type: 'int64'"))
    run(0, "preview", "--out", "plan.json", "--format", "html")
    run(0, "up", "plan.json")
    run(0, "drift", "--json")
    run(0, "report", "--html", "report.html")
    run(0, "stack", "export", "stack.json")
    assert len(found.issued) > 10 and len(found.used) > 10  # renewed again and again
    found.last = True
    failed = run(1, "up", "--yes")
    assert "the role could not be assumed (AssumeRoleWithWebIdentity): ExpiredToken" in failed.err
    assert "the token in AWS_WEB_IDENTITY_TOKEN_FILE is not too old" in failed.err

    stored = [*everything_stored(aws)]
    stored += [(str(file), file.read_bytes()) for file in project.rglob("*") if file.is_file()]
    stored += [(f"output {number}", (each.out + each.err).encode()) for number, each in enumerate(ran)]
    names = [name for name, _ in stored]
    assert any(name.endswith("/.pulumi/stacks/lakes/dev.json") for name in names) and "plan.json" in repr(names)
    hidden = {*found.issued, *found.secrets, IDENTITY}
    assert len(hidden) > 20
    assert [name for name, content in stored if any(each.encode() in content for each in hidden)] == []


def test_static_credentials_are_never_written(
    on_aws: MakeProject, deployer: Deployer, aws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = {"SECRET_ACCESS_KEY": "wJalrXUtnFEMIthatNobodyWrites", "SESSION_TOKEN": "FwoGZXIvYXdzthatNobodyWrites"}
    for name, value in hidden.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    project = on_aws()
    ran = [deployer("up", "--yes", "--json"), deployer("preview", "--out", "plan.json")]
    with proxy(aws, {"deny": 1.0}) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.url)
        ran += [deployer("up", "--yes"), deployer("tables"), deployer("ingest", "flights", "rows.csv")]
    assert [each.code for each in ran] == [0, 0, 1, 1, 1]
    stored = [*everything_stored(aws)]
    stored += [(str(file), file.read_bytes()) for file in project.rglob("*") if file.is_file()]
    stored += [(f"output {number}", (each.out + each.err).encode()) for number, each in enumerate(ran)]
    assert [name for name, content in stored if any(each.encode() in content for each in hidden.values())] == []


@pytest.mark.parametrize("command", ["tables", "preview"])
def test_a_token_file_that_is_not_there_is_no_empty_lake(
    on_aws: MakeProject, deployer: Deployer, tokens: tuple[Tokens, Proxy], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    on_aws()
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(Path(os.environ["AWS_WEB_IDENTITY_TOKEN_FILE"]) / "gone"))
    ran = deployer(command)
    assert ran.code == 1 and "the credentials cannot be read" in ran.err and "AWS_WEB_IDENTITY_TOKEN_FILE" in ran.err
