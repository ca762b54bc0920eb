"""Runs jobs on clusters of kind `emr`: a job is a step of an existing cluster, or of a cluster that is made for the job
and ends with it.

EMR has no client tokens. Therefore, before a start and after a lost answer, this module searches for a step (or
cluster) with the attempt's name. If a lost request is completed after that search, the job starts twice; the state
store then detects the second run by its job id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from deployer.compute.emr.settings import as_options, step_settings
from deployer.compute.emr.step_logs import StepLogs
from deployer.compute.jobs.cluster import RemoteJob, Run, RunState, RunStatus
from deployer.compute.jobs.code import JobCode
from deployer.errors import DeployerError, NotFound
from deployer.platform.aws.calls import CallFailed, Calls, Cause
from deployer.platform.system.clock import Clock

STATES = {
    "PENDING": RunState.WAITING,
    "RUNNING": RunState.RUNNING,
    "CANCEL_PENDING": RunState.RUNNING,
    "COMPLETED": RunState.SUCCEEDED,
    "CANCELLED": RunState.CANCELLED,
    "FAILED": RunState.FAILED,
    "INTERRUPTED": RunState.FAILED,
}
PATIENCE = 60.0  #: seconds for which a start is repeated: no answer, too many requests, a role that is not ready
MOST_ATTEMPTS = 100
LOOK_BACK = timedelta(days=7)  #: largest age of a run's cluster that is searched for
_ENDING = ("TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS")
_NOT_READY = re.compile(r"invalid instance ?profile|authorize instance profile|role .*(is )?(invalid|not valid)", re.I)
#: The causes of failed starts that are temporary.
_TEMPORARY = (Cause.UNREACHABLE, Cause.THROTTLED)


class EmrSteps:
    """Implements `remote.RemoteCluster`. `cluster` is the id of a long-lived cluster. Without it, each job gets its own
    cluster, made from `template`, the arguments of `RunJobFlow`. `logs` is the folder (s3://…) for EMR's logs."""

    def __init__(
        self,
        name: str,
        cluster: str | None,
        template: Mapping[str, Any],
        options: Mapping[str, Any],
        code: Callable[[], JobCode],
        logs: str,
        region: str | None = None,
        clock: Clock | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self._cluster, self._template = name, cluster, template
        self._options, self._code, self._region, self._log_uri = options, code, region, logs
        self._variables = variables or {}
        self._clock = clock or Clock()
        where = f"cluster {name} (EMR cluster {cluster})" if cluster else f"cluster {name} (EMR)"
        self._calls = Calls("emr", where)
        self._once = Calls("emr", where, attempts=1)
        self._logs: dict[str, StepLogs] = {}

    def start(self, job: RemoteJob, attempt: int = 1) -> Run:
        self._refuse_ended()
        for number in range(attempt, MOST_ATTEMPTS + 1):
            key = job.key(number)
            found = self._found(key)
            if found is None:
                return Run(self._started(job, key), key, number)
            if self.status(found).state not in (RunState.FAILED, RunState.CANCELLED):
                return Run(found, key, number)
        raise DeployerError(
            f"{job.title} was tried {MOST_ATTEMPTS} times under this job id",
            where=self.name,
            remedy="give another job id",
        )

    def status(self, run_id: str) -> RunStatus:
        cluster, step = _parts(run_id)
        status = self._calls("describe_step", ClusterId=cluster, StepId=step)["Step"]["Status"]
        reported, failure = str(status["State"]), status.get("FailureDetails") or {}
        detail = ". ".join(filter(None, (failure.get("Reason"), failure.get("Message"))))
        detail = detail or (status.get("StateChangeReason") or {}).get("Message") or ""
        state = STATES.get(reported, RunState.RUNNING)
        if reported not in ("COMPLETED", "FAILED"):  # the end of the cluster decides about its steps
            about = self._calls("describe_cluster", ClusterId=cluster)["Cluster"]["Status"]
            reason = about.get("StateChangeReason") or {}
            if about["State"] == "TERMINATED_WITH_ERRORS":
                state, reported = RunState.FAILED, "TERMINATED_WITH_ERRORS"
                detail = reason.get("Message") or detail
            elif about["State"] == "TERMINATED" and reported != "CANCELLED":
                state = RunState.CANCELLED if reason.get("Code") == "USER_REQUEST" else RunState.FAILED
                reported, detail = "TERMINATED", reason.get("Message") or detail
        return RunStatus(state, reported, detail, state is RunState.FAILED and bool(_NOT_READY.search(detail)))

    def new_lines(self, run_id: str) -> Sequence[str]:
        if run_id not in self._logs:
            self._logs[run_id] = StepLogs(self._log_uri, *_parts(run_id), self._clock)
        return self._logs[run_id].new_lines()

    def cancel(self, run_id: str) -> None:
        cluster, step = _parts(run_id)
        try:
            if self._cluster is None:
                self._calls("terminate_job_flows", JobFlowIds=[cluster])
            else:
                self._calls("cancel_steps", ClusterId=cluster, StepIds=[step], StepCancellationOption="SEND_INTERRUPT")
        except CallFailed:
            if not self.status(run_id).state.ended:
                raise

    def describe_run(self, run_id: str) -> str:
        cluster, step = _parts(run_id)
        return f"step {step} of EMR cluster {cluster} (cluster {self.name})"

    def _started(self, job: RemoteJob, key: str) -> str:
        step = self._step(job, key)
        deadline, pause = self._clock.monotonic() + PATIENCE, 1.0
        while True:
            try:
                if self._cluster is not None:
                    answer = self._once("add_job_flow_steps", JobFlowId=self._cluster, Steps=[step])
                    return f"{self._cluster}/{answer['StepIds'][0]}"
                flow = {**self._template, "Name": f"{self._template['Name']}-{key}", "Steps": [step]}
                cluster = str(self._once("run_job_flow", **flow)["JobFlowId"])
                return self._first_step(cluster)
            except CallFailed as failure:
                not_ready = bool(_NOT_READY.search(failure.aws_message))
                if not (failure.cause in _TEMPORARY or not_ready) or self._clock.monotonic() >= deadline:
                    raise
            self._clock.sleep(pause)
            pause = min(2 * pause, 10.0)
            if (found := self._found(key)) is not None:
                return found

    def _step(self, job: RemoteJob, key: str) -> dict[str, Any]:
        code = self._code()
        options = as_options({**step_settings(self._options, self._region, self._variables), **code.yarn_settings()})
        return {
            "Name": f"{job.title} {job.job_id}"[: 256 - len(key) - 3] + f" [{key}]",
            "ActionOnFailure": "CONTINUE" if self._cluster else "TERMINATE_CLUSTER",
            "HadoopJarStep": {
                "Jar": "command-runner.jar",
                "Args": [
                    *("spark-submit", "--deploy-mode", "cluster", *options),
                    *(code.script(job.program), f"--tell={key}", *job.arguments),
                ],
            },
        }

    def _found(self, key: str) -> str | None:
        """Returns the id of the run whose attempt has the key; None where EMR has no such run."""
        if self._cluster is None:
            since = datetime.now(UTC) - LOOK_BACK
            listed = self._pages("list_clusters", "Clusters", CreatedAfter=since)
            wanted = f"{self._template['Name']}-{key}"
            cluster = next((str(each["Id"]) for each in listed if each["Name"] == wanted), None)
            return None if cluster is None else self._first_step(cluster)
        steps = self._pages("list_steps", "Steps", ClusterId=self._cluster)
        return next((f"{self._cluster}/{each['Id']}" for each in steps if each["Name"].endswith(f"[{key}]")), None)

    def _first_step(self, cluster: str) -> str:
        steps = self._pages("list_steps", "Steps", ClusterId=cluster)
        return f"{cluster}/{next(steps)['Id']}"

    def _pages(self, operation: str, what: str, **parameters: Any) -> Iterator[dict[str, Any]]:
        while True:
            page = self._calls(operation, **parameters)
            yield from page[what]
            if not page.get("Marker"):
                return
            parameters["Marker"] = page["Marker"]

    def _refuse_ended(self) -> None:
        if self._cluster is None:
            return
        status = self._calls("describe_cluster", ClusterId=self._cluster)["Cluster"]["Status"]
        if status["State"] in _ENDING:
            reason = (status.get("StateChangeReason") or {}).get("Message")
            raise NotFound(
                f"the cluster has ended ({status['State']}{f': {reason}' if reason else ''})",
                where=self._calls.where,
                remedy="run `deployer up`, which makes it again",
            )


def _parts(run_id: str) -> tuple[str, str]:
    cluster, _, step = run_id.partition("/")
    return cluster, step
