"""The rows of the catalog's tables: read as they come, and written by this project's own commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NoReturn

import pyarrow as pa

from deployer.errors import InvalidInput, Refused
from deployer.platform.files.temporary import temporary_folder
from deployer.state.model.entities import TableEntry
from deployer.state.store import StateStore
from deployer.tables.ingest.files.model import Format
from deployer.tables.ingest.job import IngestRequest, Mode, ingest
from deployer.tables.open_table import ReadTable, open_entry, read_entry
from deployer.tables.read.table import Table as Reader
from deployer.tables.rows.load import commit_load

#: Metadata of the fields that an upsert matches rows by, in Rerun's protocol: the row keys of a table.
TABLE_INDEX = b"rerun:is_table_index"


@dataclass(frozen=True, slots=True)
class Tables:
    """Reads and writes the tables of the instance at `root`. Safe for threads."""

    store: StateStore
    root: str

    def schema(self, entry: TableEntry) -> pa.Schema:
        """Returns the columns; the fields of the row keys say that an upsert matches by them."""
        return _with_index(read_entry(self.store, self.root, entry))

    def batches(self, entry: TableEntry) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the newest version; one empty batch where there are none."""
        table = read_entry(self.store, self.root, entry)
        schema = _with_index(table)
        read = 0
        for batch in Reader(table).scan().batches:
            read += 1
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        if not read:
            yield pa.RecordBatch.from_pylist([], schema)

    def write(self, entry: TableEntry, batches: Iterable[pa.RecordBatch], mode: Mode) -> int:
        """Writes rows as one version of the table, or none; returns how many.

        They go through a file, so that memory does not limit them. Raises InvalidInput for an upsert of a table without
        row keys, for batches of several schemas, for rows that do not fit, and for two rows of an upsert with one key;
        Conflict when the table was changed meanwhile.
        """
        table = open_entry(self.store, self.root, entry)
        if mode == "upsert" and not table.row_keys:
            raise InvalidInput(
                "the table has no row keys, so that no row can be matched",
                where=table.address,
                remedy="append the rows, or declare `row_keys`",
            )
        with temporary_folder("catalog") as folder:
            path = folder / "rows.arrow"
            if not _spooled(path, batches, table) and mode != "overwrite":
                return 0
            request = IngestRequest((str(path),), Format.ARROW, engine="driver", mode=mode)
            try:
                return ingest(table, request, _never, commit_load=commit_load).rows
            except Refused as refused:  # the rows, and not the caller, are what is refused
                raise InvalidInput(refused.what, where=refused.where, remedy=refused.remedy) from refused


def _spooled(path: Path, batches: Iterable[pa.RecordBatch], table: ReadTable) -> int:
    """Writes the batches into one file; returns the number of rows. Without a batch, it has the table's columns."""
    coming = iter(batches)
    first = next(coming, None)
    schema = table.schema if first is None else first.schema
    rows = 0
    with pa.ipc.new_file(path, schema) as writer:
        for batch in chain(() if first is None else (first,), coming):
            if not batch.schema.equals(schema):
                raise InvalidInput(
                    "the batches have several schemas", where=table.address, remedy="send batches with the same columns"
                )
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


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
