"""Lists, describes, follows and cancels jobs that write columns or refresh views, by the records of their runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from deployer.errors import NotFound
from deployer.runs.records import cancel_run, runs_of
from deployer.specs.yaml.suggestions import nearest
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.model.services import WRITES_COLUMNS, Run, RunStatus, ServiceKind
from deployer.state.model.times import TIME
from deployer.state.reader import StateReader
from deployer.state.store import StateStore

JobStatus = Literal["PENDING", "RUNNING", "DONE", "FAILED", "CANCELLED"]
KINDS: tuple[ServiceKind, ...] = (*WRITES_COLUMNS, "REFRESH")  #: the services whose runs are jobs
POLL = 1.0  #: seconds between two reads of a job that is followed

_STATUS: dict[RunStatus, JobStatus] = {
    "QUEUED": "PENDING",
    "RUNNING": "RUNNING",
    "SUCCEEDED": "DONE",
    "SKIPPED": "DONE",
    "FAILED": "FAILED",
    "CANCELLED": "CANCELLED",
}


@dataclass(frozen=True, slots=True)
class Job:
    """A job at one moment, from the record of its newest run. `runs` is the number of its runs. Times are in ms since
    1970.

    `done` and `total` count the rows of the current step, and `rows` all rows that the last run wrote.
    `rows_per_second` and `seconds_left` are set for a running job that has begun to write. `cancel_requested` tells
    whether the job was asked to end.
    """

    job_id: str
    table: str
    kind: ServiceKind
    columns: tuple[str, ...]
    status: JobStatus
    run_id: str
    runs: int
    queued_at: int = field(metadata=TIME)
    started_at: int | None = field(metadata=TIME)
    ended_at: int | None = field(metadata=TIME)
    doing: str
    done: int
    total: int | None
    rows: int
    errors: int
    rows_per_second: float | None
    seconds_left: float | None
    cancel_requested: bool
    reason: str
    author: str

    @property
    def is_over(self) -> bool:
        """Returns whether the job has ended: it is done, has failed or was cancelled."""
        return self.status in ("DONE", "FAILED", "CANCELLED")


def jobs_of(entry: TableEntry, state: TableState, now: float | None = None) -> list[Job]:
    """Returns the jobs of a table that have runs, the newest first. `now` is in seconds since 1970."""
    by_id: dict[str, list[Run]] = {}
    for run in runs_of(state):
        if run.service in KINDS:
            by_id.setdefault(run.job or run.run_id, []).append(run)
    return [_job(entry, job_id, found, time.time() if now is None else now) for job_id, found in by_id.items()]


def job_of(entry: TableEntry, state: TableState, job_id: str, now: float | None = None) -> Job:
    """Returns one job of a table. Raises NotFound, with the nearest id, for an unknown job. `now` is in seconds since
    1970."""
    found = jobs_of(entry, state, now)
    for job in found:
        if job.job_id == job_id:
            return job
    raise _unknown(job_id, [each.job_id for each in found], f"table/{entry.full_name}")


def find_job(store: StateReader, job_id: str, table: TableEntry | None = None) -> tuple[TableEntry, Job]:
    """Returns the job with that id, and its table. Searches only `table`, if it is given, or else all tables.

    Raises NotFound, with the nearest id, for an unknown job.
    """
    entries = [table] if table is not None else list(store.instance().tables.values())
    known: list[str] = []
    for entry in entries:
        if entry.status != "active":
            continue
        for job in jobs_of(entry, store.table(entry.table_id)):
            if job.job_id == job_id:
                return entry, job
            known.append(job.job_id)
    raise _unknown(job_id, known, f"table/{table.full_name}" if table is not None else "")


def follow(store: StateReader, entry: TableEntry, job_id: str, pause: Callable[[float], None]) -> Iterator[Job]:
    """Yields the job whenever it has changed; the last time after it has ended. Raises NotFound as `job_of` does."""
    before: Job | None = None
    while True:
        job = job_of(entry, store.table(entry.table_id), job_id)
        if job != before:
            yield job
            before = job
        if job.is_over:
            return
        pause(POLL)


def cancel_job(store: StateStore, entry: TableEntry, job_id: str, *, author: str | None = None) -> bool:
    """Requests the end of the job's open runs; returns whether the job had any. Committed values stay."""
    runs = [run for run in store.table(entry.table_id).runs.values() if run.is_open and job_id in (run.job, run.run_id)]
    for run in runs:
        cancel_run(store, entry.table_id, run.run_id, reason="cancelled", author=author)
    return bool(runs)


def _job(entry: TableEntry, job_id: str, runs: list[Run], now: float) -> Job:
    run = runs[0]
    done, total = _count(run, "done"), run.progress.get("total")
    of = total if isinstance(total, int) else None
    rate = left = None
    if run.status == "RUNNING" and run.started_at is not None and done > 0:
        rate = done / max(1e-3, now - run.started_at / 1000)
        left = None if of is None else max(0, of - done) / rate
    errors = run.figures.after.get("errors")
    return Job(
        job_id=job_id,
        table=entry.full_name,
        kind=run.service,
        columns=run.columns,
        status=_STATUS[run.status],
        run_id=run.run_id,
        runs=len(runs),
        queued_at=run.queued_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        doing=str(run.progress.get("doing", "")),
        done=done,
        total=of,
        rows=run.figures.rows_out,
        errors=errors if isinstance(errors, int) else 0,
        rows_per_second=rate,
        seconds_left=left,
        cancel_requested=run.wish == "cancel",
        reason=run.reason,
        author=run.author,
    )


def _count(run: Run, name: str) -> int:
    value = run.progress.get(name)
    return value if isinstance(value, int) else 0


def _unknown(job_id: str, known: list[str], where: str) -> NotFound:
    near = nearest(job_id, known)
    return NotFound(
        f"there is no job {job_id!r}",
        where=where or None,
        remedy=f"did you mean {near!r}?" if near else "`deployer job list` lists the jobs that are known",
    )
