"""The plan of a write: all that its tasks need. The driver makes it from the table's current state."""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.datasets.commit.done_jobs import find_job
from deployer.datasets.files.writer import Layout
from deployer.errors import InvalidInput
from deployer.spark.writing.from_spark import taken_schema
from deployer.spark.writing.options import WriteOptions
from deployer.spark.writing.stores import store_at
from deployer.tables.ingest.keys.unique import UniqueLoad
from deployer.tables.ingest.loading import unique_load
from deployer.tables.ingest.rows.bad_row_files import check_bad_rows_file
from deployer.tables.ingest.rows.bad_rows import LISTED
from deployer.tables.ingest.rows.check import match_columns
from deployer.tables.ingest.rows.field_map import FieldMap, check_one_field_each, field_map
from deployer.tables.ingest.rows.missing_columns import may_be_missing, missing
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.open_table import OpenTable, find_entry, open_entry

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A write into the table at `address`; small enough to be sent to tasks.

    `schema` is the table's recorded schema, `dataset` the number of its dataset and `version` the newest version of
    that. `job_id` is None for a stream, whose batches have their own ids. `scope` is the name of the write among
    concurrent ones. `columns` are Spark's columns of the rows (IPC bytes). `is_done`: the job was done before.
    """

    options: WriteOptions
    address: str
    table_id: str
    layout: Layout
    ranges: Ranges
    schema: bytes
    dataset: int
    version: int
    scope: str
    columns: bytes
    fields: FieldMap = field(default_factory=FieldMap)
    unique: UniqueLoad | None = None
    job_id: str | None = None
    is_done: bool = False

    @property
    def location(self) -> str:
        """Path or URI of the dataset."""
        return self.layout.location

    def require_columns(self, table: OpenTable) -> None:
        """Raises InvalidInput where the columns of the rows no longer fit the table."""
        columns = pa.ipc.read_schema(pa.py_buffer(self.columns))
        check_columns(table, self.options, columns, field_map(table.schema))

    @property
    def listed(self) -> int | None:
        """The most bad rows of a task that are described; None for all of them, which are then kept."""
        return LISTED if self.options.bad_rows is None else None


def plan_write(options: WriteOptions, columns: pa.Schema, *, stream: bool = False) -> WritePlan:
    """Plans a write of rows with these columns of Spark.

    Raises InvalidInput, naming every wrong column at once, where they do not fit the table, and for options that do not
    fit it; NotFound for a table that does not exist.
    """
    store = store_at(options.root)
    table = open_entry(store, options.root, find_entry(store.instance().tables.values(), options.table))
    return _plan(table, options, columns, stream=stream)


def _plan(table: OpenTable, options: WriteOptions, columns: pa.Schema, *, stream: bool) -> WritePlan:
    table.refuse_view()
    fields = field_map(table.schema)
    check_columns(table, options, columns, fields)
    if options.mode == "upsert" and not table.row_keys:
        raise InvalidInput(
            "the table has no row keys that rows could be matched by",
            where=table.address,
            remedy="declare `row_keys`, or leave the option `upsert` out",
        )
    unique = None
    if options.mode == "append":
        unique = unique_load(table, options.on_duplicate, sets_aside=options.bad_rows is not None)
    elif options.on_duplicate == "skip":
        raise InvalidInput(
            f"the option `on_duplicate` is given, and {options.mode} has no duplicates to skip", remedy="leave it out"
        )
    done = options.job_id is not None and find_job(table.store, table.root, table.entry.table_id, options.job_id)
    if options.bad_rows is not None and not stream and not done:
        check_bad_rows_file(options.bad_rows, table.schema, may_be_own=options.job_id is not None)
    return WritePlan(
        options=options,
        address=table.address,
        table_id=table.entry.table_id,
        layout=table.layout(),
        ranges=Ranges(tuple(table.splits), tuple(leaf.partition_id for leaf in table.state.leaves())),
        schema=table.state.schema,
        dataset=table.entry.dataset,
        version=table.state.lance_version,
        scope=uuid.uuid4().hex,
        columns=columns.serialize().to_pybytes(),
        fields=fields,
        unique=unique,
        job_id=None if stream else options.job_id or uuid.uuid4().hex,
        is_done=bool(done),
    )


def check_columns(table: OpenTable, options: WriteOptions, columns: pa.Schema, fields: FieldMap) -> None:
    """Raises InvalidInput, naming every column at once, where rows with these columns cannot be the table's."""
    check_one_field_each(columns.names, fields, table.address)
    match_columns(
        taken_schema(columns, table.schema, fields),
        table.schema,
        where=table.address,
        text=False,
        ignore_extra=options.ignore_extra,
        fields=fields,
    )
    if not options.missing_as_null and (absent := _absent(table.schema, columns.names, fields)):
        named = missing(absent, table.schema, table.address)
        what = named.what.replace("no file and no folder has", "the DataFrame does not have")
        raise InvalidInput(what, where=named.where, remedy=named.remedy.replace("the files", "the DataFrame"))


def _absent(table: pa.Schema, names: Sequence[str], fields: FieldMap) -> tuple[str, ...]:
    named = {fields.column_of(name) for name in names}
    return tuple(each.name for each in table if each.name not in named and may_be_missing(each) is None)


def of_batch(plan: WritePlan, query: str, batch: int) -> WritePlan:
    """Returns the plan of one batch of a stream."""
    stream = hashlib.sha256(f"{plan.table_id}/{query}".encode()).hexdigest()[:32]
    return replace(plan, scope=f"{stream}-{batch}")
