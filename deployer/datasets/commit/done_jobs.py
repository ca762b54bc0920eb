"""Finds completed jobs: in the log, in Lance where the log lacks them, and in the log before a restore that undid
them."""

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
    """Returns the job if it is complete, also when only Lance has its commit."""
    return jobs_with(store, root, table_id, {job_id}).get(job_id)


def jobs_with(store: StateStore, root: str, table_id: str, wanted: set[str]) -> Mapping[str, Job]:
    """Returns the table's completed jobs, and those of `wanted` whose commit only Lance has."""
    jobs = store.table(table_id).jobs
    return jobs if all(job_id in jobs for job_id in wanted) else refresh(store, root, table_id).jobs


def undone_job(store: StateStore, table_id: str, job_id: str) -> Job | None:
    """Returns a job that a restore undid, as the log records it after the job's newest intent.

    Returns None when that intent was abandoned or not recorded. Reads the log backwards to that intent; without an
    intent, it reads all of the kept log.
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
    """Returns the job if the entry records it, False if the entry begins or abandons it, None if the entry does not
    name it."""
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
