"""The display of a job that can be resumed by its id: its progress, the start of Spark, and the id when it fails."""

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
    """The callbacks of the job. `has_begun` says whether its id can resume something that it has done."""

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
    """Shows the progress of a job on the table. `doing` says what it does, such as `loading`; `resumes` says whether it
    continues an interrupted job. When the job fails or is interrupted, a note names the option that resumes it."""
    with Meter(as_json=as_json) as meter:
        job = ResumableJob(doing, as_json, resumes, meter.begin(table))
        try:
            yield job
        except (DeployerError, KeyboardInterrupt):
            if job.has_begun and not as_json:
                note(f"the id of the job is {job_id}: `--job-id {job_id}` resumes it")
            raise
