"""Finds jobs that are done: in the log, in Lance alone, and in the log before a restore that undid them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from deployer.datasets.recovery.rollforward import refresh
from deployer.state.log.entries import LogEntry
from deployer.state.log.updates import CommitAbandoned, CommitStarted, FilesAdded, RowsChanged
from deployer.state.model.entities import Job
from deployer.state.store import StateStore

AT_ONCE = 100  #: entries that are read at a time, the newest first


def find_job(store: StateStore, root: str, table_id: str, job_id: str) -> Job | None:
    """Returns the job if it is done, also when only Lance knows of it."""
    return jobs_with(store, root, table_id, {job_id}).get(job_id)


def jobs_with(store: StateStore, root: str, table_id: str, wanted: set[str]) -> Mapping[str, Job]:
    """Returns the table's jobs that are done, with those of `wanted` that only Lance knows of."""
    jobs = store.table(table_id).jobs
    return jobs if all(job_id in jobs for job_id in wanted) else refresh(store, root, table_id).jobs


def undone_job(store: StateStore, table_id: str, job_id: str) -> Job | None:
    """Returns a job that a restore undid, as the log has it after its newest intent.

    None when that was given up or not recorded.

    Reads back as far as that intent, and all of the log that is kept where there is none.
    """
    upto = store.table(table_id).version
    while upto > 0:
        after = max(0, upto - AT_ONCE)
        for entry in reversed(store.log(table_id, after, upto - after)):
            if (job := _job_in(entry, job_id)) is not None:
                return job or None
        upto = after
    return None


def _job_in(entry: LogEntry, job_id: str) -> Job | Literal[False] | None:
    """Returns the job where the entry recorded it, False where it began it or gave it up, None where it does not
    concern it."""
    for update in reversed(entry.updates):
        match update:
            case FilesAdded(job_id=of, kind=kind, rows=rows, lance_version=version, sources=sources) if of == job_id:
                return Job(job_id, kind, rows, version, entry.at, sources)
            case RowsChanged(job_id=of, kind=kind, counts=counts, lance_version=version, sources=sources) if (
                of == job_id
            ):
                return Job(job_id, kind, counts.changed, version, entry.at, sources, counts)
            case CommitStarted(job_id=of) | CommitAbandoned(job_id=of) if of == job_id:
                return False
    return None
