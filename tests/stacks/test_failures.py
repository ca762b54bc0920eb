"""What AWS refuses in mid-run: each is said with resource, call, cause and remedy, and the next run goes on.

A proxy before moto's server answers as AWS does; nothing of deployer is changed for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.cli.conftest import Deployer, Ran
from tests.stacks.conftest import MakeProject
from tests.state.faults import Asked, Fault, Proxy, proxy

pytestmark = pytest.mark.full

SAVED = "completed steps are saved; fix the cause and run the command again"


@pytest.fixture
def between(aws: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """What stands between all clients and AWS; they send each request once."""
    with proxy(aws, {}) as found:
        monkeypatch.setenv("AWS_ENDPOINT_URL", found.url)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        yield found


def failed(ran: Ran, *words: str) -> None:
    assert ran.code == 1 and "Traceback" not in ran.err
    said = " ".join(ran.err.split())
    assert [each for each in words if each not in said] == [], said


@dataclass(frozen=True)
class Case:
    """`fault` for each request to `service` with this operation whose path has `part`; the words that are said."""

    fault: Fault
    service: str
    operation: str
    part: str
    words: tuple[str, ...]

    def rule(self, asked: Asked) -> Fault | None:
        fits = asked.service == self.service and asked.operation == self.operation and self.part in asked.path
        return self.fault if fits else None


ALLOW = "allow the role that deploys the action of the call that is named (docs/aws-permissions.md)"
BUSY = "AWS is busy: wait a minute"
OF_STACK = {
    "bucket denied": Case("deny", "s3", "PUT", "", ("bucket/lakes-", "(AccessDenied)", "CreateBucket", ALLOW)),
    "policy throttled": Case(
        "throttle", "s3", "PUT", "?policy", ("tls-only/lakes-", "(SlowDown)", "PutBucketPolicy", BUSY)
    ),
    "table denied": Case("deny", "dynamodb", "CreateTable", "", ("state-table/deployer-demo-", "CreateTable", ALLOW)),
    "token expired": Case(
        "expired", "dynamodb", "CreateTable", "", ("state-table/", "(ExpiredTokenException)", "the credentials expired")
    ),
    "role denied": Case("deny", "iam", "CreateRole", "", ("role/small", "(AccessDenied)", "CreateRole", ALLOW)),
    "role not ready": Case(
        "not ready", "iam", "PutRolePolicy", "",
        ("lake/small", "(NoSuchEntity)", "PutRolePolicy", "a role that was just made is not known everywhere yet"),
    ),
    "application throttled": Case(
        "throttle", "emr-serverless", "POST", "/applications", ("application/small", "CreateApplication", BUSY)
    ),
    "state's table busy": Case(
        "throttle", "dynamodb", "PutItem", "",
        ("instance/demo", "DynamoDB table deployer-demo-", "no answer to PutItem", "ProvisionedThroughput", "too busy"),
    ),
    "state's table denied": Case(
        "deny", "dynamodb", "TransactWriteItems", "",
        ("DynamoDB table", "access was denied (TransactWriteItems)", "docs/aws-permissions.md"),
    ),
    "lake's objects denied": Case(
        "deny", "s3", "PUT", ".lance",
        ("table/air.flights", "access to the bucket was denied (PUT of s3://", "docs/aws-permissions.md"),
    ),
    "lake's objects expired": Case(
        "expired", "s3", "PUT", ".lance/",
        ("table/air.flights", "the credentials have expired (PUT of s3://", "renew them"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", OF_STACK.values(), ids=OF_STACK.keys())
def test_up_says_what_failed_and_the_next_one_goes_on(
    on_aws: MakeProject, deployer: Deployer, between: Proxy, case: Case
) -> None:
    needs_cluster = case.service in ("iam", "emr-serverless")
    on_aws("clusters:\n  small: {kind: emr-serverless, release: emr-7.12.0}\n" if needs_cluster else "")
    between.rule = case.rule
    failed(deployer("up", "--yes"), *case.words, SAVED)
    assert between.faults[case.fault]
    between.rule = None
    assert deployer("up", "--yes").code == 0
    assert deployer("preview", "--exit-code").code == 0


OF_LAKE = {
    "rows denied": Case("deny", "s3", "PUT", "/data/", ("access to the bucket was denied (PUT of s3://", "/data/")),
    "rows throttled": Case("throttle", "s3", "PUT", "/data/", ("S3 is too busy for this prefix: SlowDown (PUT of s3://",)),
    "rows' token expired": Case("expired", "s3", "PUT", "/data/", ("the credentials have expired (PUT of s3://",)),
    "commit denied": Case(
        "deny", "s3", "PUT", "/_versions/",
        ("whether it happened is unknown: access to the bucket was denied (PUT of s3://", "--job-id"),
    ),
    "reading denied": Case("deny", "s3", "GET", ".manifest", ("access to the bucket was denied (GET of s3://",)),
    "log denied": Case("deny", "dynamodb", "TransactWriteItems", "", ("access was denied (TransactWriteItems)",)),
}  # fmt: skip


@pytest.mark.parametrize("case", OF_LAKE.values(), ids=OF_LAKE.keys())
def test_a_load_says_what_failed_and_adds_its_rows_once(
    on_aws: MakeProject, deployer: Deployer, between: Proxy, case: Case
) -> None:
    project = on_aws()
    assert deployer("up", "--yes").code == 0
    (project / "rows.csv").write_text("id,delay\n1,10\n2,20\n", encoding="utf-8")
    between.rule = case.rule
    failed(deployer("ingest", "flights", "rows.csv", "--job-id", "first"), *case.words)
    between.rule = None
    assert deployer("ingest", "flights", "rows.csv", "--job-id", "first").code == 0
    assert len(deployer("query", "flights", "--json").json["rows"]) == 2
    assert deployer("state", "verify").code == 0


ASK: dict[str, Callable[[Deployer], Ran]] = {
    "query": lambda deployer: deployer("query", "flights"),
    "preview": lambda deployer: deployer("preview"),
    "drift": lambda deployer: deployer("drift"),
    "history": lambda deployer: deployer("history", "flights"),
    "tables": lambda deployer: deployer("tables"),
}


def test_commands_that_read_say_it_too(on_aws: MakeProject, deployer: Deployer, between: Proxy) -> None:
    project = on_aws()
    assert deployer("up", "--yes").code == 0
    (project / "rows.csv").write_text("id,delay\n1,10\n2,20\n", encoding="utf-8")
    assert deployer("ingest", "flights", "rows.csv").code == 0
    for ask in ASK.values():
        for fault, words in (("deny", "access to the bucket was denied"), ("expired", "the credentials have expired")):
            between.rates = {fault: 1.0}  # type: ignore[dict-item]
            failed(ask(deployer), f"{words} (GetObject of s3://", "AWS_PROFILE")
        between.rates = {}
        assert ask(deployer).code == 0
