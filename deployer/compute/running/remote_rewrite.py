"""Rewrites a table by a job on a cluster on AWS, for an `up` that waits for it.

An `up` whose job ended too early starts it again, which continues with the ranges that are written.
"""

from __future__ import annotations

from dataclasses import dataclass

from deployer.compute.jobs.status import requested
from deployer.compute.running.table_jobs import TableCluster, TableJob, earlier_attempts, run_table_job
from deployer.platform.system.clock import Clock
from deployer.platform.system.progress import OnProgress
from deployer.specs.model import TableSpec
from deployer.specs.serialized.specs import table_from_json, table_to_json
from deployer.specs.validation.plain_values import mapping, text
from deployer.state.store import StateStore
from deployer.tables.evolution.rewrite.rewrite import to_copy

PROGRAM = "rewrite"


@dataclass(frozen=True, slots=True)
class RewriteRequest:
    """The task of a job: change the table to what `spec` declares. `over` are earlier attempts, which no longer
    write."""

    table_id: str
    spec: TableSpec
    over: frozenset[str] = frozenset()


def rewrite_request(root: str, job_id: str) -> RewriteRequest:
    """Returns what the job of that id is to do. Raises NotFound where nothing says so, InvalidInput for what is not
    valid."""
    document = requested(root, job_id)
    spec = table_from_json(mapping(document, "spec"))
    return RewriteRequest(text(document, "table_id"), spec, earlier_attempts(document))


def rewrite_on(
    there: TableCluster,
    store: StateStore,
    root: str,
    table_id: str,
    spec: TableSpec,
    on_progress: OnProgress,
    clock: Clock | None = None,
) -> None:
    """Rewrites the table on the cluster, as `rewrite_table` does here, and returns once that is done.

    Raises the error that ended the job, and Interrupted where `on_progress` does: the job is asked to end then.
    """
    found = to_copy(store, root, table_id, spec)
    if found is None:
        return
    table, target = found
    job = TableJob(
        PROGRAM,
        f"rewrite-{table_id}-{table.state.dataset}-{target.fingerprint[:16]}",
        spec.full_name,
        f"rewrite {spec.full_name}",
        {"table_id": table_id, "spec": table_to_json(spec)},
        "the next `deployer up` resumes with the rows that are left",
        "the next `deployer up` follows it",
    )
    run_table_job(there, root, job, on_progress, clock)
