"""Builds an index in a job on a cluster on AWS, for an `up` or a program that waits for the job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Any

from deployer.compute.jobs.status import requested
from deployer.compute.running.table_jobs import TableCluster, TableJob, run_table_job
from deployer.platform.system.progress import OnProgress
from deployer.specs.declarations.indexes import index_from_json, index_to_json
from deployer.specs.model import IndexSpec
from deployer.specs.validation.plain_values import mapping, optional_whole, text
from deployer.state.store import StateStore
from deployer.tables.layout.indexes.parts import BuildPlan

PROGRAM = "index"


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """The task of a job: to build the index. The new index replaces the index named `replaced`, unless this is empty.

    Without `parts`, the job chooses the number of parts. `options` are those of `BuildPlan`.
    """

    table_id: str
    index: IndexSpec
    replaced: str = ""
    parts: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def index_request(root: str, job_id: str) -> IndexRequest:
    """Returns the stored task of the job with that id. Raises NotFound for an unknown job, and InvalidInput for an
    invalid task."""
    document = requested(root, job_id)
    index = index_from_json(mapping(document, "index"))
    replaced, parts = text(document, "replaced", ""), optional_whole(document, "parts")
    return IndexRequest(text(document, "table_id"), index, replaced, parts, mapping(document, "options"))


def plan_on(there: TableCluster, parts: int | None = None, options: Mapping[str, Any] | None = None) -> BuildPlan:
    """Returns a plan by which the cluster does the whole build of an index. Without `parts`, the job on the cluster
    chooses the number of parts."""
    return BuildPlan(parts or 1, options=options or {}, elsewhere=partial(_build_on, there, parts, options or {}))


def _build_on(
    there: TableCluster,
    parts: int | None,
    options: Mapping[str, Any],
    store: StateStore,
    root: str,
    table_id: str,
    index: IndexSpec,
    replaced: str,
    on_progress: OnProgress,
) -> bool:
    """Builds the index on the cluster, as `build_index` does in this process; returns whether the job built it. Raises
    as `run_table_job` does."""
    name, dataset = store.instance().tables[table_id].full_name, store.table(table_id).dataset
    document = {
        "table_id": table_id,
        "index": index_to_json(index),
        "replaced": replaced,
        "parts": parts,
        "options": dict(options),
    }
    digest = blake2b(json.dumps(document, sort_keys=True).encode(), digest_size=8).hexdigest()
    job = TableJob(
        PROGRAM,
        f"index-{table_id}-{dataset}-{digest}",
        name,
        f"build index {index.name} of {name}",
        document,
        "the same command or call builds the index again",
        "the same command or call follows it",
    )
    return bool(run_table_job(there, root, job, on_progress)["built"])
