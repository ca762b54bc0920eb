"""Jobs on clusters on AWS: the job, its runs, and the interface that each kind of cluster implements."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RemoteJob:
    """A job to run: the name of its program in `spark_jobs`, and the arguments of that program.

    `job_id` is the job's id in the state store, which prevents that the same work is done twice. `title` is for people.
    """

    program: str
    job_id: str
    title: str
    arguments: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)

    def key(self, attempt: int) -> str:
        """Returns the name of one attempt at this job: 32 hexadecimal digits, which are valid in client tokens and
        paths."""
        known = json.dumps([self.program, self.job_id, self.arguments, attempt])
        return hashlib.blake2b(known.encode(), digest_size=16).hexdigest()


class RunState(StrEnum):
    """The state of a run."""

    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status of a run. `reported` is AWS's name of the state, and `detail` its reason, which may be empty.

    `too_early` states that the run failed because a new resource, such as a role, was not yet known everywhere in AWS.
    A later attempt may succeed.
    """

    state: RunState
    reported: str
    detail: str = ""
    too_early: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """A started run: the service's id of the run, the number of its attempt (from 1), and the key of the attempt."""

    run_id: str
    key: str
    attempt: int = 1


class RemoteCluster(Protocol):
    """A cluster that runs jobs. Each call raises CallFailed when AWS refuses it."""

    @property
    def name(self) -> str:
        """The name of the cluster in the specs."""

    def start(self, job: RemoteJob, attempt: int = 1) -> Run:
        """Starts the job, or finds its run that is in progress. A start that is repeated because its answer was lost
        does not run the job twice. Attempts that failed in an earlier command are skipped."""

    def status(self, run_id: str) -> RunStatus:
        """Returns the status of the run."""

    def new_lines(self, run_id: str) -> Sequence[str]:
        """Returns the lines that the job printed since the last call; the service returns them with a delay."""

    def cancel(self, run_id: str) -> None:
        """Requests the end of the run. The run has ended when its status has an ended state."""

    def describe_run(self, run_id: str) -> str:
        """Returns a description of the run with the ids by which AWS's own tools find it."""
