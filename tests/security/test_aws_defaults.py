"""F8, F20, F22, F23: what a lake on AWS has unless its specs say otherwise: alarms, encryption and limits of cost."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from deployer.compute.clusters import most_workers, timeout_minutes
from deployer.compute.emr.flow import idle_minutes, security_configuration
from deployer.compute.jobs.code import JobCode
from deployer.compute.schedules.alarms import (
    events_trust,
    failed_clusters,
    failed_runs,
    failed_steps,
    hours_without_success,
    succeeded_runs,
    topic_policy,
)
from deployer.compute.schedules.schedules import ScheduledService, start_job_run
from deployer.cost.estimate import LEAST_BUDGET, monthly_budget
from deployer.specs.model import AwsSettings, Cluster, InstanceSpec, Lake, ServiceSpec, Trigger
from tests.plan.lakes import FLIGHTS
from tests.stacks.lakes import ACCOUNT, REGION

TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:deployer-1a2b3c4d5e-alarms"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/lake"
SMALL = Cluster("small", "emr-serverless", {})
INSTANCE = InstanceSpec("demo", root="s3://lakes/demo", clusters=(SMALL,))


def test_failed_jobs_are_told_by_their_events() -> None:
    """F8: a metric has dimensions that AWS changes; the events of job runs have the application's id."""
    told = json.loads(failed_runs("00f1", "small", "demo").pattern)
    assert told["detail-type"] == ["EMR Serverless Job Run State Change"]
    assert told["detail"] == {"applicationId": ["00f1"], "state": ["FAILED", "CANCELLED"]}
    assert json.loads(failed_steps("j-1", "big", "demo").pattern)["detail"]["state"] == ["FAILED"]
    assert json.loads(failed_clusters("big", True, "big", "demo").pattern)["detail"]["name"] == [{"prefix": "big-"}]


@pytest.mark.parametrize(("schedule", "hours"), [("0 * * * *", 7), ("0 3 * * *", 30), ("0 3 1 * *", None)])
def test_silence_is_told_too(schedule: str, hours: int | None) -> None:
    """F8: events are sent as best AWS can. CloudWatch looks back seven days, so rarer schedules have no such alarm."""
    assert hours_without_success([schedule]) == hours
    assert json.loads(succeeded_runs("00f1"))["detail"]["state"] == ["SUCCESS"]


def test_clusters_ask_for_tokens_and_encrypt() -> None:
    """F20: IMDSv1 gave the cluster's role to whatever could send a request from a node."""
    found = security_configuration(KEY, "s3://lakes/certificates.zip")
    metadata = found["InstanceMetadataServiceConfiguration"]
    assert metadata == {"MinimumInstanceMetadataServiceVersion": 2, "HttpPutResponseHopLimit": 1}
    encryption = found["EncryptionConfiguration"]
    assert encryption["EnableInTransitEncryption"] and encryption["EnableAtRestEncryption"]
    assert encryption["AtRestEncryptionConfiguration"]["LocalDiskEncryptionConfiguration"]["AwsKmsKey"] == KEY


def test_what_nobody_limited_has_limits() -> None:
    """F22: workers, minutes of a job, minutes of an idle cluster."""
    assert (most_workers({}), most_workers({"initial_workers": 20}), most_workers({"max_workers": 3})) == (10, 20, 3)
    assert (timeout_minutes({}), timeout_minutes({"timeout_minutes": 30})) == (720, 30)
    assert (idle_minutes({}), idle_minutes({"idle_minutes": 5}, True)) == (60, 5)


def test_a_scheduled_run_ends_in_time_and_is_not_tried_again() -> None:
    """F22: twelve hours are AWS's default, and a run that is tried again costs as much again."""
    service = ServiceSpec("COMPACT", Trigger("0 3 * * *"), "small", {})
    sent = start_job_run(
        "00f1",
        f"arn:aws:iam::{ACCOUNT}:role/deployer/1a2b3c4d5e/small",
        JobCode("x86_64", "3.11", "s3://c/wheel.whl", "s3://c/python.tar.gz", {"service": "s3://c/service.py"}),
        "",
        INSTANCE.root,
        ScheduledService(FLIGHTS, service, replace(SMALL, options={"timeout_minutes": 30})),
    )
    asked = json.loads(sent)
    assert asked["ExecutionTimeoutMinutes"] == 30 and asked["RetryPolicy"] == {"MaxAttempts": 1}


@pytest.mark.parametrize(("declared", "monthly"), [(None, LEAST_BUDGET), (0, 0), (400, 400)])
def test_a_lake_has_a_budget(declared: int | None, monthly: int) -> None:
    """F22: 25 USD a month at least, unless the instance says how much, or none."""
    settings = AwsSettings(budget=declared)
    assert monthly_budget(Lake(replace(INSTANCE, aws=settings), (FLIGHTS,), ()), REGION) == monthly


def test_only_the_lakes_own_alarms_are_published() -> None:
    """F23: any rule of EventBridge, of any account, could publish; and so could whoever did without TLS."""
    statements = topic_policy(TOPIC, "deployer-1a2b3c4d5e-")["Statement"]
    allowed = [each for each in statements if each["Effect"] == "Allow"]
    assert {each["Principal"]["Service"] for each in allowed} == {"cloudwatch.amazonaws.com", "budgets.amazonaws.com"}
    assert all(each["Condition"]["StringEquals"] == {"aws:SourceAccount": ACCOUNT} for each in allowed)
    (denied,) = [each for each in statements if each["Effect"] == "Deny"]
    assert denied["Principal"] == "*" and denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    (trust,) = events_trust(TOPIC, "deployer-1a2b3c4d5e-")["Statement"]
    assert trust["Condition"]["StringEquals"]["aws:SourceAccount"] == ACCOUNT
    assert "deployer-1a2b3c4d5e-" in json.dumps(trust["Condition"])
