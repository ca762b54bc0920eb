"""Commits to tables with unique keys: one load at a time, after a check of the rows that others have added.

A load compares its rows with those of one version. Its intent then requires that the log is still at this version, and
that no other load has an intent. Therefore only one of two loads that were checked against the same rows can begin. The
other load checks the added rows, and begins when the first one has ended.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from deployer.datasets.dataset import open_dataset
from deployer.datasets.recovery.restored_together import end_dead_restores
from deployer.datasets.recovery.rollforward import current
from deployer.errors import Conflict
from deployer.platform.system.clock import utc
from deployer.state.log.requirements import loads_under_way, schema_fingerprint
from deployer.state.transactions.tables import to_add_unique_files
from deployer.tables.ingest.keys.unique import Admission

if TYPE_CHECKING:
    from deployer.datasets.commit.protocol import Intent, TableCommits
    from deployer.datasets.lance_types import LanceDataset
    from deployer.state.model.entities import Job, TableState
    from deployer.tables.ingest.commit.pending import Pending

PATIENCE = 60.0  #: seconds for which a load waits until other commits end
DEAD_AFTER = 600_000  #: ms after which the process of a running commit is assumed to be dead


def dead_loads(state: TableState, now: int) -> list[str]:
    """Returns the ids of the loads that began to commit more than `DEAD_AFTER` before `now` (ms)."""
    return [each.job_id for each in loads_under_way(state) if each.started_at < now - DEAD_AFTER]


def begin_alone(
    commits: TableCommits, pending: Pending, schema: bytes, admission: Admission
) -> tuple[Intent, LanceDataset] | Job:
    """Writes the intent of a load into a table with unique keys. Returns the intent and the dataset with which the rows
    were compared; or the job, if it is already done.

    Raises KeysTaken where a row of the load has a key that was added meanwhile; Conflict where the table was changed or
    another load does not end.
    """
    store, root, entry = commits.store, commits.root, commits.entry
    job_id, address, until = pending.job_id, f"table/{entry.full_name}", time.monotonic() + PATIENCE
    lost = 0
    while True:
        now, state = current(store, root, entry, store.table(entry.table_id))
        if (job := state.jobs.get(job_id)) is not None:
            return job
        if now.dataset != entry.dataset or schema_fingerprint(state.schema) != schema_fingerprint(schema):
            what = "the table was changed while rows were being written for it"
            raise Conflict(what, where=address, remedy="run the ingest again")
        dataset = open_dataset(commits.location, state.lance_version)
        admission.check_again(state, dataset, address)
        dead = [each for each in dead_loads(state, time.time_ns() // 1_000_000) if each != job_id]
        required = to_add_unique_files(job_id, schema, entry.dataset, state.lance_version, dead)
        try:
            return commits.begin([(job_id, pending.info.kind)], int(dataset.version), required, dead), dataset
        except Conflict as conflict:
            end_dead_restores(store, root, store.table(entry.table_id))
            if time.monotonic() > until:
                raise stuck(store.table(entry.table_id), job_id, conflict, address) from conflict
        lost += 1
        store.pause(lost)


def stuck(state: TableState, job_id: str, conflict: Conflict, address: str) -> Conflict:
    other = next((each for each in loads_under_way(state) if each.job_id != job_id), None)
    if other is None:
        return Conflict(
            f"other processes commit to the table faster than rows can be compared with theirs ({conflict.what})",
            where=address,
            remedy="run the load again when there are fewer writers",
        )
    return Conflict(
        f"{conflict.what} and has not ended, and a table with unique keys takes one load at a time",
        where=address,
        remedy=f"if its process died, run it again with --job-id {other.job_id}, or this load after "
        f"{utc(other.started_at + DEAD_AFTER)} UTC",
    )
