"""The rows of the instance's tables: read as they come, and written by this project's own commits."""

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
        """Returns the columns; the fields of the row keys say that an upsert matches by them."""
        return _with_index(read_entry(self.store, self.root, self.entry))

    def count(self) -> int:
        """Returns the number of rows of the newest version."""
        return Reader(read_entry(self.store, self.root, self.entry)).count()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the newest version; one empty batch where there are none."""
        table = read_entry(self.store, self.root, self.entry)
        schema = _with_index(table)
        read = 0
        for batch in Reader(table).scan().batches:
            read += 1
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        if not read:
            yield pa.RecordBatch.from_pylist([], schema)

    def write(self, batches: Iterable[pa.RecordBatch], mode: Mode) -> int:
        """Writes rows as one version of the table, or none; returns how many.

        They go through a file, so that memory does not limit them. Raises InvalidInput for an upsert of a table without
        row keys, for batches of several schemas, for rows that do not fit, and for two rows of an upsert with one key;
        Conflict when the table was changed meanwhile.
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
            except Refused as refused:  # the rows, and not the caller, are what is refused
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
