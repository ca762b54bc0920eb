"""Runs jobs on clusters of kind `emr-serverless`: a job is a job run of an application, and CloudWatch Logs has its
output."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from deployer.compute.clusters import timeout_minutes
from deployer.compute.emr.log_events import LogStreams
from deployer.compute.emr.settings import as_text, serverless_settings
from deployer.compute.iam.key_use import disk_configuration
from deployer.compute.jobs.cluster import RemoteJob, Run, RunState, RunStatus
from deployer.compute.jobs.code import JobCode
from deployer.errors import DeployerError
from deployer.platform.aws.calls import CallFailed, Calls
from deployer.platform.system.clock import Clock

STATES = {
    "SUBMITTED": RunState.WAITING,
    "PENDING": RunState.WAITING,
    "SCHEDULED": RunState.WAITING,
    "QUEUED": RunState.WAITING,
    "RUNNING": RunState.RUNNING,
    "CANCELLING": RunState.RUNNING,
    "SUCCESS": RunState.SUCCEEDED,
    "FAILED": RunState.FAILED,
    "CANCELLED": RunState.CANCELLED,
}
ROLE_PATIENCE = 60.0  #: seconds for which a start is repeated while AWS does not yet know a new role everywhere
OLD = timedelta(seconds=5)  #: a run that is older than this when AWS answers was started by an earlier command
MOST_ATTEMPTS = 100


class EmrServerless:
    """Implements `remote.RemoteCluster` for the application with the id `application`. Jobs run in the role `role`.

    `disk_key` has the ARN of the KMS key that encrypts the workers' disks, and the lake's id; None uses EMR's own key.
    """

    def __init__(
        self,
        name: str,
        application: str,
        role: str,
        options: Mapping[str, Any],
        code: Callable[[], JobCode],
        region: str | None = None,
        log_group: str | None = None,
        clock: Clock | None = None,
        disk_key: tuple[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self._application, self._role = name, application, role
        self._options, self._code, self._region, self._variables = options, code, region, variables or {}
        self._log_group, self._disk_key = log_group, disk_key
        self._clock = clock or Clock()
        self._calls = Calls("emr-serverless", f"cluster {name} (EMR Serverless application {application})")
        self._streams: dict[str, LogStreams] = {}

    def start(self, job: RemoteJob, attempt: int = 1) -> Run:
        for number in range(attempt, MOST_ATTEMPTS + 1):
            key = job.key(number)
            run_id, answered = self._started(job, key)
            found = self._run(run_id)
            has_failed = STATES.get(found["state"]) in (RunState.FAILED, RunState.CANCELLED)
            if not (has_failed and found["createdAt"] < answered - OLD):
                return Run(run_id, key, number)
            # AWS answered this token with a failed run that an earlier command started: the next attempt follows.
        raise DeployerError(
            f"{job.title} was tried {MOST_ATTEMPTS} times under this job id",
            where=self.name,
            remedy="give another job id",
        )

    def _started(self, job: RemoteJob, key: str) -> tuple[str, datetime]:
        """Starts the run of this attempt; returns its id, and the time of AWS's answer. Where an answer is lost,
        botocore repeats the request with the same token, and AWS answers with the run that the first request made."""
        code = self._code()
        driver = {
            "entryPoint": code.script(job.program),
            "entryPointArguments": [f"--tell={key}", *job.arguments],
            "sparkSubmitParameters": as_text(
                {**serverless_settings(self._options, self._region, self._variables), **code.serverless_settings()}
            ),
        }
        overrides: dict[str, Any] = (
            {"configurationOverrides": disk_configuration(*self._disk_key)} if self._disk_key else {}
        )
        deadline, pause = self._clock.monotonic() + ROLE_PATIENCE, 1.0
        while True:
            try:
                answer = self._calls(
                    "start_job_run",
                    applicationId=self._application,
                    clientToken=key,
                    executionRoleArn=self._role,
                    jobDriver={"sparkSubmit": driver},
                    name=f"{job.title} {job.job_id}"[:256],
                    tags={name: _tag(value) for name, value in {**job.tags, "deployer:job": job.job_id}.items()},
                    executionTimeoutMinutes=timeout_minutes(self._options),
                    retryPolicy={"maxAttempts": 1},
                    **overrides,
                )
            except CallFailed as failure:
                if not role_is_not_ready(failure.aws_message):
                    raise
                if self._clock.monotonic() >= deadline:
                    raise self._role_missing(failure) from failure
                self._clock.sleep(pause)
                pause = min(2 * pause, 10.0)
                continue
            when = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
            return str(answer["jobRunId"]), parsedate_to_datetime(when) if when else datetime.min.replace(tzinfo=UTC)

    def _role_missing(self, failure: CallFailed) -> DeployerError:
        return DeployerError(
            f"StartJobRun cannot use the role {self._role} after {ROLE_PATIENCE:.0f} s of trying: "
            f"{failure.aws_message}",
            where=self._calls.where,
            remedy="run `deployer up`, which makes the role; one of your own has to trust emr-serverless.amazonaws.com",
        )

    def status(self, run_id: str) -> RunStatus:
        found = self._run(run_id)
        reported, detail = str(found["state"]), str(found.get("stateDetails") or "").strip()
        state = STATES.get(reported, RunState.RUNNING)
        return RunStatus(state, reported, detail, state is RunState.FAILED and role_is_not_ready(detail))

    def new_lines(self, run_id: str) -> Sequence[str]:
        if self._log_group is None:
            return ()
        if run_id not in self._streams:
            path = f"applications/{self._application}/jobs/{run_id}/SPARK_DRIVER/"
            self._streams[run_id] = LogStreams(self._log_group, (f"/{path}", path), ("stdout", "stderr"))
        return self._streams[run_id].new_lines()

    def cancel(self, run_id: str) -> None:
        try:
            self._calls("cancel_job_run", applicationId=self._application, jobRunId=run_id)
        except CallFailed:
            if not self.status(run_id).state.ended:
                raise

    def describe_run(self, run_id: str) -> str:
        return f"job run {run_id} of EMR Serverless application {self._application} (cluster {self.name})"

    def _run(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._calls("get_job_run", applicationId=self._application, jobRunId=run_id)["jobRun"]
        return found


def role_is_not_ready(reported: str) -> bool:
    """Returns whether AWS reports that it cannot assume the role: a new role takes some seconds to be known everywhere.
    A report that the caller may not pass the role does not count."""
    text = reported.lower()
    return "role" in text and ("assume" in text or "does not exist" in text) and "passrole" not in text


def _tag(value: str) -> str:
    return re.sub(r"[^\w\s.:/=+@-]", "_", value)[:256]
