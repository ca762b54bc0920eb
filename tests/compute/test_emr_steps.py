"""Runs as steps of EMR clusters, on moto: of one that is there, and of one that is made for the run."""

from __future__ import annotations

import gzip
import uuid
from typing import Any

import boto3
import pytest

from deployer.compute.emr.flow import job_flow
from deployer.compute.emr.step_logs import INTERVAL, StepLogs
from deployer.compute.emr.steps import PATIENCE, EmrSteps
from deployer.compute.jobs.cluster import RemoteJob, RunState
from deployer.errors import NotFound
from deployer.platform.aws.calls import CallFailed, Cause
from tests.compute.aws_runs import CODE, JOB, Hands, set_state
from tests.compute.conftest import PutBetween
from tests.state.faults import Fault

OPTIONS = {"release": "emr-7.12.0", "instance_type": "r7g.xlarge", "instances": 2}


def template() -> dict[str, Any]:
    name = f"demo-{uuid.uuid4().hex[:8]}"
    return job_flow(name, OPTIONS, "service-role", "profile", "s3://b/logs", {"deployer:instance": "demo"}, "security")


@pytest.fixture
def long_lived(aws: str) -> str:
    """The id of a cluster that waits for steps."""
    flow = template()
    flow["Instances"]["KeepJobFlowAliveWhenNoSteps"] = True
    return str(boto3.client("emr").run_job_flow(**flow)["JobFlowId"])


def steps_of(cluster: str) -> list[Any]:
    return list(boto3.client("emr").list_steps(ClusterId=cluster)["Steps"])


def cluster_at(
    cluster: str | None, flow: dict[str, Any] | None = None, hands: Hands | None = None, logs: str = "s3://b/logs"
) -> EmrSteps:
    clock = (hands or Hands()).clock()
    return EmrSteps("big", cluster, flow or {}, OPTIONS, lambda: CODE, logs, "eu-central-1", clock)


def test_what_is_started(long_lived: str) -> None:
    run = cluster_at(long_lived).start(JOB)
    (step,) = steps_of(long_lived)
    assert run.run_id == f"{long_lived}/{step['Id']}"
    assert step["Name"] == f"ingest air.flights monday [{run.key}]" and step["ActionOnFailure"] == "CONTINUE"
    recorded = step["Config"]
    assert recorded["Jar"] == "command-runner.jar"
    arguments = recorded["Args"]
    assert arguments[:3] == ["spark-submit", "--deploy-mode", "cluster"]
    assert arguments[-5:] == ["s3://b/ingest.py", f"--tell={run.key}", *JOB.arguments]
    assert "spark.yarn.appMasterEnv.AWS_REGION=eu-central-1" in arguments
    assert "spark.yarn.dist.archives=s3://b/environment.tar.gz#environment" in arguments


def test_the_same_job_is_found_again_unless_it_failed(aws: str, long_lived: str) -> None:
    first = cluster_at(long_lived).start(JOB)
    assert cluster_at(long_lived).start(JOB) == first
    set_state(aws, first.run_id.partition("/")[2], "COMPLETED")
    assert cluster_at(long_lived).start(JOB) == first
    set_state(aws, first.run_id.partition("/")[2], "FAILED")
    second = cluster_at(long_lived).start(JOB)
    assert (second.attempt, len(steps_of(long_lived))) == (2, 2)
    cluster_at(long_lived).start(RemoteJob("ingest", "tuesday", "t", ()))
    assert len(steps_of(long_lived)) == 3


@pytest.mark.parametrize("fault", ["lose answer", "500 after", "lose request", "500 before", "throttle"])
@pytest.mark.parametrize("of_a_run", [False, True], ids=["long-lived", "of a run"])
def test_a_start_without_an_answer_runs_once(
    aws: str, long_lived: str, faulty: PutBetween, fault: Fault, of_a_run: bool
) -> None:
    operation = "RunJobFlow" if of_a_run else "AddJobFlowSteps"
    between = faulty({fault: 1.0}, only=(operation,))
    flow = template()

    def relent() -> None:
        between.rates = {}

    run = cluster_at(None if of_a_run else long_lived, flow, Hands(on_sleep=relent)).start(JOB)
    assert between.faults[fault] == 1
    cluster, _, step = run.run_id.partition("/")
    assert [each["Id"] for each in steps_of(cluster)] == [step]
    if of_a_run:
        listed = boto3.client("emr").list_clusters()["Clusters"]
        assert [each["Id"] for each in listed if each["Name"].startswith(flow["Name"])] == [cluster]


def test_a_start_that_is_denied_is_said_at_once(long_lived: str, faulty: PutBetween) -> None:
    faulty({"deny": 1.0}, only=("AddJobFlowSteps",))
    with pytest.raises(CallFailed, match=r"cluster big \(EMR cluster j-.*\): AddJobFlowSteps was denied") as raised:
        cluster_at(long_lived).start(JOB)
    assert raised.value.cause is Cause.DENIED


