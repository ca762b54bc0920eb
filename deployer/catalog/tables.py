"""Reads the rows of the instance's tables batch by batch, and writes rows by deployer's own commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from deployer.catalog.batches import TABLE_INDEX, spooled
from deployer.errors import InvalidInput, Refused
from deployer.platform.files.temporary import temporary_folder
from deployer.state.model.entities import TableEntry
from deployer.state.store import StateStore
from deployer.tables.ingest.files.model import Format
from deployer.tables.ingest.job import ingest
from deployer.tables.ingest.request import IngestRequest, Mode
from deployer.tables.open_table import ReadTable, open_entry, read_entry
from deployer.tables.read.table import Table as Reader
from deployer.tables.rows.load import commit_load


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of one table of the instance at `root`. Safe for threads."""

    store: StateStore
    root: str
    entry: TableEntry

    def schema(self) -> pa.Schema:
        """Returns the columns. The metadata of the row key fields states that an upsert matches rows by them."""
        return _with_index(read_entry(self.store, self.root, self.entry))

    def count(self) -> int:
        """Returns the number of rows of the newest version."""
        return Reader(read_entry(self.store, self.root, self.entry)).count()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the newest version; a table without rows yields one empty batch."""
        table = read_entry(self.store, self.root, self.entry)
        schema = _with_index(table)
        read = 0
        for batch in Reader(table).scan().batches:
            read += 1
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        if not read:
            yield pa.RecordBatch.from_pylist([], schema)

    def write(self, batches: Iterable[pa.RecordBatch], mode: Mode) -> int:
        """Writes all rows as one version of the table, or writes none, and returns the number of rows.

        The rows pass through a file, so that memory does not limit them. Raises InvalidInput for an upsert into a table
        without row keys, for batches with different schemas, for rows that do not fit the table, and for two rows of an
        upsert with the same key. Raises Conflict when the table was changed meanwhile.
        """
        table = open_entry(self.store, self.root, self.entry)
        if mode == "upsert" and not table.row_keys:
            raise InvalidInput(
                "the table has no row keys, so that no row can be matched",
                where=table.address,
                remedy="append the rows, or declare `row_keys`",
            )
        with temporary_folder("catalog") as folder:
            path = folder / "rows.arrow"
            if not spooled(path, batches, table.schema, table.address) and mode != "overwrite":
                return 0
            request = IngestRequest((str(path),), Format.ARROW, engine="driver", mode=mode)
            try:
                return ingest(table, request, _never, commit_load=commit_load).rows
            except Refused as refused:  # the cause is in the rows, not in the caller's rights
                raise InvalidInput(refused.what, where=refused.where, remedy=refused.remedy) from refused


def _with_index(table: ReadTable) -> pa.Schema:
    keys = set(table.row_keys)
    return pa.schema(
        [
            field.with_metadata({**(field.metadata or {}), TABLE_INDEX: b"true"}) if field.name in keys else field
            for field in table.schema
        ]
    )


def _never(*_: object) -> NoReturn:
    raise AssertionError("a load by the driver starts no Spark")
