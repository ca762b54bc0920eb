"""Runs on EMR Serverless, on moto: started once however often it is tried, and each failure in words."""

from __future__ import annotations

import shlex
import time
from datetime import timedelta

import boto3
import pytest

from deployer.compute.emr.serverless import ROLE_PATIENCE, role_is_not_ready
from deployer.compute.jobs.cluster import RemoteJob, RunState
from deployer.errors import DeployerError
from deployer.platform.aws import calls as aws_calls
from deployer.platform.aws.calls import CallFailed, Cause
from tests.compute.aws_runs import JOB, ROLE, Hands, cluster_at, runs_of, set_state
from tests.compute.conftest import PutBetween
from tests.state.faults import Fault


def test_what_is_started(application: str) -> None:
    cluster = cluster_at(application)
    run = cluster.start(JOB)
    (found,) = runs_of(application)
    driver = found["jobDriver"]["sparkSubmit"]
    assert driver["entryPoint"] == "s3://b/ingest.py"
    assert driver["entryPointArguments"] == [f"--tell={run.key}", *JOB.arguments]
    options = shlex.split(driver["sparkSubmitParameters"])
    assert set(options[::2]) == {"--conf"}
    settings = dict(each.split("=", 1) for each in options[1::2])
    assert settings["spark.executor.memory"] == settings["spark.driver.memory"] == "4g"
    assert settings["spark.dynamicAllocation.maxExecutors"] == "3"
    assert settings["spark.archives"] == "s3://b/environment.tar.gz#environment"
    assert settings["spark.emr-serverless.driverEnv.AWS_REGION"] == "eu-central-1"
    assert (found["executionRole"], found["name"]) == (ROLE, "ingest air.flights monday")
    assert found["tags"]["deployer:job"] == "monday"
    assert cluster.status(run.run_id).state is RunState.WAITING
    assert "secret" not in str(found).lower()  # no credential goes along


def test_the_same_job_is_found_again_and_another_is_started(application: str) -> None:
    first = cluster_at(application).start(JOB)
    assert cluster_at(application).start(JOB) == first
    other = RemoteJob(JOB.program, "tuesday", JOB.title, JOB.arguments)
    assert cluster_at(application).start(other).run_id != first.run_id
    assert len(runs_of(application)) == 2


