"""The shared parts of the programs of all jobs: error messages, exit codes, and the status for processes that follow
the job."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deployer.compute.emr.settings import MINUTES
from deployer.compute.jobs.status import JobStatus, is_to_end, write_status
from deployer.compute.spark.local import LocalCluster, job_session, was_submitted
from deployer.errors import DeployerError, Interrupted
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.platform.text import masking
from deployer.platform.text.masked_streams import masked_streams

INTERVAL = 5.0  #: seconds between two reports of progress


def run_program(root: str, key: str | None, work: Callable[[OnProgress], Mapping[str, Any]]) -> int:
    """Does the work, prints its result as JSON or an error message, and returns the exit code.

    With `key`, the name of the attempt, progress and outcome are also stored below `root`. Where the environment limits
    the job's minutes, the process ends when they are over. Known secrets are masked.
    """
    with masking.scope(), masked_streams(), _ending_in_time(root, key):
        return _run(root, key, work)


def _run(root: str, key: str | None, work: Callable[[OnProgress], Mapping[str, Any]]) -> int:
    try:
        if was_submitted():
            job_session(LocalCluster)  # YARN ends a driver without a session after 100 s, whether or not it needs one
        result = work(_StatusWriter(root, key) if key else no_progress)
    except DeployerError as error:
        sys.stderr.write(f"error: {error}\n")
        _write_outcome(root, key, JobStatus(error=error))
        return error.exit_code
    except KeyboardInterrupt:
        stopped = Interrupted("interrupted: the table is unchanged")
        sys.stderr.write(f"{stopped}\n")
        _write_outcome(root, key, JobStatus(error=stopped))
        return stopped.exit_code
    except Exception as failure:
        # A bug: its traceback is for the log, and the status has its message.
        _write_outcome(
            root, key, JobStatus(error=DeployerError(f"the job failed: {type(failure).__name__}: {failure}"))
        )
        raise
    sys.stdout.write(json.dumps(result) + "\n")
    _write_outcome(root, key, JobStatus(result=result))
    return 0


@contextlib.contextmanager
def _ending_in_time(root: str, key: str | None) -> Iterator[None]:
    """Ends the process in any state when its minutes are over. That is safe, because a commit is done completely or not
    at all."""
    minutes = float(os.environ.get(MINUTES, 0))

    def end() -> None:
        error = DeployerError(
            f"the job took more than {minutes:g} minutes", remedy="raise `timeout_minutes` of the cluster, or load less"
        )
        sys.stderr.write(f"error: {error}\n")
        sys.stderr.flush()
        _write_outcome(root, key, JobStatus(error=error))
        os._exit(error.exit_code)

    timer = threading.Timer(minutes * 60, end)
    timer.daemon = True
    if minutes:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _write_outcome(root: str, key: str | None, status: JobStatus) -> None:
    if key is None:
        return
    try:
        write_status(root, key, status)
    except DeployerError as error:  # the work of the job is kept, and its exit code is the outcome
        sys.stderr.write(f"the status of the job cannot be stored: {error}\n")


class _StatusWriter:
    """A progress callback that stores progress every few seconds, and ends the work when its cancellation is requested.

    Not every cluster ends a job whose run is cancelled: the driver of an EMR step continues without it.
    """

    def __init__(self, root: str, key: str) -> None:
        self._root, self._key = root, key
        self._lock, self._next = threading.Lock(), 0.0

    def __call__(self, progress: Progress) -> None:
        if not self._lock.acquire(blocking=False):
            return
        try:
            if time.monotonic() < self._next:
                return
            ending = False
            with contextlib.suppress(DeployerError):  # the work continues when its status cannot be stored
                write_status(self._root, self._key, JobStatus(progress))
                ending = is_to_end(self._root, self._key)
            self._next = time.monotonic() + INTERVAL
            if ending:
                raise Interrupted("the job was cancelled: the table is unchanged")
        finally:
            self._lock.release()
