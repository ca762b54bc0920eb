"""Job runs on moto's EMR Serverless, whose states a test moves on, and a clock that does not wait."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import boto3

from deployer.compute.emr.serverless import EmrServerless
from deployer.compute.jobs.cluster import RemoteJob
from deployer.compute.jobs.code import JobCode
from deployer.platform.system.clock import Clock

ROLE = "arn:aws:iam::123456789012:role/jobs"
CODE = JobCode("arm64", "3.11", "s3://b/wheel.zip", "s3://b/environment.tar.gz", {"ingest": "s3://b/ingest.py"})
JOB = RemoteJob("ingest", "monday", "ingest air.flights", ("--root=s3://b/lake", "--", "s3://b/x.csv"))


def set_state(server: str, run_id: str, state: str, details: str = "") -> None:
    """What AWS does as a run gets on."""
    body = json.dumps({"id": run_id, "state": state, "details": details}).encode()
    request = urllib.request.Request(f"{server}/-/job-runs", body, method="POST")  # noqa: S310
    urllib.request.urlopen(request).close()  # noqa: S310


def states(server: str) -> dict[str, str]:
    """The states of all job runs, steps and clusters by their ids. It takes the server a fraction of a call by boto."""
    with urllib.request.urlopen(f"{server}/-/job-runs") as answer:  # noqa: S310
        found: dict[str, str] = json.load(answer)
    return found


def runs_of(application: str) -> list[dict[str, Any]]:
    """The runs of an application, whole."""
    emr = boto3.client("emr-serverless")
    try:
        listed = emr.list_job_runs(applicationId=application)["jobRuns"]
    except emr.exceptions.ResourceNotFoundException:  # moto's word for none
        return []
    return [dict(emr.get_job_run(applicationId=application, jobRunId=run["id"])["jobRun"]) for run in listed]


def make_application(name: str) -> str:
    made = boto3.client("emr-serverless").create_application(name=name, releaseLabel="emr-7.12.0", type="SPARK")
    return str(made["applicationId"])


def cluster_at(application: str, clock: Clock | None = None, **settings: Any) -> EmrServerless:
    """A new client of the application, with nothing remembered."""
    options = {"cores": 2, "memory": "4g", "max_workers": 3}
    return EmrServerless("small", application, ROLE, options, lambda: CODE, "eu-central-1", clock=clock, **settings)


@dataclass
class Hands:
    """A clock whose time passes by sleeping alone; `on_sleep` is called each time, and may change the world."""

    time: float = 0.0
    on_sleep: Callable[[], None] = lambda: None
    slept: list[float] = field(default_factory=list)

    def clock(self) -> Clock:
        def sleep(seconds: float) -> None:
            self.time += seconds
            self.slept.append(seconds)
            self.on_sleep()

        return Clock(monotonic=lambda: self.time, sleep=sleep)
