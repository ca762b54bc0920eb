"""Adds many small batches of rows to one table: the Python API for writers with rows in memory."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from deployer.datasets.commit.done_jobs import find_job
from deployer.datasets.files.writer import Layout, WrittenFragment, discard, write_stream
from deployer.datasets.ordering.sort_order import Splitter
from deployer.errors import CommitTimedOut, Conflict, InvalidInput, KeysTaken, NotFound
from deployer.live.reader import has_unique_keys
from deployer.state.model.entities import Job
from deployer.tables.ingest.commit.append import AppendResult, commit_append
from deployer.tables.ingest.driver import FlushedRows, Held, hold
from deployer.tables.ingest.keys.unique import Admission, TakenKeys, UniqueLoad, refuse_duplicates, with_places
from deployer.tables.ingest.rows.bad_rows import BadRows, refusal
from deployer.tables.ingest.rows.check import SourceRows, check, match_columns
from deployer.tables.ingest.rows.computed_values import Computing
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.open_table import OpenTable, open_to_change

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

LISTED = 20  #: how many bad rows an error lists
ATTEMPTS = 10  #: how often rows are compared again because others added rows with the same keys meanwhile


Appendable = Any  #: the types that `as_arrow` takes


def as_arrow(rows: Appendable, where: str) -> pa.Table | pa.RecordBatch:
    """Returns rows of a DataFrame (pandas, polars) or a list of dicts as an Arrow table; Arrow's own types are returned
    unchanged.

    The index of a pandas DataFrame is left out. Raises InvalidInput for anything else, and for values without a type.
    """
    if isinstance(rows, pa.Table | pa.RecordBatch):
        return rows
    try:
        if hasattr(rows, "iloc") and hasattr(rows, "columns"):
            return pa.Table.from_pandas(rows, preserve_index=False)
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
        if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
            names = dict.fromkeys(name for row in rows for name in row)
            return pa.table({str(name): pa.array([row.get(name) for row in rows]) for name in names})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as failure:
        raise InvalidInput(
            f"the rows cannot be made an Arrow table: {str(failure).splitlines()[0]}",
            where=where,
            remedy="give each column values of one type, or a pyarrow.Table",
        ) from None
    raise InvalidInput(
        f"{type(rows).__name__} is not a kind of rows that can be appended",
        where=where,
        remedy="give a pyarrow.Table or RecordBatch, a pandas or polars DataFrame, or a list of dicts",
    )


@dataclass(frozen=True, slots=True)
class _Target:
    """The table that rows are written to, and values derived from its state."""

    opened: OpenTable
    layout: Layout
    ranges: Ranges
    splitter: Splitter

    @staticmethod
    def of(opened: OpenTable) -> _Target:
        layout = opened.layout()
        ranges = Ranges(tuple(opened.splits), tuple(leaf.partition_id for leaf in opened.state.leaves()))
        return _Target(opened, layout, ranges, ranges.splitter(layout.arrow_schema, layout.row_keys))


class Appender:
    """A writer of one table. Keeps the dataset open between appends, which read nothing while no other process writes.

    It is not safe for several threads at once; processes have one each.
    """

    def __init__(self, opened: OpenTable) -> None:
        self._target = _Target.of(opened)
        self._dataset: LanceDataset | None = None

    def append(
        self, rows: Appendable, job_id: str | None = None, on_duplicate: Literal["reject", "skip"] = "reject"
    ) -> AppendResult:
        """Adds all rows as one version, or none. For a `job_id` that was committed before, nothing is added.

        Where the table's row keys are unique, `on_duplicate="skip"` leaves out rows with existing keys.

        `rows` are an Arrow table or batch, a DataFrame of pandas or polars, or a list of dicts.

        Columns are matched by name and cast where no value changes; missing columns take their default, otherwise null.
        Raises Refused for rows that do not fit or have existing keys, InvalidInput for columns that do not fit and for
        rows of other kinds; Conflict when the table was changed meanwhile: `refresh` and append again.
        """
        self._target.opened.refuse_view()
        table = as_arrow(rows, self._target.opened.address)
        if not has_unique_keys(self._target.opened.state):
            return self._appended(self._opened(), table, job_id or uuid.uuid4().hex, None)
        for _ in range(ATTEMPTS):
            self.refresh()  # rows are compared with the newest
            dataset = self._opened()
            opened = self._target.opened
            if job_id and (job := find_job(opened.store, opened.root, opened.entry.table_id, job_id)):
                return AppendResult(job, already_done=True)
            unique = UniqueLoad(TakenKeys.of(opened), on_duplicate) if has_unique_keys(opened.state) else None
            with contextlib.suppress(KeysTaken):
                return self._appended(dataset, table, job_id or uuid.uuid4().hex, unique)
        raise CommitTimedOut("other processes keep adding rows with the same keys", where=self._target.opened.address)

    def _opened(self) -> LanceDataset:
        """Returns the dataset at the version of the state, which is read again when others committed and removed that
        version."""
        for _ in range(ATTEMPTS):
            try:
                return self._dataset or self._target.opened.dataset()
            except NotFound:
                before = self._target.opened.state.version
                self.refresh()
                if self._target.opened.state.version == before:
                    raise
        raise CommitTimedOut(
            "other processes commit and clean faster than the table can be opened", where=self._target.opened.address
        )

    def _appended(
        self, dataset: LanceDataset, rows: pa.Table | pa.RecordBatch, job_id: str, unique: UniqueLoad | None
    ) -> AppendResult:
        opened = self._target.opened
        written, skipped = self._written(dataset, rows, unique)
        if not written:
            none = Job(job_id, "append", 0, int(dataset.version), 0)
            return AppendResult(none, already_done=False, dataset=dataset, skipped=skipped)
        try:
            done = commit_append(
                opened.store,
                opened.root,
                opened.entry,
                job_id,
                "append",
                written,
                opened.state.schema,
                dataset,
                admission=None if unique is None else Admission(unique.taken, self._target.layout, written),
            )
        except Conflict:
            self._dataset = None
            discard(opened.location, written)
            raise
        if done.already_done:
            discard(opened.location, written)
        self._dataset = done.dataset or dataset
        return replace(done, skipped=0 if done.already_done else skipped)

    def refresh(self) -> None:
        """Reads the table again: its columns, keys and leaves."""
        self._target, self._dataset = _Target.of(self._target.opened.refreshed()), None

    def close(self) -> None:
        self._target.opened.store.close()

    def _written(
        self, dataset: LanceDataset, rows: pa.Table | pa.RecordBatch, unique: UniqueLoad | None
    ) -> tuple[list[WrittenFragment], int]:
        """Writes the rows as uncommitted fragments, separately for each leaf; returns them and the number of duplicates
        that were left out."""
        layout, ranges, splitter = self._target.layout, self._target.ranges, self._target.splitter
        opened = self._target.opened
        checked = [*self._checked(opened, rows)]
        if not layout.order:
            return write_stream(layout, checked, ranges.partitions[0], dataset), 0
        held: Held = {}
        first = 1
        for batch in checked:
            if unique is not None:
                batch = with_places(batch, 0, np.arange(first, first + batch.num_rows))
                first += batch.num_rows
            hold(batch, layout, splitter, held)
        flushed = FlushedRows(layout, ranges, unique, dataset)
        flushed.flush(held)
        if flushed.duplicates.rows and unique is not None and unique.on_duplicate == "reject":
            discard(opened.location, flushed.written)
            remedy = 'leave these rows out, or give on_duplicate="skip"'
            raise refuse_duplicates(flushed.duplicates, first - 1, opened.address, remedy)
        return flushed.written, flushed.duplicates.rows

    def _checked(self, opened: OpenTable, rows: pa.Table | pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        match_columns(rows.schema, opened.schema, where=opened.address, text=False, ignore_extra=False)
        keys, first = opened.row_keys, 1
        batches: Iterable[pa.RecordBatch] = rows.to_batches() if isinstance(rows, pa.Table) else [rows]
        bad, computing = BadRows(), Computing(opened.root)
        found: list[pa.RecordBatch] = []
        for batch in batches:
            numbers = np.arange(first, first + batch.num_rows)
            first += batch.num_rows
            checked = check(
                SourceRows(batch, numbers), opened.schema, keys, text=False, listed=LISTED, computing=computing
            )
            bad = bad.joined(checked.bad)
            found.append(checked.rows)
        if bad.rows:
            raise refusal({"the rows": bad.first(LISTED)}, opened.address)
        yield from found


def open_appender(root: str, name: str) -> Appender:
    """Returns a writer of the table `database.name` of the instance at `root`. Raises NotFound with the nearest
    name."""
    return Appender(open_to_change(root, name))
