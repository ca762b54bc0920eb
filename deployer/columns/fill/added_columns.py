"""Adds the columns that a run writes and the table lacks: null in all rows, without a data file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deployer.columns.fill.work import Target
from deployer.datasets.schema.change import add_null_column
from deployer.errors import Conflict
from deployer.tables.schema.commit import commit_schema_change

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset, LanceOperation
    from deployer.specs.types.types import Column
    from deployer.state.store import StateStore

ATTEMPTS = 20  #: how often it is tried again after others committed first


def add_columns(store: StateStore, root: str, table_id: str, target: Target) -> None:
    """Adds the missing columns behind the others, each by a commit of its own. Raises Conflict when others always
    commit first."""
    for column in target.added:
        _add(store, root, table_id, column)


def _add(store: StateStore, root: str, table_id: str, column: Column) -> None:
    added = True

    def operation(dataset: LanceDataset) -> LanceOperation.BaseOperation:
        nonlocal added
        added = column.name not in dataset.schema.names
        if not added:
            raise Conflict(f"column {column.name} was added meanwhile")
        return add_null_column(dataset, (), column, dataset.schema.names[-1])

    for attempt in range(1, ATTEMPTS + 1):
        try:
            commit_schema_change(store, root, table_id, f"add column {column.name}", operation)
        except Conflict:
            if not added:
                return
            if attempt == ATTEMPTS:
                raise
            store.pause(attempt)
        else:
            return
