"""The record of a view's refreshes, and the check whether other programs have changed its rows since."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from deployer.errors import Corrupt, DeployerError
from deployer.platform.storage.envelope import RECOVERY
from deployer.state.log.updates import FilesAdded, FilesRemoved, FilesReplaced, RowsChanged
from deployer.state.model.entities import Job, TableState
from deployer.tables.changes.commits import only_rearranges
from deployer.views.definition import ReflectedInputs

if TYPE_CHECKING:
    from deployer.state.log.entries import LogEntry
    from deployer.tables.open_table import ReadTable

KIND = "refresh"  #: the kind of the jobs of refreshes
#: entries of the log in the first read and in each later one, the newest first; a refresh records few entries
AT_FIRST, AT_ONCE = 4, 100


def refresh_job(state: TableState) -> Job | None:
    """Returns the newest job of a refresh in the state; None for a view that was never refreshed.

    A restore also restores the jobs of the earlier version, and therefore what the rows of that version reflect.
    """
    since = next((each.since for each in state.datasets if each.status == "current"), 0)
    jobs = [job for job in state.jobs.values() if job.kind == KIND and job.sources]
    return max(jobs, key=lambda job: (job.at >= since, job.lance_version, job.at), default=None)


def reflected(state: TableState) -> ReflectedInputs | None:
    """Returns the inputs that the rows of a view reflect; None where no refresh has written rows. Raises Corrupt for a
    record that cannot be read."""
    job = refresh_job(state)
    if job is None:
        return None
    where = f"table {state.table_id}"
    try:
        return ReflectedInputs.of_json(json.loads(job.sources), where)
    except ValueError as error:
        raise Corrupt("what the view reflects cannot be read", where=where, remedy=RECOVERY) from error


def sources_of(record: ReflectedInputs) -> str:
    """Returns the record as text for the commit and the job of a refresh; `reflected` reads it."""
    return json.dumps(record.to_json(), separators=(",", ":"))


def changed_by_others(table: ReadTable) -> str:
    """Returns which other commit changed the rows of a view since its newest refresh, as a sentence without a full
    stop; empty where there is none.

    Reads the log backwards to the record of that refresh, or to the oldest entry that is kept.
    """
    job = refresh_job(table.state)
    if job is None:
        return ""
    upto, size = table.state.version, AT_FIRST
    while upto > 0:
        after = max(0, upto - size)
        for entry in reversed(table.store.log(table.entry.table_id, after, upto - after)):
            if _records(entry, job.job_id):
                return ""
            if (other := _other(entry)) is not None and not _rearranged(table, other[0]):
                return other[1]
        upto, size = after, AT_ONCE
    return ""


def _records(entry: LogEntry, job_id: str) -> bool:
    return any(isinstance(each, RowsChanged | FilesAdded) and each.job_id == job_id for each in entry.updates)


def _other(entry: LogEntry) -> tuple[int, str] | None:
    """Returns the dataset version of a change of rows that the entry records and that no refresh made, and a sentence
    that describes the change. Returns None where the entry records no such change."""
    for update in entry.updates:
        match update:
            case (
                FilesRemoved(lance_version=version)
                | FilesAdded(job_id=None, lance_version=version)
                | FilesReplaced(job_id=None, lance_version=version)
            ):
                return version, f"another program changed rows of the view in version {version}"
            case FilesAdded(kind=kind, lance_version=version) | RowsChanged(kind=kind, lance_version=version) if (
                kind != KIND
            ):
                return version, f"a commit of kind {kind} changed rows of the view in version {version}"
    return None


def _rearranged(table: ReadTable, version: int) -> bool:
    try:
        return only_rearranges(table.dataset(), version)
    except DeployerError:
        return False
