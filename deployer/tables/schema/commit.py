"""Commits one change of a table's schema: the intent in the log, then Lance, then the record, as commits of rows.

The commit's mark says which change it is, so that `history` tells it, and so that a commit whose record was lost in a
crash is recorded as ours by whoever opens the table next.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from deployer.datasets.commit_metadata import CommitMetadata
from deployer.datasets.dataset import dataset_location, open_dataset
from deployer.datasets.errors import first_line, refused_by_storage
from deployer.datasets.recovery.rollforward import refresh
from deployer.errors import Conflict, DeployerError
from deployer.state.log.updates import CommitAbandoned, CommitStarted
from deployer.state.transactions.tables import to_change_schema
from deployer.system.failpoints import reached

if TYPE_CHECKING:
    import lance

    from deployer.state.model.entities import TableEntry
    from deployer.state.store import StateStore

Operation = Callable[["lance.LanceDataset"], "lance.LanceOperation.BaseOperation"]


def commit_schema_change(store: StateStore, root: str, table_id: str, kind: str, operation: Operation) -> None:
    """Makes the dataset's next version by `operation`. `kind` says in words what it does: `add column remark`.

    Raises Conflict when somebody else changed the table in between; nothing is changed then.
    """
    import lance

    entry = store.instance().tables[table_id]
    base = refresh(store, root, table_id).lance_version
    dataset = open_dataset(dataset_location(root, entry), base)
    job_id = uuid.uuid4().hex
    store.commit(table_id, [CommitStarted(job_id, kind, base)], to_change_schema(base, entry.dataset))
    reached("tables.schema.before-lance")
    try:
        transaction = lance.Transaction(
            read_version=base,
            operation=operation(dataset),
            transaction_properties=CommitMetadata(job_id, kind, 0).to_properties(),
        )
        lance.LanceDataset.commit(dataset, transaction)
    except Exception as failure:
        if not _done(store, root, table_id, job_id):
            store.commit(table_id, [CommitAbandoned(job_id)])
            raise _explained(failure, entry, dataset_location(root, entry), kind) from failure
    reached("tables.schema.after-lance")
    refresh(store, root, table_id)
    reached("tables.schema.after-state")


def _done(store: StateStore, root: str, table_id: str, job_id: str) -> bool:
    """Whether Lance took a commit that raised."""
    return job_id in refresh(store, root, table_id).jobs


def _explained(failure: Exception, entry: TableEntry, location: str, kind: str) -> DeployerError:
    address = f"table/{entry.full_name}"
    if (refused := refused_by_storage(failure, location)) is not None:
        return refused
    if isinstance(failure, DeployerError):
        failure.where = failure.where or address
        return failure
    return Conflict(
        f"Lance refused to {kind}: {first_line(failure)}",
        where=address,
        remedy="somebody else may have changed the table meanwhile: preview again",
    )
