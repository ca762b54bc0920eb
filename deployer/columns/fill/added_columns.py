"""Checks and adds the columns that a run writes and the table lacks. New columns are null in all rows and need no data
file."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from deployer.columns.fill.work import Target
from deployer.datasets.schema.change import add_null_column
from deployer.errors import Conflict, InvalidInput
from deployer.specs.types.column_names import name_fault
from deployer.specs.types.lance_support import NEWER, newer_findings, type_findings
from deployer.specs.types.types import children
from deployer.tables.evolution.schema.commit import commit_schema_change

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset, LanceOperation
    from deployer.specs.types.types import Column
    from deployer.state.store import StateStore
    from deployer.tables.open_table import OpenTable

ATTEMPTS = 20  #: attempts of a commit while other writers commit first


def refuse_new_column(table: OpenTable, column: Column) -> None:
    """Raises InvalidInput for a column whose name is not valid in the table, or whose type its files cannot have."""
    _refuse_names(table, column)
    others = (name for name in table.schema.names if name.lower() == column.name.lower())
    if other := next(others, None):
        raise InvalidInput(
            f"column {column.name} differs from {other} only in upper and lower case",
            where=table.address,
            remedy=f"use {other}, or another name",
        )
    needs = newer_findings(column.type) if table.layout().data_storage_version != NEWER else ()
    if finding := next(chain(type_findings(column), needs), None):
        raise InvalidInput(f"column {column.name}: {finding.what}", where=table.address, remedy=finding.remedy)


def _refuse_names(table: OpenTable, column: Column, *, nested: bool = False) -> None:
    if fault := name_fault(column.name, nested=nested):
        raise InvalidInput(fault.what, where=table.address, remedy=fault.remedy)
    for child in children(column.type):
        _refuse_names(table, child, nested=True)


def add_columns(store: StateStore, root: str, table_id: str, target: Target) -> None:
    """Adds the missing columns after the other columns, each by its own commit. Raises Conflict when other writers win
    all attempts."""
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
