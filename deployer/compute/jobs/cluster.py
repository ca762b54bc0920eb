"""Jobs on clusters that are not this machine: what is started, and what a kind of cluster can do with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class RemoteJob:
    """One job of `spark_jobs` to run: its program's name there, and the arguments of that program.

    `job_id` is the job's in the state store, by which the same work is not done twice. `title` is for people.
    """

    program: str
    job_id: str
    title: str
    arguments: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)

    def key(self, attempt: int) -> str:
        """Returns the name of one attempt at this job: 32 characters of 0-9 and a-f, fit for a client token and a
        path."""
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
    """The status of a run; `reported` is the state as AWS names it, `detail` its reason, which may be empty.

    `too_early`: it failed because AWS did not know everywhere yet what it needs, and may work in a moment.
    """

    state: RunState
    reported: str
    detail: str = ""
    too_early: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """A run that was started: the service's id, and which attempt at its job it is (from 1), with the key of that."""

    run_id: str
    key: str
    attempt: int = 1


class RemoteCluster(Protocol):
    """A cluster that runs jobs. Every call raises CallFailed when AWS refuses it."""

    @property
    def name(self) -> str:
        """The name in the specs."""

    def start(self, job: RemoteJob, attempt: int = 1) -> Run:
        """Starts the job, or finds its run that is in progress: a start that is repeated because its answer was lost
        does not run twice. Attempts that failed in an earlier command are skipped."""

    def status(self, run_id: str) -> RunStatus:
        """Returns the status of the run."""

    def new_lines(self, run_id: str) -> Sequence[str]:
        """Returns the lines that the job printed since the last call; the service returns them with a delay."""

    def cancel(self, run_id: str) -> None:
        """Requests the end of the run. It is over once its status says so."""

    def describe_run(self, run_id: str) -> str:
        """Returns a description of the run with the ids by which AWS's own tools find it."""
