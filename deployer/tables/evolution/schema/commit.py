"""Commits one change of a table's schema, by the protocol of `deployer.datasets.commit.protocol`.

The commit's metadata name the change, so that `history` shows it, and so that the next process that opens the table
records the commit as ours if its record was lost in a crash.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from deployer.datasets.commit.protocol import Committed, TableCommits
from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.dataset import open_dataset
from deployer.datasets.errors import first_line, refused_by_storage
from deployer.datasets.lance_transactions import ChangeDataset
from deployer.datasets.recovery.rollforward import refresh
from deployer.errors import Conflict, DeployerError
from deployer.platform.system.failpoints import reached
from deployer.state.transactions.tables import to_change_schema

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset, LanceOperation
    from deployer.state.store import StateStore

Operation = Callable[["LanceDataset"], "LanceOperation.BaseOperation"]


def commit_schema_change(store: StateStore, root: str, table_id: str, kind: str, operation: Operation) -> None:
    """Makes the dataset's next version by `operation`. `kind` describes it: `add column remark`.

    Raises Conflict when another process changed the table in between; nothing is changed then.
    """
    commits = TableCommits(store, root, store.instance().tables[table_id])
    base = refresh(store, root, table_id).lance_version
    dataset = open_dataset(commits.location, base)
    job_id = uuid.uuid4().hex
    intent = commits.begin([(job_id, kind)], base, to_change_schema(base, commits.entry.dataset))
    reached("tables.schema.before-lance")
    try:
        change = ChangeDataset(operation(dataset))
        prepared = commits.prepare(intent.state, dataset, change, [CommitMetadata(job_id, kind, 0)])
    except Exception as failure:
        raise _abandoned(commits, job_id, failure, kind) from failure
    outcome = commits.send(prepared)
    if not isinstance(outcome, Committed):
        raise _abandoned(commits, job_id, outcome.failure, kind) from outcome.failure
    reached("tables.schema.after-lance")
    commits.record(outcome)
    reached("tables.schema.after-state")


def _abandoned(commits: TableCommits, job_id: str, failure: Exception, kind: str) -> DeployerError:
    """Returns the error for a change that Lance does not have."""
    commits.abandon(job_id)
    address = f"table/{commits.entry.full_name}"
    if (refused := refused_by_storage(failure, commits.location)) is not None:
        return refused
    if isinstance(failure, DeployerError):
        failure.where = failure.where or address
        return failure
    return Conflict(
        f"Lance refused to {kind}: {first_line(failure)}",
        where=address,
        remedy="another process may have changed the table; preview again",
    )
