"""What moto's EMR Serverless lacks of job runs: it ends each one as it starts, and starts one again for a known token.

AWS answers a known token with the run that it was first sent for
(https://docs.aws.amazon.com/emr-serverless/latest/APIReference/API_StartJobRun.html). Nothing moves a run on by itself
here: whoever plays the cluster says where it stands, by `POST /-/job-runs` with `id`, `state` and `details`, of EMR's
steps and clusters too; `GET` gives the states of all by their ids. And moto's EMR cannot cancel a step.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.emr.models import emr_backends
from moto.emr.responses import ElasticMapReduceResponse
from moto.emrserverless.models import EMRServerlessBackend, JobRun, emrserverless_backends

_start = EMRServerlessBackend.start_job_run
PATH = "/-/job-runs"


def start_job_run(self: EMRServerlessBackend, application_id: str, client_token: str, **parameters: Any) -> JobRun:
    known = (run for run in self.job_runs.get(application_id, ()) if run.client_token == client_token)
    found = next(known, None)
    if found is None:
        found = _start(self, application_id=application_id, client_token=client_token, **parameters)
        found.state, found.state_details = "SUBMITTED", ""
        found.created_at = found.updated_at = datetime.now(UTC).replace(tzinfo=None)
    return found


def with_states(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """The server with one more path, which takes and gives the states of runs."""

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] != PATH:
            return application(environ, start_response)
        if environ["REQUEST_METHOD"] == "GET":
            found = json.dumps({each.id: each.state for each in [*_runs(), *_steps_and_clusters()]}).encode()
            start_response("200 OK", [("Content-Length", str(len(found)))])
            return [found]
        wanted = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        for run in _runs():
            if run.id == wanted["id"]:
                run.state, run.state_details = wanted["state"], wanted.get("details", "")
        for step in _steps_and_clusters():
            if step.id == wanted["id"]:
                step.state, step.last_state_change_reason = wanted["state"], wanted.get("details", "")
        start_response("204 No Content", [("Content-Length", "0")])
        return []

    return answer


def _runs() -> Iterable[JobRun]:
    accounts: Any = emrserverless_backends
    for account in accounts.values():
        for backend in account.values():
            for runs in backend.job_runs.values():
                yield from runs


def _steps_and_clusters() -> Iterable[Any]:
    accounts: Any = emr_backends
    for account in accounts.values():
        for backend in account.values():
            for cluster in backend.clusters.values():
                yield cluster
                yield from cluster.steps


def cancel_steps(self: ElasticMapReduceResponse) -> ActionResult:
    """A step that waits is cancelled; one that runs is so once it has ended."""
    cluster = self.backend.describe_cluster(self._get_param("ClusterId"))
    found = [step for step in cluster.steps if step.id in self._get_param("StepIds")]
    for step in found:
        step.state = {"PENDING": "CANCELLED", "RUNNING": "CANCEL_PENDING"}.get(step.state, step.state)
    return ActionResult({"CancelStepsInfoList": [{"StepId": step.id, "Status": "SUBMITTED"} for step in found]})


def extend() -> None:
    """Puts it in."""
    backend: Any = EMRServerlessBackend
    backend.start_job_run = start_job_run
    response: Any = ElasticMapReduceResponse
    response.cancel_steps = cancel_steps
