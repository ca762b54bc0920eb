"""The request for changes: the columns, the condition, and the identity of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from deployer.datasets.files.row_ids import ROW_ID
from deployer.errors import InvalidInput
from deployer.tables.changes.rows import FeedColumn
from deployer.tables.changes.timeline import Position
from deployer.tables.open_table import ReadTable
from deployer.tables.read.conditions import check_condition
from deployer.tables.read.key_values import unknown_column
from deployer.tables.read.scan_plan import Condition

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

CHANGE, VERSION, TIME = "_change", "_commit_version", "_commit_time"
META = (
    pa.field(CHANGE, pa.string(), nullable=False),
    pa.field(VERSION, pa.int64(), nullable=False),
    pa.field(TIME, pa.timestamp("us", "UTC"), nullable=False),
)
INSERT, UPDATE, DELETE = "insert", "update", "delete"

#: the identity of a row before and after a commit: by row keys, by stable row ids, or none
PairedBy = Literal["keys", "row ids", "nothing"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The part of a table's changes to read, in the form for processes without access to the state store.

    `columns` are those of the feed, `keys` the row keys; with `paired_by` row ids, the feed has the column `_rowid`.
    """

    address: str
    columns: tuple[FeedColumn, ...]
    every: tuple[FeedColumn, ...]
    keys: tuple[FeedColumn, ...]
    paired_by: PairedBy
    condition: Condition | None
    home: Position  #: the version of the columns

    @property
    def schema(self) -> pa.Schema:
        """The columns of the feed: those of the table, which may be null, since earlier versions may lack them."""
        own = [pa.field(column.name, column.type) for column in self.columns]
        ids = [pa.field(ROW_ID, pa.uint64(), nullable=False)] if self.paired_by == "row ids" else []
        return pa.schema([*own, *ids, *META])


def reading_of(
    table: ReadTable, dataset: LanceDataset, columns: Sequence[str] | None = None, where: str | None = None
) -> Reading:
    """Returns the request for the given columns and condition. `dataset` is at the table's newest version.

    Raises InvalidInput for columns and SQL that do not fit the table.
    """
    number, schema = table.state.dataset, dataset.schema
    read = dataset.scanner(blob_handling="all_binary").projected_schema
    every = tuple(
        FeedColumn(each.name(), each.id(), number, read.field(each.name()).type)
        for each in dataset.lance_schema.fields()
    )
    by_name = {each.name: each for each in every}
    names = list(by_name) if columns is None else list(columns)
    for name in names:
        if name not in by_name:
            raise unknown_column(name, list(by_name), table.address)
        if name in (CHANGE, VERSION, TIME):
            raise InvalidInput(
                f"the table has a column {name!r}, which the change feed has too",
                where=table.address,
                remedy="name the columns to read without it, or rename it",
            )
    condition = None
    if where is not None:
        check_condition(where, table.address, table.schema)
        condition = Condition.typed(where, schema)
    paired_by: PairedBy = "keys" if table.row_keys else "row ids" if dataset.has_stable_row_ids else "nothing"
    home = Position(number, table.state.lance_version)
    keys = tuple(by_name[name] for name in table.row_keys)
    return Reading(table.address, tuple(by_name[name] for name in names), every, keys, paired_by, condition, home)
