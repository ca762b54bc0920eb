"""The display of a job that its id resumes: its progress, the start of Spark, and the id where it does not end well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from deployer.cli.console.output import note
from deployer.cli.console.progress_display import Meter
from deployer.errors import DeployerError
from deployer.platform.system.progress import OnProgress


@dataclass(slots=True)
class ResumableJob:
    """The callbacks of the job. `has_begun` says whether it has done something that its id can resume."""

    doing: str
    as_json: bool
    has_begun: bool
    on_progress: OnProgress

    def on_engine(self, engine: str, reason: str) -> None:
        """Notes that the job begins with Spark, and why."""
        self.has_begun = True
        if engine == "spark" and not self.as_json:
            note(f"{self.doing} with Spark: {reason}")


@contextmanager
def show_resumable_job(job_id: str, table: str, doing: str, *, resumes: bool, as_json: bool) -> Iterator[ResumableJob]:
    """Shows the progress of a job on the table. `doing` says what it does, such as `loading`; `resumes` says whether
    it continues one that was interrupted. Where the job fails or is interrupted, the option that resumes it is noted.
    """
    with Meter(as_json=as_json) as meter:
        job = ResumableJob(doing, as_json, resumes, meter.begin(table))
        try:
            yield job
        except (DeployerError, KeyboardInterrupt):
            if job.has_begun and not as_json:
                note(f"the id of the job is {job_id}: `--job-id {job_id}` resumes it")
            raise
