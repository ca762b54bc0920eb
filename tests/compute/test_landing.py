"""The rights of jobs that load files by themselves: to read the places and take messages, and nothing more."""

from __future__ import annotations

import pytest

from deployer.compute.schedules.landing import LandingPlaces, landing_places, landing_policy, queue_arn
from deployer.errors import InvalidInput
from deployer.specs.model import Cluster, InstanceSpec, Lake, ServiceSpec, TableSpec, Trigger
from tests.stacks.policies import Call, is_allowed

QUEUE = "arn:aws:sqs:eu-central-1:123456789012:landing"
POLICY = landing_policy(LandingPlaces(("s3://in/trips/*.csv", "s3://in/a/b/", "s3://all/**/*.json"), (QUEUE,)), "aws")


@pytest.mark.parametrize(
    "call",
    [
        Call("s3:GetObject", "arn:aws:s3:::in/trips/a.csv"),
        Call("s3:GetObject", "arn:aws:s3:::in/a/b/c/d.csv"),
        Call("s3:GetObject", "arn:aws:s3:::all/x.json"),
        Call("s3:ListBucket", "arn:aws:s3:::in", {"s3:prefix": "trips/"}),
        Call("s3:ListBucket", "arn:aws:s3:::all", {"s3:prefix": ""}),
        Call("sqs:ReceiveMessage", QUEUE),
        Call("sqs:DeleteMessage", QUEUE),
    ],
    ids=str,
)
def test_runs_may(call: Call) -> None:
    assert is_allowed(call, [POLICY])


@pytest.mark.parametrize(
    "call",
    [
        Call("s3:GetObject", "arn:aws:s3:::in/other/a.csv"),
        Call("s3:GetObject", "arn:aws:s3:::in/tripsy/a.csv"),
        Call("s3:GetObject", "arn:aws:s3:::in/a/bc"),
        Call("s3:PutObject", "arn:aws:s3:::in/trips/a.csv"),
        Call("s3:DeleteObject", "arn:aws:s3:::in/trips/a.csv"),
        Call("s3:ListBucket", "arn:aws:s3:::in", {"s3:prefix": "other/"}),
        Call("s3:ListBucket", "arn:aws:s3:::in", {"s3:prefix": ""}),
        Call("sqs:SendMessage", QUEUE),
        Call("sqs:ReceiveMessage", QUEUE + "-2"),
        Call("sqs:PurgeQueue", QUEUE),
    ],
    ids=str,
)
def test_runs_may_not(call: Call) -> None:
    assert not is_allowed(call, [POLICY])


def table(name: str, cluster: str | None, **options: str) -> TableSpec:
    service = ServiceSpec("INGEST", Trigger("0 * * * *"), cluster, options)
    return TableSpec("air", name, (), services=(service,))


def test_each_cluster_has_the_places_of_its_own_runs() -> None:
    clusters = (
        Cluster("default", "emr-serverless", {}),
        Cluster("other", "emr-serverless", {}),
        Cluster("here", "local", {}),
    )
    tables = (
        table("a", None, files="s3://in/a/*"),
        table("b", "other", files="s3://in/b/*", queue="https://sqs.eu-central-1.amazonaws.com/123456789012/landing"),
        table("c", "here", files="s3://in/c/*"),
        table("d", None, files="/data/d/*"),
    )
    lake = Lake(InstanceSpec("demo", "s3://lakes/demo", clusters=clusters), tables)
    assert landing_places(lake) == {
        "default": LandingPlaces(("s3://in/a/*",)),
        "other": LandingPlaces(("s3://in/b/*",), (QUEUE,)),
    }


def test_a_url_that_does_not_show_the_arn_is_refused() -> None:
    with pytest.raises(InvalidInput, match="does not show the queue's ARN"):
        queue_arn("http://localhost:4566/000000000000/landing", "table/air.a")