def test_a_run_that_failed_before_is_not_taken_for_a_new_one(
    aws: str, application: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deployer.compute.emr.serverless.OLD", timedelta(days=1))  # however busy this machine is
    first = cluster_at(application).start(JOB)
    set_state(aws, first.run_id, "FAILED")
    at_once = cluster_at(application).start(JOB)  # AWS may well have ended it already: the caller is told of that
    assert at_once == first
    monkeypatch.setattr("deployer.compute.emr.serverless.OLD", -timedelta(days=1))
    second = cluster_at(application).start(JOB)
    assert (second.attempt, second.run_id != first.run_id, second.key != first.key) == (2, True, True)


@pytest.mark.parametrize("fault", ["lose answer", "500 after", "duplicate"])
def test_a_start_whose_answer_is_lost_runs_once(application: str, faulty: PutBetween, fault: Fault) -> None:
    between = faulty({fault: 0.5}, seed=4, only=("POST",))
    runs = {cluster_at(application).start(RemoteJob("ingest", f"{i}", "t", ())).run_id for i in range(4)}
    assert between.faults[fault] >= 1
    assert runs == {each["jobRunId"] for each in runs_of(application)} and len(runs) == 4


FAILURES: dict[Fault, tuple[Cause, str]] = {
    "deny": (
        Cause.DENIED,
        r"StartJobRun was denied \(AccessDeniedException: refused by the test's rule\); allow this identity the action",
    ),
    "throttle": (Cause.THROTTLED, r"StartJobRun was throttled 2 times .*; try again later, or ask AWS for a higher"),
    "expired": (Cause.CREDENTIALS, r"StartJobRun was rejected: the credentials are expired .*; renew them"),
    "500 before": (Cause.UNREACHABLE, "StartJobRun failed inside AWS 2 times .*; try again later"),
    "lose request": (Cause.UNREACHABLE, "StartJobRun got no answer: .*; check the network"),
}


@pytest.mark.parametrize("fault", FAILURES)
def test_a_start_that_fails_is_said(
    application: str, faulty: PutBetween, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws_calls, "ATTEMPTS", 2)
    between = faulty({fault: 1.0}, only=("POST",))
    cause, message = FAILURES[fault]
    with pytest.raises(CallFailed, match=message) as raised:
        cluster_at(application).start(JOB)
    assert raised.value.cause is cause
    assert str(raised.value).startswith(f"cluster small (EMR Serverless application {application}): ")
    again = cause in (Cause.THROTTLED, Cause.UNREACHABLE)
    assert between.faults[fault] == (2 if again else 1)


def test_a_role_that_is_not_ready_is_waited_for(application: str, faulty: PutBetween) -> None:
    between = faulty({"no role": 1.0}, only=("POST",))
    hands = Hands()

    def soon() -> None:
        if hands.time > 5:
            between.rates = {}

    hands.on_sleep = soon
    run = cluster_at(application, hands.clock()).start(JOB)
    assert cluster_at(application).status(run.run_id).state is RunState.WAITING
    assert between.faults["no role"] >= 3


def test_a_role_that_never_comes_is_said(application: str, faulty: PutBetween) -> None:
    faulty({"no role": 1.0}, only=("POST",))
    hands = Hands()
    with pytest.raises(
        DeployerError, match=rf"StartJobRun cannot use the role {ROLE} after 60 s .*; run `deployer up`"
    ):
        cluster_at(application, hands.clock()).start(JOB)
    assert ROLE_PATIENCE <= sum(hands.slept) < 2 * ROLE_PATIENCE


@pytest.mark.parametrize(
    ("message", "not_ready"),
    [
        ("Could not assume runtime role arn:… because it does not exist or isn't set up with the trust", True),
        ("User: a is not authorized to perform: iam:PassRole on resource: role/x", False),
        ("Application does not exist", False),
    ],
)
def test_which_refusals_are_of_a_role_that_is_not_ready(message: str, not_ready: bool) -> None:
    assert role_is_not_ready(message) is not_ready


def test_cancelling_ends_a_run_and_leaves_an_ended_one(aws: str, application: str) -> None:
    cluster = cluster_at(application)
    run = cluster.start(JOB)
    cluster.cancel(run.run_id)
    assert cluster.status(run.run_id).state is RunState.CANCELLED
    cluster.cancel(run.run_id)


def test_lines_are_handed_out_once_as_they_come(application: str) -> None:
    group, logs = f"/emr-serverless/{application}", boto3.client("logs")
    cluster = cluster_at(application, log_group=group)
    run = cluster.start(JOB)
    assert cluster.new_lines(run.run_id) == []
    logs.create_log_group(logGroupName=group)
    assert cluster.new_lines(run.run_id) == []
    stream = f"/applications/{application}/jobs/{run.run_id}/SPARK_DRIVER/stderr"
    executor = stream.replace("SPARK_DRIVER", "SPARK_EXECUTOR/1")
    when = time.time_ns() // 1_000_000
    for name, text in ((stream, "one\ntwo"), (executor, "noise")):
        logs.create_log_stream(logGroupName=group, logStreamName=name)
        logs.put_log_events(logGroupName=group, logStreamName=name, logEvents=[{"timestamp": when, "message": text}])
    assert cluster.new_lines(run.run_id) == ["one", "two"]
    assert cluster.new_lines(run.run_id) == []
    logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=[{"timestamp": when, "message": "three"}])
    assert cluster.new_lines(run.run_id) == ["three"]
