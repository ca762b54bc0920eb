"""Jobs in threads of this process: `load_columns_async` returns one."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotDone
from contextlib import closing, suppress

from deployer.columns.fill.checkpoints import checked_job_id
from deployer.columns.load.load import load_columns
from deployer.columns.load.request import LoadRequest
from deployer.platform.system.clock import Clock
from deployer.services.runs.records import cancel_run
from deployer.state import open_store
from deployer.state.store import StateStore
from deployer.tables.open_table import OpenTable, open_entry

_reported: set[str] = set()  #: arguments without a meaning that were reported


class JobFuture:
    """A job that was started. The process ends only when the job has ended.

    `job_id` is its id, by which a job that was cut off is resumed.
    """

    def __init__(self, root: str, table_id: str, job_id: str, work: Callable[[StateStore], object]) -> None:
        self.job_id, self._root, self._table_id = job_id, root, table_id
        self._future: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(work,), name=f"job-{job_id}")
        self._thread.start()

    def done(self) -> bool:
        """Whether the job has ended, in whatever way."""
        return self._future.done()

    def result(self, timeout: float | None = None) -> str:
        """Waits for the end, at most so many seconds, and returns the job's id. Raises what the job raised, and
        TimeoutError while it goes on."""
        try:
            self._future.result(timeout)
        except NotDone:
            if self._future.done():
                raise
            raise TimeoutError(f"job {self.job_id} is not done after {timeout:g} s, and continues") from None
        return self.job_id

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits for the end, and returns what the job raised."""
        with suppress(CancelledError):
            return self._future.exception(timeout)
        return None

    def cancel(self) -> bool:
        """Asks the job to end; returns whether there was a run to ask. What was committed stays."""
        with closing(open_store(self._root)) as store:
            runs = [run for run in store.table(self._table_id).runs.values() if run.is_open and run.job == self.job_id]
            for run in runs:
                cancel_run(store, self._table_id, run.run_id, reason="cancelled")
        return bool(runs)

    def _run(self, work: Callable[[StateStore], object]) -> None:
        try:
            with closing(open_store(self._root)) as store:
                work(store)
        except BaseException as failure:
            self._future.set_exception(failure)
            if not isinstance(failure, Exception):
                raise
        else:
            self._future.set_result(None)


def start_load(table: OpenTable, request: LoadRequest, job_id: str | None = None) -> JobFuture:
    """Starts `load_columns` in a thread with a connection of its own. Raises InvalidInput for an id that cannot be."""
    own_id = Clock().new_id() if job_id is None else checked_job_id(job_id)

    def work(store: StateStore) -> object:
        entry = store.instance().tables[table.entry.table_id]
        # An id that was just made cannot be that of another job: those are not looked for.
        return load_columns(open_entry(store, table.root, entry), request, own_id, is_new=job_id is None)

    return JobFuture(table.root, table.entry.table_id, own_id, work)


def report_ignored(names: Sequence[str]) -> None:
    """Warns of arguments that have no meaning here, once in a process."""
    new = [name for name in names if name not in _reported]
    if new:
        _reported.update(new)
        warnings.warn(f"{', '.join(new)} has no meaning here and is ignored", UserWarning, stacklevel=3)
