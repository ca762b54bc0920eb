"""Following a run to its end, however that ends; a run's states are moved on while the follower sleeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import boto3
import pytest

from deployer.compute.emr.serverless import EmrServerless
from deployer.compute.jobs.cluster import Run, RunStatus
from deployer.compute.jobs.status import JobStatus, write_status
from deployer.compute.running.follow import PATIENCE, TooEarly, Watcher, follow
from deployer.errors import DeployerError, Interrupted, NotFound, Refused
from deployer.platform.aws import calls as aws_calls
from deployer.platform.aws.calls import CallFailed, Cause
from deployer.platform.system.progress import Progress
from tests.compute.aws_runs import JOB, Hands, cluster_at, set_state
from tests.compute.conftest import PutBetween

Step = Callable[[], None]


@dataclass
class Followed:
    """A run under way, and what a watcher is told of it."""

    server: str
    root: str
    cluster: EmrServerless
    run: Run
    statuses: list[str] = field(default_factory=list)
    recorded: list[Progress] = field(default_factory=list)

    def state(self, state: str, details: str = "") -> Step:
        return lambda: set_state(self.server, self.run.run_id, state, details)

    def writes(self, status: JobStatus) -> Step:
        return lambda: write_status(self.root, self.run.key, status)

    def through(self, *steps: Step) -> object:
        """Follows it; each time that the follower sleeps, the next step happens."""
        coming: Iterator[Step] = iter(steps)
        hands = Hands(on_sleep=lambda: next(coming, lambda: None)())
        watcher = Watcher(self._on_status, self.recorded.append, lambda line: None)
        return follow(self.cluster, self.root, self.run.run_id, self.run.key, watcher, hands.clock())

    def _on_status(self, status: RunStatus) -> None:
        self.statuses.append(status.reported)


@pytest.fixture
def followed(aws: str, application: str, root: str) -> Followed:
    cluster = cluster_at(application)
    return Followed(aws, root, cluster, cluster.start(JOB))


def test_a_job_that_succeeds(followed: Followed) -> None:
    half = Progress("loading", 1, 2, "tasks", rows=1000)
    result = followed.through(
        followed.state("RUNNING"),
        followed.writes(JobStatus(half)),
        followed.writes(JobStatus(result={"rows": 2000})),
        followed.state("SUCCESS"),
    )
    assert result == {"rows": 2000}
    assert followed.statuses == ["SUBMITTED", "RUNNING", "SUCCESS"]
    assert followed.recorded == [half]


@pytest.mark.parametrize("error", [Refused("bad rows", where="table/a.b", remedy="fix them"), NotFound("no table")])
def test_an_error_of_the_job_is_what_a_job_here_raises(followed: Followed, error: DeployerError) -> None:
    with pytest.raises(type(error)) as raised:
        followed.through(followed.writes(JobStatus(error=error)), followed.state("FAILED", "exit code 3"))
    assert (str(raised.value), raised.value.exit_code) == (str(error), error.exit_code)


def test_an_error_of_an_unknown_kind_keeps_its_exit_code(followed: Followed) -> None:
    class Own(DeployerError):
        kind = "Own"
        exit_code = 7

    with pytest.raises(DeployerError) as raised:
        followed.through(followed.writes(JobStatus(error=Own("odd"))), followed.state("FAILED"))
    assert (type(raised.value), raised.value.exit_code) == (DeployerError, 7)


ENDS: dict[str, tuple[str, str, type[DeployerError], str]] = {
    "fails": ("FAILED", "Job failed, please check complete logs", DeployerError, "the run failed: Job failed, please"),
    "loses its driver": (
        "FAILED",
        "Driver container was lost",
        DeployerError,
        "failed: Driver container was lost; its",
    ),
    "times out": (
        "FAILED",
        "Job run timed out after 720 minutes",
        DeployerError,
        "timed out after 720 minutes; its job",
    ),
    "fails without a word": ("FAILED", "", DeployerError, "the run failed, and AWS gives no reason"),
    "is cancelled": ("CANCELLED", "by user", Interrupted, "the run was cancelled: by user"),
    "has no role": ("FAILED", "Could not assume runtime role arn:x", TooEarly, "the run failed: Could not assume"),
    "says nothing": ("SUCCESS", "", DeployerError, "the run succeeded, and its job stored no result"),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_run_that_ends_before_its_job_does(followed: Followed, name: str) -> None:
    state, details, kind, message = ENDS[name]
    with pytest.raises(kind) as raised:
        followed.through(followed.state(state, details))
    assert type(raised.value) is kind and message in raised.value.what
    assert raised.value.where == followed.cluster.describe_run(followed.run.run_id) and raised.value.remedy


def test_a_job_that_was_done_before_its_run_was_lost_has_its_result(followed: Followed) -> None:
    result = followed.through(
        followed.writes(JobStatus(result={"rows": 1})), followed.state("FAILED", "Driver was lost")
    )
    assert result == {"rows": 1}


def test_a_token_that_expires_ends_the_following_at_once(
    followed: Followed, application: str, faulty: PutBetween
) -> None:
    between = faulty({}, only=("GET",))
    followed.cluster = cluster_at(application)

    def expire() -> None:
        between.rates = {"expired": 1.0}

    with pytest.raises(CallFailed, match="GetJobRun was rejected: the credentials are expired") as raised:
        followed.through(followed.state("RUNNING"), expire)
    assert raised.value.cause is Cause.CREDENTIALS
    assert _state_in_aws(application, followed) == "RUNNING"


def _state_in_aws(application: str, followed: Followed) -> str:
    emr = boto3.client("emr-serverless", endpoint_url=followed.server)
    return str(emr.get_job_run(applicationId=application, jobRunId=followed.run.run_id)["jobRun"]["state"])


def test_a_busy_service_is_waited_for_and_not_for_ever(
    followed: Followed, application: str, faulty: PutBetween, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws_calls, "ATTEMPTS", 1)
    between = faulty({"throttle": 1.0}, only=("GET",))
    followed.cluster = cluster_at(application)

    def relent() -> None:
        between.rates = {}

    end = (followed.writes(JobStatus(result={})), followed.state("SUCCESS"))
    assert followed.through(lambda: None, relent, *end) == {}
    between.rates = {"throttle": 1.0}
    before = between.faults["throttle"]
    with pytest.raises(CallFailed, match="GetJobRun was throttled"):
        followed.through()
    assert between.faults["throttle"] - before > PATIENCE / 10
