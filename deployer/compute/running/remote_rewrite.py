"""Rewrites a table in a job on a cluster on AWS, for an `up` that waits for the job.

Where an earlier job ended before the rewrite was complete, `up` starts the job again, and the job keeps the ranges that
are already written.
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
    """The task of a job: to change the table so that it matches `spec`. `over` are earlier attempts, which no longer
    write."""

    table_id: str
    spec: TableSpec
    over: frozenset[str] = frozenset()


def rewrite_request(root: str, job_id: str) -> RewriteRequest:
    """Returns the stored task of the job with that id. Raises NotFound for an unknown job, and InvalidInput for an
    invalid task."""
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
    """Rewrites the table on the cluster, as `rewrite_table` does in this process, and returns after its end.

    Raises the error that ended the job. Raises Interrupted where `on_progress` raises it; the job is then asked to end.
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