def test_a_service_that_stays_busy_is_said_in_the_end(long_lived: str, faulty: PutBetween) -> None:
    faulty({"throttle": 1.0}, only=("AddJobFlowSteps",))
    hands = Hands()
    with pytest.raises(CallFailed, match="AddJobFlowSteps was throttled once"):
        cluster_at(long_lived, hands=hands).start(JOB)
    assert PATIENCE <= sum(hands.slept) < 2 * PATIENCE


def test_a_cluster_of_a_run_has_the_job_as_its_step(aws: str) -> None:
    flow = template()
    cluster = cluster_at(None, flow)
    run = cluster.start(JOB)
    made = run.run_id.partition("/")[0]
    about = boto3.client("emr").describe_cluster(ClusterId=made)["Cluster"]
    assert about["Name"] == f"{flow['Name']}-{run.key}" and about["AutoTerminate"]
    assert steps_of(made)[0]["ActionOnFailure"] == "TERMINATE_CLUSTER"
    assert cluster.start(JOB) == run
    cluster.cancel(run.run_id)
    assert boto3.client("emr").describe_cluster(ClusterId=made)["Cluster"]["Status"]["State"] == "TERMINATED"
    assert cluster.status(run.run_id).state.ended


STEPS = {
    "PENDING": RunState.WAITING,
    "RUNNING": RunState.RUNNING,
    "COMPLETED": RunState.SUCCEEDED,
    "FAILED": RunState.FAILED,
    "CANCELLED": RunState.CANCELLED,
    "INTERRUPTED": RunState.FAILED,
}


@pytest.mark.parametrize("state", STEPS)
def test_where_a_step_stands(aws: str, long_lived: str, state: str) -> None:
    run = cluster_at(long_lived).start(JOB)
    set_state(aws, run.run_id.partition("/")[2], state, "as it is")
    status = cluster_at(long_lived).status(run.run_id)
    assert (status.state, status.reported, status.detail) == (STEPS[state], state, "as it is")


@pytest.mark.parametrize(
    ("reason", "too_early"),
    [("There is not enough capacity", False), ("Failed to authorize instance profile arn:aws:x", True)],
)
def test_a_cluster_that_does_not_start_is_a_run_that_failed(aws: str, reason: str, too_early: bool) -> None:
    cluster = cluster_at(None, template())
    run = cluster.start(JOB)
    made, _, step = run.run_id.partition("/")
    set_state(aws, step, "CANCELLED")
    set_state(aws, made, "TERMINATED_WITH_ERRORS", reason)
    status = cluster.status(run.run_id)
    assert (status.state, status.detail, status.too_early) == (RunState.FAILED, reason, too_early)


def test_a_cluster_that_has_ended_is_said(aws: str, long_lived: str) -> None:
    set_state(aws, long_lived, "TERMINATED", "it was idle")
    with pytest.raises(
        NotFound, match=r"has ended \(TERMINATED: it was idle\); run `deployer up`, which makes it again"
    ):
        cluster_at(long_lived).start(JOB)


def test_a_step_is_cancelled(long_lived: str) -> None:
    cluster = cluster_at(long_lived)
    run = cluster.start(JOB)
    cluster.cancel(run.run_id)
    assert cluster.status(run.run_id).reported == "CANCEL_PENDING"


def test_lines_of_the_driver_come_from_the_logs_on_s3(root: str) -> None:
    bucket = root.split("/")[2]
    hands = Hands()

    def put(path: str, text: str, whole: bool = True) -> None:
        data = gzip.compress(text.encode())
        body = data if whole else data[: len(data) // 2]
        boto3.client("s3").put_object(Bucket=bucket, Key=f"logs/j-1/{path}", Body=body)
        hands.time += INTERVAL

    logs = StepLogs(f"s3://{bucket}/logs", "j-1", "s-1", hands.clock())
    assert logs.new_lines() == []
    put("steps/s-1/stderr.gz", "INFO Submitted application application_17_0004\n")
    driver = "containers/application_17_0004/container_17_0004_01_000001"
    put(f"{driver}/stdout.gz", "one\n")
    put(f"{driver.replace('_000001', '_000002')}/stdout.gz", "an executor\n")
    put("containers/application_17_0005/container_17_0005_01_000001/stdout.gz", "another\n")
    assert logs.new_lines() == ["one"]
    assert logs.new_lines() == []
    put(f"{driver}/stdout.gz", "one\ntwo\n", whole=False)
    assert logs.new_lines() == []
    put(f"{driver}/stdout.gz", "one\ntwo\n")
    put(f"{driver}/stderr.gz", "warning\n")
    assert logs.new_lines() == ["warning", "two"]
