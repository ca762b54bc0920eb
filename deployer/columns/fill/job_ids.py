"""Checks the id of a job that writes columns: another job may have it, or may be running."""

from __future__ import annotations

from deployer.datasets.storage.job_folders import tables_with_job
from deployer.errors import Conflict, InvalidInput
from deployer.platform.system.clock import Clock
from deployer.tables.open_table import OpenTable


def refuse_used_id(table: OpenTable, job_id: str) -> None:
    """Raises Conflict for the id of a running job, and InvalidInput for the id of a job of another table."""
    now = Clock().now()
    runs = (run for run in table.state.runs.values() if run.is_open and run.job == job_id)
    # A run whose lease has expired is not refused here: the new run ends it when it begins.
    if other := next((run for run in runs if run.lease_until is None or run.lease_until >= now), None):
        raise Conflict(
            f"job {job_id} is in use by run {other.run_id} of {other.service}",
            where=table.address,
            remedy="wait for that run, or cancel it",
        )
    tables = tables_with_job(table.root, job_id) - {table.entry.table_id}
    if tables:
        entry = table.store.instance().tables.get(min(tables))
        raise other_job(table, job_id, f"a job of table {entry.full_name if entry else min(tables)}")


def other_job(table: OpenTable, job_id: str, why: str) -> InvalidInput:
    """Returns the error for an id that another job has; `why` describes that job."""
    return InvalidInput(
        f"{job_id} is the id of another job: {why}", where=table.address, remedy="give this job another job id"
    )
