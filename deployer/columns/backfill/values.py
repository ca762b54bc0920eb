"""Computes the values of a backfill: chosen rows get the values of the definition, and other rows keep theirs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.columns.backfill.blobs import BlobInputs
from deployer.columns.backfill.definition import Definition, RowCaller
from deployer.columns.backfill.error_share import ErrorShare
from deployer.columns.backfill.failed_rows import FailedRows
from deployer.columns.backfill.selection import ALL
from deployer.columns.fill.live_rows import LiveRows, live_rows, offsets_in
from deployer.columns.fill.work import FragmentWork
from deployer.errors import FunctionFailed
from deployer.platform.system.failpoints import reached
from deployer.specs.types.arrow import arrow_field
from deployer.tables.rows.matching import ADDRESS

if TYPE_CHECKING:
    from deployer.columns.fill.live_rows import Offsets
    from deployer.datasets.lance_types import LanceDataset

READ_BYTES = 16_000_000  #: bytes of inputs that are read at a time
READ_ROWS = 65_536  #: most rows that are read at a time
KEPT_ROWS = 65_536  #: most rows with unchanged values that are yielded at a time

Size = Callable[[], int]


class ComputedValues:
    """The values of a backfill (see `fill.work.ValuesSource` and `ColumnValues`). `conditions` has the condition of
    each fragment to compute (see `selection`).

    The object can be pickled. Each process that works on fragments has its own callers, which all tasks of the job in
    that process share.
    """

    def __init__(self, definition: Definition, failed: FailedRows, blobs: BlobInputs, share: ErrorShare) -> None:
        self._inputs = definition.inputs
        self._definition, self._failed, self._blobs, self._share = definition, failed, blobs, share
        self.conditions: Mapping[int, str] = {}
        self._schema = pa.schema([arrow_field(each).with_nullable(True).remove_metadata() for each in self._columns])
        self._callers = _Callers(definition)  # in another process, `__setstate__` sets the callers

    @property
    def _columns(self) -> Sequence[Any]:
        return self._definition.columns

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_callers": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._callers = _callers_of((self._failed.root, self._failed.table_id, self._failed.job_id), self._definition)

    def prepare(self, dataset: LanceDataset, works: Sequence[FragmentWork]) -> None:
        """Checks the blobs and the share of failed rows. Raises InvalidInput for blobs that cannot be read, and
        FunctionFailed for a job of which too many rows failed."""
        self._blobs.check(dataset)
        self._share.require()

    def close(self) -> None:
        """Closes the callers of the definition in this process."""
        self._callers.close()

    def of_fragment(
        self, dataset: LanceDataset, work: FragmentWork, rows: range, size: Size
    ) -> Iterator[pa.RecordBatch]:
        """Yields the values of the physical rows `rows` of a fragment; null for deleted rows."""
        with self._callers.one() as caller:
            yield from self._of_fragment(caller, dataset, work, rows, size)
        self._share.settle()

    def _of_fragment(
        self, caller: RowCaller, dataset: LanceDataset, work: FragmentWork, rows: range, size: Size
    ) -> Iterator[pa.RecordBatch]:
        condition = self.conditions[work.fragment_id]
        before: LiveRows | None = None
        if condition != ALL and any(work.outputs):
            before = live_rows(dataset, work.fragment_id, self._schema, KEPT_ROWS)
        cursor = rows.start
        for offsets, inputs in self._chosen(dataset, work, condition, rows):
            start = 0
            while start < len(offsets):
                # Each batch has at most `size` rows to compute, and the rows between them that keep their values.
                stop = min(start + max(1, size()), len(offsets))
                values = self._computed(caller, dataset, work, offsets[start:stop], inputs.slice(start, stop - start))
                upto = int(offsets[stop - 1]) + 1
                yield from self._merged(before, cursor, upto, offsets[start:stop], values)
                cursor, start = upto, stop
        yield from self._merged(before, cursor, rows.stop, np.empty(0, np.int64), None)

    def _chosen(
        self, dataset: LanceDataset, work: FragmentWork, condition: str, rows: range
    ) -> Iterator[tuple[Offsets, pa.RecordBatch]]:
        """Yields the rows to compute: their offsets in the fragment, and their inputs."""
        fragment = dataset.get_fragment(work.fragment_id)
        metadata = fragment.metadata
        window: dict[str, Any] = {}
        if condition == ALL and not metadata.num_deletions and len(rows) < work.physical_rows:
            window = {"offset": rows.start, "limit": len(rows)}
        scanner = dataset.scanner(
            columns=self._blobs.scanned(self._inputs),
            filter=condition or None,
            fragments=[fragment],
            scan_in_order=True,
            with_row_address=True,
            batch_size=_rows_at_once(metadata, len(self._inputs)),
            batch_readahead=2,
            **self._blobs.handling,
            **window,
        )
        for batch in scanner.to_batches():
            offsets = offsets_in(batch.column(ADDRESS))
            first, last = np.searchsorted(offsets, [rows.start, rows.stop]).tolist()
            if first < last:
                yield from self._blobs.joined(
                    dataset, offsets[first:last], batch.slice(first, last - first), self._inputs, work.fragment_id
                )
            if last < len(offsets):
                return

    def _computed(
        self, caller: RowCaller, dataset: LanceDataset, work: FragmentWork, offsets: Offsets, inputs: pa.RecordBatch
    ) -> pa.RecordBatch:
        self._share.require_below()
        reached("columns.backfill.before-call")
        try:
            made = caller(inputs)
        except FunctionFailed as failure:
            if 0 <= failure.row < len(offsets):
                raise self._failed.named(dataset, work.fragment_id, int(offsets[failure.row]), failure) from failure
            raise
        if made.failures:
            self._failed.record(dataset, work.fragment_id, offsets, made.failures)
        self._share.count(len(offsets), len(made.failures))
        reached("columns.backfill.after-call")
        return made.values

    def _merged(
        self, before: LiveRows | None, start: int, stop: int, offsets: Offsets, values: pa.RecordBatch | None
    ) -> Iterator[pa.RecordBatch]:
        """Yields the physical rows from `start` to `stop`: the rows at `offsets` have the new values, and other rows
        the values of `before`."""
        if values is not None and len(offsets) == stop - start:
            yield values
            return
        while start < stop:
            until = min(stop, start + KEPT_ROWS)
            first, last = np.searchsorted(offsets, [start, until]).tolist()
            yield self._piece(before, start, until, offsets[first:last], values, first)
            start = until

    def _piece(
        self,
        before: LiveRows | None,
        start: int,
        stop: int,
        offsets: Offsets,
        values: pa.RecordBatch | None,
        first: int,
    ) -> pa.RecordBatch:
        places = np.full(stop - start, -1, np.int64)
        parts = list[pa.Table]()
        if before is not None:
            kept, old = before.between(start, stop)
            places[kept] = np.arange(len(kept))
            parts.append(old)
        held = sum(part.num_rows for part in parts)
        if values is not None and len(offsets):
            places[offsets - start] = np.arange(held, held + len(offsets))
            parts.append(pa.Table.from_batches([values.slice(first, len(offsets))]))
        if not parts:
            return pa.RecordBatch.from_arrays(
                [pa.nulls(stop - start, field.type) for field in self._schema], schema=self._schema
            )
        chosen = pa.array(places, mask=places < 0)
        return _one_batch(pa.concat_tables(parts).combine_chunks(), chosen, self._schema)


class _Callers:
    """A pool of callers. Each fragment uses one caller exclusively, also where several threads read its values."""

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._free: list[RowCaller] = []
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[RowCaller]:
        with self._lock:
            caller = self._free.pop() if self._free else None
        caller = caller or self._definition.caller()
        try:
            yield caller
        finally:
            with self._lock:
                self._free.append(caller)

    def close(self) -> None:
        with self._lock:
            callers, self._free = self._free, []
        for each in callers:
            each.close()


_in_process: dict[
    tuple[str, str, str], _Callers
] = {}  #: the callers of the last job on whose tasks this process worked
_in_process_lock = threading.Lock()


def _callers_of(job: tuple[str, str, str], definition: Definition) -> _Callers:
    """Returns the callers that all tasks of a job share in this process, so that the setup of a function runs once."""
    with _in_process_lock:
        if (found := _in_process.get(job)) is not None:
            return found
        others = list(_in_process.values())
        _in_process.clear()
        made = _in_process[job] = _Callers(definition)
    for each in others:
        each.close()
    return made


def _rows_at_once(metadata: Any, columns: int) -> int:
    """Returns the number of rows of a batch, from the average size of a row in the fragment's files."""
    size = sum(file.file_size_bytes or 0 for file in metadata.files)
    fields = sum(len(file.fields) for file in metadata.files)
    row = size / max(1, metadata.physical_rows) * min(1.0, (columns + 1) / max(1, fields))
    return int(max(64, min(READ_ROWS, READ_BYTES / max(row, 1.0))))


def _one_batch(rows: pa.Table, places: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for name in schema.names:
        column = rows.column(name)
        values = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
        columns.append(pc.take(values, places))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
