"""A reference to a table for other processes, which open the table and its system tables with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from deployer.columns.backfill.failed_rows import ErrorRecord, errors_of, jobs_with_errors
from deployer.columns.fill.checkpoints import Checkpoint, JobFolder
from deployer.columns.job_list import Job, jobs_of
from deployer.datasets.storage.job_folders import job_files
from deployer.datasets.storage.options import storage_options
from deployer.errors import InvalidInput, NotFound
from deployer.platform.isolation.trusted_functions import NONE_TRUSTED, TrustedFunctions
from deployer.state import open_reader, open_store
from deployer.state.reader import StateReader
from deployer.table.connection import Connection
from deployer.table.table import Table
from deployer.tables.open_table import open_entry

if TYPE_CHECKING:
    from deployer.state.model.entities import TableEntry

SYSTEM_TABLES = ("jobs", "errors")  #: the records about a table that can be read as tables


@dataclass(frozen=True, slots=True)
class TableReference:
    """A reference to a table of the instance at `root`, by its id, which a rename does not change. It can be pickled.

    `trusted` has the functions that may run where the table is opened. `system_table` is one of `SYSTEM_TABLES`, for
    records about the table, or empty, for the table itself. The reference has no credentials: each process uses its
    own.
    """

    root: str
    table_id: str
    trusted: TrustedFunctions = NONE_TRUSTED
    system_table: str = ""

    @staticmethod
    def of(table: Table) -> TableReference:
        """Returns the reference to an open table, with the functions that the table trusts."""
        return TableReference(table._opened.root, table._opened.entry.table_id, table._trusted)

    @property
    def storage_options(self) -> dict[str, str] | None:
        """The options with which Lance accesses the dataset from this process; None where it needs none."""
        return storage_options(self.root)

    @property
    def namespace_client_properties(self) -> Mapping[str, str]:
        """The properties of a client that finds tables by name: the root, whose state has the names."""
        return {"root": self.root}

    @property
    def namespace_client_pushdown_operations(self) -> tuple[str, ...]:
        """The operations that a namespace server runs for its clients: none, since there is no server."""
        return ()

    def as_system_table(self, table_name: str) -> TableReference:
        """Returns the reference to a system table of the same table: `jobs` or `errors`.

        Raises InvalidInput for another name.
        """
        if table_name not in SYSTEM_TABLES:
            raise InvalidInput(
                f"{table_name!r} is not recorded beside a table", remedy=f"use {' or '.join(SYSTEM_TABLES)}"
            )
        return replace(self, system_table=table_name)

    @contextmanager
    def open_table(self) -> Iterator[Table]:
        """Yields the table, with its own connection. Raises NotFound where the table no longer exists, and InvalidInput
        for a reference to a system table; `to_arrow` reads those."""
        if self.system_table:
            raise InvalidInput(
                f"{self.system_table} of a table is read only", remedy="read it by to_arrow() of the reference"
            )
        with closing(open_store(self.root)) as store:
            yield Table(open_entry(store, self.root, self._entry(store)), self.trusted)

    def to_arrow(self) -> pa.Table:
        """Returns the rows of the table, or of the system table: one row for each job, or for each row that failed."""
        if not self.system_table:
            with self.open_table() as table:
                return table.to_arrow()
        with closing(open_reader(self.root)) as store:
            entry = self._entry(store)
            found = jobs_of(entry, store.table(entry.table_id))
        if self.system_table == "jobs":
            return _rows(Job, [asdict(each) for each in found])
        jobs = jobs_with_errors(self.root, self.table_id)
        records = [each for job in jobs for each in errors_of(self.root, self.table_id, job).records]
        shown = [{**asdict(each), "row_key": json.dumps(each.row_key, ensure_ascii=False)} for each in records]
        return _rows(ErrorRecord, shown)

    def open_checkpoint_store(self) -> CheckpointStore:
        """Returns the checkpoints of the jobs that write columns of the table."""
        return CheckpointStore(self.root, self.table_id)

    def open_db(self) -> Connection:
        """Returns a connection to the instance. Reads are strongly consistent: each call of a table that it opens sees
        the newest version."""
        return Connection(self.root, open_store(self.root), self.trusted)

    async def open_db_async(self) -> Connection:
        """Returns what `open_db` returns, without blocking the event loop."""
        return await asyncio.to_thread(self.open_db)

    async def open_system_db_async(self) -> Connection:
        """Returns what `open_db_async` returns, since the instance also has the system tables."""
        return await self.open_db_async()

    def _entry(self, store: StateReader) -> TableEntry:
        entry = store.instance().tables.get(self.table_id)
        if entry is None or entry.status != "active":
            raise NotFound("the table of the reference is gone", where=self.root, remedy="open another table by name")
        return entry


@dataclass(frozen=True, slots=True)
class CheckpointStore:
    """The checkpoints of jobs on a table; a completed job has none."""

    root: str
    table_id: str

    def jobs(self) -> list[str]:
        """Returns the ids of the jobs that have checkpoints, in alphabetical order."""
        return sorted(job_files(self.root, self.table_id))

    def fragments(self, job_id: str) -> dict[int, Checkpoint]:
        """Returns the checkpoints of the fragments for which the job has written files, by fragment id."""
        return JobFolder(self.root, self.table_id, job_id).saved()

    def rows(self, job_id: str) -> dict[int, list[range]]:
        """Returns the rows whose values the job has saved, by fragment id, for fragments that have no such file yet."""
        return JobFolder(self.root, self.table_id, job_id).saved_parts()


def _rows(kind: type[Job] | type[ErrorRecord], documents: Sequence[Mapping[str, object]]) -> pa.Table:
    names = [each.name for each in fields(kind)]
    return pa.table({name: pa.array([each[name] for each in documents]) for name in names})
