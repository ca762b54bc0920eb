"""The tasks of a part of a merge, which has some rows of the source. They commit nothing.

A task has all data that a process needs to run it, so that it runs in the same way in Spark and in this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from deployer.datasets.files.row_ids import ROW_ID
from deployer.datasets.files.writer import Layout, WrittenFragment, discard
from deployer.errors import DeployerError
from deployer.platform.system.failpoints import reached
from deployer.tables.conversion.nulls import with_type
from deployer.tables.layout.partitions.key_ranges import Ranges
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.candidates import KeySpans, keys_in, spans_of
from deployer.tables.rows.changed_inputs import compared_inputs, computed_again
from deployer.tables.rows.matching import rows_at
from deployer.tables.rows.merging.rules import MergeRules
from deployer.tables.rows.merging.source_matches import Matches, matched
from deployer.tables.rows.merging.source_parts import StoredRows
from deployer.tables.rows.new_rows import leaf_ranges, write_rows
from deployer.tables.rows.source import MergeSource, RepeatedKeys, checked_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

UPDATED_AT_ONCE = 65_536  #: number of matched rows that get their new values at once


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """The data about the table that a process needs to run a task. It is small enough to be sent."""

    address: str
    layout: Layout
    kinds: tuple[str, ...]
    ranges: Ranges
    schema: pa.Schema
    version: int

    @staticmethod
    def of(table: OpenTable, dataset: LanceDataset) -> MergeTarget:
        kinds, ranges = table.kinds, leaf_ranges(table)
        return MergeTarget(table.address, table.layout(), kinds, ranges, table.schema, int(dataset.version))

    @property
    def row_keys(self) -> tuple[str, ...]:
        return self.layout.row_keys

    @property
    def root(self) -> str:
        return self.layout.root


@dataclass
class MergePart:
    """Some rows of the source. Rows in memory are checked only once for all tasks of this process."""

    target: MergeTarget
    on: tuple[str, ...]
    given: Any  #: StoredRows, or an Arrow table or batch
    _source: MergeSource | None = field(default=None, repr=False)

    def __getstate__(self) -> Mapping[str, Any]:
        return {**self.__dict__, "_source": None}

    @property
    def rows(self) -> int:
        return self.given.rows if isinstance(self.given, StoredRows) else int(self.given.num_rows)

    def source(self) -> MergeSource:
        """Returns the checked rows. Raises as `MergeSource.of` does."""
        if isinstance(self.given, StoredRows):
            return MergeSource.of(pa.Table.from_batches(self.given.batches()), self.on, self.target)
        if self._source is None:
            self._source = MergeSource.of(self.given, self.on, self.target)
        return self._source


@dataclass(frozen=True, slots=True)
class CheckTask:
    """A task that checks the rows of a part, without reading the table."""

    part: MergePart

    @property
    def location(self) -> str:
        return self.part.target.layout.location

    @property
    def version(self) -> int:
        return self.part.target.version

    @property
    def rows(self) -> int:
        return self.part.rows

    def done(self, dataset: LanceDataset) -> CheckDone:
        target = self.part.target
        try:
            source = self.part.source()
        except DeployerError as error:
            return CheckDone(error=error)
        if source.repeated.count or not len(source.keyed):
            return CheckDone(source.repeated)
        spans = spans_of(keys_in(source), target.schema, target.row_keys, target.kinds, target.ranges)
        return CheckDone(source.repeated, spans)


@dataclass(frozen=True, slots=True)
class CheckDone:
    """The result of a CheckTask: the keys that are in several rows and the ranges of keys that can match, or the error
    with which it ended."""

    repeated: RepeatedKeys = RepeatedKeys()
    spans: KeySpans = KeySpans(())
    written: tuple[WrittenFragment, ...] = ()  #: always empty
    error: DeployerError | None = None


@dataclass(frozen=True, slots=True)
class MergeTask:
    """A task that matches the rows of a part with those of some fragments, and writes the new values of matched rows.

    `inserts`: it also writes the source rows that do not match a row in this task or, according to the bits of `found`,
    in other tasks. A dry run writes nothing. `rows` is the number of rows that the task scans.
    """

    part: MergePart
    rules: MergeRules
    fragment_ids: tuple[int, ...]
    rows: int
    inserts: bool = True
    dry_run: bool = False
    found: bytes | None = None

    @property
    def location(self) -> str:
        return self.part.target.layout.location

    @property
    def version(self) -> int:
        return self.part.target.version

    def done(self, dataset: LanceDataset) -> MergeDone:
        try:
            source = self.part.source()
            matches = matched(self.location, dataset, source, self.fragment_ids)
            return _Work(self, dataset, source, matches).done()
        except DeployerError as error:
            return MergeDone(error=error)


@dataclass(frozen=True, slots=True)
class MergeDone:
    """The result of a MergeTask: the addresses of matched rows, the number of rows to insert by partition, and the
    written fragments; or the error with which it ended. After an error, no written files are left.

    `found` has one bit for each row of the part, which is set if the row matches a row of the table.
    """

    addresses: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    inserted: Mapping[str, int] = field(default_factory=dict)
    written: tuple[WrittenFragment, ...] = ()
    found: bytes = b""
    error: DeployerError | None = None


@dataclass(frozen=True)
class _Work:
    """The work of a MergeTask after the matching rows are known."""

    task: MergeTask
    dataset: LanceDataset
    source: MergeSource
    matches: Matches

    @property
    def _target(self) -> MergeTarget:
        return self.task.part.target

    def done(self) -> MergeDone:
        found = np.packbits(self._there).tobytes()
        result = MergeDone(self.matches.addresses, self._inserted_rows(), found=found)
        if self.task.dry_run:
            return result
        written = list[WrittenFragment]()
        try:
            for group in self._written_together():
                written += write_rows(self._target.layout, self._target.ranges, self.dataset, group)
        except BaseException:
            discard(self.task.location, written)
            raise
        reached("tables.merge.part-written")
        return replace(result, written=tuple(written))

    def _written_together(self) -> list[Iterator[pa.RecordBatch]]:
        """Returns groups of rows that may share a fragment: rows that keep their row ids are separate from new rows."""
        updated, inserted = self._updated(), self._new()
        return [updated, inserted] if self.dataset.has_stable_row_ids else [_chained(updated, inserted)]

    @cached_property
    def _there(self) -> NDArray[np.bool_]:
        """For each row of the source, whether it matches a row of the table in this task or in other tasks."""
        rows = self.source.given.num_rows
        there = np.zeros(rows, np.bool_)
        if self.task.found is not None:
            there = np.unpackbits(np.frombuffer(self.task.found, np.uint8), count=rows).astype(np.bool_)
        there[self.matches.places] = True
        return there

    @cached_property
    def _inserted(self) -> pa.RecordBatch | None:
        """The rows of the source whose key the table does not have, with all columns; None if there are none to
        insert."""
        if self.task.rules.when_not_matched == "ignore" or not self.task.inserts:
            return None
        places = np.flatnonzero(~self._there)
        return self.source.full_rows(places, self._target) if len(places) else None

    def _new(self) -> Iterator[pa.RecordBatch]:
        if self._inserted is not None:
            yield self._inserted

    def _inserted_rows(self) -> dict[str, int]:
        if (inserted := self._inserted) is None:
            return {}
        ranges, keys = self._target.ranges, self._target.row_keys
        splitter = ranges.splitter(self._target.schema, keys)
        numbers = splitter.ranges([inserted.column(name) for name in keys], inserted.num_rows)
        found = zip(*np.unique(numbers, return_counts=True), strict=True)
        return {ranges.partitions[int(number)]: int(n) for number, n in found}

    def _updated(self) -> Iterator[pa.RecordBatch]:
        """Yields the matched rows with the source's values, and with their row ids if the dataset has stable ones."""
        if self.task.rules.when_matched != "update":
            return
        names, given = self._target.schema.names, self.source.given
        kept = [name for name in names if name not in given.schema.names]
        changed = frozenset(given.schema.names).difference(self.task.part.on)
        inputs = compared_inputs(self._target.schema, changed)
        for start in range(0, len(self.matches.addresses), UPDATED_AT_ONCE):
            part = self.matches.part(start, start + UPDATED_AT_ONCE)
            values = given.take(pa.array(part.places))
            columns = dict(zip(given.schema.names, values.columns, strict=True))
            before = self._former_values(part, [*kept, *inputs]) if kept or inputs else None
            if before is not None:
                columns |= {name: before.column(name) for name in kept}
            rows = pa.RecordBatch.from_arrays([columns[name] for name in names], schema=self._target.schema)
            if before is not None and inputs:
                rows = computed_again(rows, before, changed, self._computed)
            yield rows.append_column(ROW_ID, pa.array(part.ids)) if self.dataset.has_stable_row_ids else rows

    def _computed(self, rows: pa.RecordBatch, _: NDArray[np.int64], changed: frozenset[str]) -> pa.RecordBatch:
        return checked_rows(rows, self._target.schema, self._target.row_keys, self._target, changed)

    def _former_values(self, matches: Matches, names: Sequence[str]) -> pa.RecordBatch:
        """Returns the table's values of these columns, in the order of the matches."""
        order = np.argsort(matches.addresses, kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        found = rows_at((self.task.location, self._target.address), self.dataset, matches.addresses[order], names)
        schema = pa.schema([self._target.schema.field(name) for name in names])
        rows = pa.Table.from_batches(found).select(list(names)).take(pa.array(places)).combine_chunks()
        columns = [with_type(column.chunk(0), field) for field, column in zip(schema, rows.columns, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _chained(*several: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for each in several:
        yield from each
