"""Starts loads and backfills as jobs, in the calling thread or in threads of their own (`JobFuture`)."""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotDone
from contextlib import closing, suppress
from typing import Generic, TypeVar

from deployer.columns.backfill.backfill import BackfillJob, Define, backfill
from deployer.columns.backfill.engine_choice import Sizes
from deployer.columns.backfill.request import BackfillRequest
from deployer.columns.backfill.results import BackfillJobResult
from deployer.columns.fill.checkpoints import checked_job_id
from deployer.columns.job_list import Job, JobStatus, cancel_job, follow, job_of
from deployer.columns.load.load import load_columns
from deployer.columns.load.request import LoadRequest
from deployer.errors import NotFound
from deployer.platform.system.clock import Clock
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.state import open_reader, open_store
from deployer.state.store import StateStore
from deployer.tables.open_table import OpenTable, open_entry

T = TypeVar("T")

FIRST_LOOK = 0.02  #: seconds between two checks whether a run has begun

_log = logging.getLogger(__name__)
_reported: set[str] = set()  #: names of ignored arguments that were reported


class JobFuture(Generic[T]):
    """A job that was started. The process ends only when the job has ended.

    `job_id` is its id, by which a job that was interrupted is resumed.
    """

    def __init__(self, root: str, table_id: str, job_id: str, work: Callable[[StateStore], T]) -> None:
        self.job_id, self._root, self._table_id = job_id, root, table_id
        self._future: Future[T] = Future()
        self._thread = threading.Thread(target=self._run, args=(work,), name=f"job-{job_id}")
        self._thread.start()

    def done(self) -> bool:
        """Returns whether the job has ended, with or without an error."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> T:
        """Waits for the end of the job, at most `timeout` seconds, and returns its result: the id of a load, or the
        `BackfillJobResult` of a backfill. Raises the error of the job, and TimeoutError while the job continues."""
        try:
            return self._future.result(timeout)
        except NotDone:
            if self._future.done():
                raise
            raise TimeoutError(f"job {self.job_id} is not done after {timeout:g} s, and continues") from None

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits for the end of the job, at most `timeout` seconds, and returns its error; None where it has none."""
        with suppress(CancelledError):
            return self._future.exception(timeout)
        return None

    def cancel(self) -> bool:
        """Requests the end of the job; returns whether it had an open run. Committed values stay."""
        with closing(open_store(self._root)) as store:
            return cancel_job(store, store.instance().tables[self._table_id], self.job_id)

    def describe(self) -> Job:
        """Returns the present state of the job: its status, rows per second and the time left.

        Raises NotFound before the job's run has begun.
        """
        with closing(open_reader(self._root)) as store:
            return job_of(store.instance().tables[self._table_id], store.table(self._table_id), self.job_id)

    @property
    def status(self) -> JobStatus:
        """The status of the job: PENDING before its run has begun, then RUNNING, and at the end DONE, FAILED or
        CANCELLED."""
        try:
            return self.describe().status
        except NotFound:
            return "FAILED" if self.done() else "PENDING"

    def follow(self) -> Iterator[Job]:
        """Yields the job whenever it has changed, until it has ended."""
        while not self.done():
            with suppress(NotFound):
                self.describe()
                break
            time.sleep(FIRST_LOOK)
        with closing(open_reader(self._root)) as store:
            yield from follow(store, store.instance().tables[self._table_id], self.job_id, time.sleep)

    def _run(self, work: Callable[[StateStore], T]) -> None:
        try:
            with closing(open_store(self._root)) as store:
                result = work(store)
        except BaseException as failure:
            self._future.set_exception(failure)
            if not isinstance(failure, Exception):
                raise
        else:
            self._future.set_result(result)


def start_load(table: OpenTable, request: LoadRequest, job_id: str | None = None) -> JobFuture[str]:
    """Starts `load_columns` in a thread with its own connection. Raises InvalidInput for an invalid id."""
    own_id = _id_of(job_id)

    def work(store: StateStore) -> str:
        entry = store.instance().tables[table.entry.table_id]
        load_columns(open_entry(store, table.root, entry), request, own_id, is_new=job_id is None)
        return own_id

    return JobFuture(table.root, table.entry.table_id, own_id, work)


def run_load(table: OpenTable, request: LoadRequest, job_id: str | None, log_seconds: float) -> str:
    """Runs `load_columns` in this thread, and returns the job's id. Logs the progress every `log_seconds` seconds."""
    own_id = _id_of(job_id)
    load_columns(table, request, own_id, _logging(own_id, log_seconds), is_new=job_id is None)
    return own_id


def start_backfill(
    table: OpenTable,
    request: BackfillRequest,
    define: Define,
    job_id: str | None,
    log_seconds: float | None = None,
    cluster: Sizes | None = None,
) -> JobFuture[BackfillJobResult]:
    """Starts `backfill` in a thread with its own connection. Raises InvalidInput for an invalid id.

    Logs the progress every `log_seconds` seconds, or not at all without it. `cluster` is as in `BackfillJob`.
    """
    own_id = _id_of(job_id)
    on_progress = no_progress if log_seconds is None else _logging(own_id, log_seconds)

    def work(store: StateStore) -> BackfillJobResult:
        opened = open_entry(store, table.root, store.instance().tables[table.entry.table_id])
        return backfill(BackfillJob(opened, request, own_id, job_id is None, cluster=cluster), define, on_progress)

    return JobFuture(table.root, table.entry.table_id, own_id, work)


def run_backfill(
    table: OpenTable,
    request: BackfillRequest,
    define: Define,
    job_id: str | None,
    log_seconds: float,
    timeout: dt.timedelta | None,
    cluster: Sizes | None = None,
) -> BackfillJobResult:
    """Runs `backfill` and returns its result. Logs the progress every `log_seconds` seconds.

    With a `timeout`, the job runs in its own thread. If it does not end in time, TimeoutError is raised and the job
    continues.
    """
    if timeout is not None:
        future = start_backfill(table, request, define, job_id, log_seconds, cluster)
        return future.result(timeout.total_seconds())
    own_id = _id_of(job_id)
    job = BackfillJob(table, request, own_id, job_id is None, cluster=cluster)
    return backfill(job, define, _logging(own_id, log_seconds))


def _id_of(job_id: str | None) -> str:
    return Clock().new_id() if job_id is None else checked_job_id(job_id)


def _logging(job_id: str, seconds: float) -> OnProgress:
    last = time.monotonic()

    def log(now: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= seconds:
            last = time.monotonic()
            of = "" if now.total is None else f" of {now.total:,}"
            _log.info("job %s: %s, %s%s %s", job_id, now.doing, f"{now.done:,}", of, now.unit)

    return log


def report_ignored(**given: object) -> None:
    """Warns (UserWarning) of arguments that are not None and have no meaning here; once per name and process."""
    new = [name for name, value in given.items() if value is not None and name not in _reported]
    if new:
        _reported.update(new)
        warnings.warn(f"{', '.join(new)} has no meaning here and is ignored", UserWarning, stacklevel=3)
