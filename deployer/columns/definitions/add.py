"""Adds columns that are null in all rows until a backfill computes them. This takes one commit and no data file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from deployer.columns.definitions.checked import checked_spec, live_spec
from deployer.columns.fill.added_columns import ATTEMPTS, refuse_new_column
from deployer.datasets.schema.change import add_null_columns
from deployer.errors import Conflict, InvalidInput
from deployer.specs.types.column_names import listed
from deployer.tables.evolution.schema.commit import commit_schema_change

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset, LanceOperation
    from deployer.specs.types.types import Column
    from deployer.tables.open_table import OpenTable


def check_new_columns(table: OpenTable, columns: Sequence[Column]) -> tuple[Column, ...]:
    """Returns the columns with the missing parts of their definitions filled in. Raises InvalidInput for columns that
    the table cannot have."""
    before = live_spec(table)
    for column in columns:
        if any(column.name == each.name for each in before.columns):
            raise _there(table, column.name)
        refuse_new_column(table, column)
    checked = checked_spec(before, replace(before, columns=(*before.columns, *columns)))
    return checked.columns[len(before.columns) :]


def add_columns(table: OpenTable, columns: Sequence[Column]) -> None:
    """Adds columns, which `check_new_columns` has returned, after all other columns. Raises InvalidInput where another
    writer added one of them meanwhile, and Conflict where other writers win all attempts."""
    names = [column.name for column in columns]

    def operation(dataset: LanceDataset) -> LanceOperation.BaseOperation:
        if there := next((name for name in names if name in dataset.schema.names), None):
            raise _there(table, there)
        return add_null_columns(dataset, columns)

    noun = "column" if len(names) == 1 else "columns"
    for attempt in range(1, ATTEMPTS + 1):
        try:
            commit_schema_change(
                table.store, table.root, table.entry.table_id, f"add {noun} {listed(names)}", operation
            )
        except Conflict:
            if attempt == ATTEMPTS:
                raise
            table.store.pause(attempt)
        else:
            return


def _there(table: OpenTable, name: str) -> InvalidInput:
    remedy = "use another name, or `alter_columns` to compute it in another way"
    return InvalidInput(f"column {name} exists already", where=table.address, remedy=remedy)
