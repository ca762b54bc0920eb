"""Merges rows into a table: rows with a key that the table has update or delete, the others are inserted.

Only the columns that rows are matched by are read of the fragments whose ranges can hold a key of the source; other
columns are read of the matched rows alone, and only where the source does not give them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deployer.datasets.errors import as_deployer_error, is_of_lance
from deployer.datasets.files.row_ids import ROW_ID
from deployer.datasets.files.writer import WrittenFragment, discard
from deployer.errors import DeployerError, InvalidInput
from deployer.live.reader import has_unique_keys
from deployer.platform.system.progress import OnProgress, Progress, no_progress
from deployer.state.model.entities import RowCounts
from deployer.tables.conversion.nulls import with_type
from deployer.tables.open_table import OpenTable
from deployer.tables.rows.candidates import candidate_fragments
from deployer.tables.rows.change import FragmentCounts, RowChange, RowPlan, leaf_changes, total
from deployer.tables.rows.commit import RowJob
from deployer.tables.rows.holds import refuse_held_addresses
from deployer.tables.rows.matching import ADDRESS, Deletions, matching_rows, offsets_of, rows_at, rows_by_partition
from deployer.tables.rows.new_rows import among, leaf_ranges, refuse_taken_keys, write_rows
from deployer.tables.rows.source import MergeSource

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deployer.datasets.lance_types import LanceDataset

READ_ROWS = 131_072  #: keys that are looked up at once
WhenMatched = Literal["update", "delete", "ignore"]
WhenNotMatched = Literal["insert", "ignore"]
WhenNotMatchedBySource = Literal["keep", "delete"]


@dataclass(frozen=True, slots=True)
class MergeRules:
    """What becomes of rows of the source whose key the table has, of those whose key it does not have, and of rows of
    the table whose key the source does not have: of these only those for which `where` is true are deleted."""

    when_matched: WhenMatched = "update"
    when_not_matched: WhenNotMatched = "insert"
    when_not_matched_by_source: WhenNotMatchedBySource = "keep"
    where: str | None = None

    def check(self, address: str) -> None:
        """Raises InvalidInput for values that are not among those there are."""
        for name, kinds in (
            ("when_matched", WhenMatched),
            ("when_not_matched", WhenNotMatched),
            ("when_not_matched_by_source", WhenNotMatchedBySource),
        ):
            if (given := getattr(self, name)) not in get_args(kinds):
                known = ", ".join(map(repr, get_args(kinds)))
                raise InvalidInput(f"`{name}` is {given!r}", where=address, remedy=f"give one of {known}")
        if self.where is not None and self.when_not_matched_by_source == "keep":
            raise InvalidInput(
                "a condition limits which rows are deleted that the source does not have, and none are",
                where=address,
                remedy='give when_not_matched_by_source="delete" with it',
            )


def merge_rows(
    table: OpenTable,
    rows: Any,
    on: Sequence[str] | str | None = None,
    rules: MergeRules = MergeRules(),
    *,
    job_id: str | None = None,
    kind: str = "merge",
    dry_run: bool = False,
    allow_destroy: bool = False,
    sources: str = "",
    on_progress: OnProgress = no_progress,
) -> RowChange:
    """Merges rows by the columns `on` (the row keys unless given), as one version.

    `rows` are an Arrow table or batch, a DataFrame of pandas or polars, or a list of dicts. A column that they do not
    have keeps its value in rows that are updated, and takes its default, else null, in rows that are inserted. A key
    with a null matches no row. Several rows of the table may have one key: all of them are updated.

    Raises Refused, with examples, where two of the rows have one key, for values that do not fit, and for unique keys
    that another row has; InvalidInput for columns that cannot be used; else as `delete_rows`.
    """
    rules.check(table.address)
    files = Deletions(table.location)

    def plan(now: OpenTable, dataset: LanceDataset) -> RowPlan:
        source = MergeSource.of(rows, on, now)
        on_progress(Progress("matching", 0, source.given.num_rows))
        matches = _matched(now, dataset, source)
        work = _Merge(now, dataset, source, rules, matches)
        if dry_run:
            return work.foreseen()
        return work.plan(files, on_progress)

    return RowJob(kind, plan, files, job_id, dry_run, allow_destroy, sources).run(table)


@dataclass(frozen=True, slots=True)
class _Matches:
    """Rows of the table that have a key of the source: their addresses and row ids, and the place of each one's row in
    the source."""

    addresses: NDArray[np.uint64]
    ids: NDArray[np.uint64]
    places: NDArray[np.int64]


def _matched(table: OpenTable, dataset: LanceDataset, source: MergeSource) -> _Matches:
    """Reads the columns of the keys in the fragments that can hold one."""
    fragments = candidate_fragments(table, dataset, source)
    none = np.zeros(0, np.uint64)
    if not fragments or not len(source.keyed):
        return _Matches(none, none, np.zeros(0, np.int64))
    names, stable = list(source.on), bool(dataset.has_stable_row_ids)
    of_code = source.keyed[source.keys.first_rows()]
    addresses, ids, places = [], [], []
    try:
        scanner = dataset.scanner(
            columns=names, fragments=fragments, with_row_address=True, with_row_id=stable, batch_size=READ_ROWS
        )
        for batch in scanner.to_batches():
            codes, hits = _hits(source, batch.select(names))
            if not len(codes):
                continue
            own = np.asarray(batch.column(ADDRESS))[hits]
            addresses.append(own)
            ids.append(np.asarray(batch.column(ROW_ID))[hits] if stable else own)
            places.append(of_code[codes])
    except DeployerError:
        raise
    except BaseException as failure:
        if not is_of_lance(failure):
            raise
        raise as_deployer_error(failure, table.location) from failure
    if not addresses:
        return _Matches(none, none, np.zeros(0, np.int64))
    return _Matches(np.concatenate(addresses), np.concatenate(ids), np.concatenate(places))


def _hits(source: MergeSource, keys: pa.RecordBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the numbers of the keys that the source has, and the places of these keys; a null is in none."""
    if not any(column.null_count for column in keys.columns):
        return source.keys.matches(keys.columns)
    there = np.ones(keys.num_rows, np.bool_)
    for column in keys.columns:
        there &= np.asarray(pc.is_valid(column))
    rows = np.flatnonzero(there)
    codes, hits = source.keys.matches(keys.take(pa.array(rows)).columns)
    return codes, rows[hits]


@dataclass(frozen=True)
class _Merge:
    """What becomes of each row, once it is known which rows match."""

    table: OpenTable
    dataset: LanceDataset
    source: MergeSource
    rules: MergeRules
    matches: _Matches

    def plan(self, files: Deletions, on_progress: OnProgress) -> RowPlan:
        """Writes the rows that come and the deletion files of those that go."""
        gone = np.sort(np.concatenate([self._replaced(), self._deleted]))
        refuse_held_addresses(self.table, gone, "changed")
        updated, inserted = self._updated(), self._inserted
        coming = [each for each in (updated, inserted) if each is not None and each.num_rows]
        on_progress(Progress("writing", 0, sum(each.num_rows for each in coming)))
        compared = has_unique_keys(self.table.state) and bool(coming)
        if compared and {*self.source.on} != {*self.table.row_keys}:
            names = list(self.table.row_keys)
            keys = pa.concat_tables([pa.Table.from_batches([each.select(names)]) for each in coming])
            refuse_taken_keys(self.table, self.dataset, keys, gone)
        written = list[WrittenFragment]()
        try:
            for group in self._written_together(coming):
                written += write_rows(self.table.layout(), leaf_ranges(self.table), self.dataset, group)
            changed, removed = files.without(self.dataset, offsets_of([gone]) if len(gone) else {})
        except BaseException:
            discard(self.table.location, written)
            raise
        leaves = leaf_changes(self._counts())
        fragments = FragmentCounts(len(changed), len(removed), len(written))
        version = int(self.dataset.version)
        return RowPlan(version, total(leaves), leaves, fragments, changed, removed, tuple(written), compared)

    def foreseen(self) -> RowPlan:
        """Returns the same without anything written; the fragments that come are one at least for each leaf."""
        refuse_held_addresses(self.table, np.concatenate([self._replaced(), self._deleted]), "changed")
        leaves = leaf_changes(self._counts())
        counts = {i: len(rows) for i, rows in offsets_of([self._replaced(), self._deleted]).items()}
        held = {i: file.rows for i in counts if (file := self.table.state.files.get(i)) is not None}
        whole = sum(held.get(i) == n for i, n in counts.items())
        new = sum(bool(each.counts.updated or each.counts.inserted) for each in leaves)
        fragments = FragmentCounts(len(counts) - whole, whole, new)
        return RowPlan(int(self.dataset.version), total(leaves), leaves, fragments)

    def _written_together(self, coming: Sequence[pa.RecordBatch]) -> list[list[pa.RecordBatch]]:
        """Returns the rows that one fragment may hold together: those that keep their ids stay apart from others."""
        return [[each] for each in coming] if self.dataset.has_stable_row_ids else [list(coming)] if coming else []

    def _replaced(self) -> NDArray[np.uint64]:
        """Returns the addresses of matched rows that are taken out, because others come for them or none."""
        return np.zeros(0, np.uint64) if self.rules.when_matched == "ignore" else self.matches.addresses

    @cached_property
    def _deleted(self) -> NDArray[np.uint64]:
        """The addresses of rows whose keys the source does not have, where these go."""
        if self.rules.when_not_matched_by_source == "keep":
            return np.zeros(0, np.uint64)
        matched = np.sort(self.matches.addresses)
        found = [
            np.asarray(each.column(ADDRESS))
            for each in matching_rows(self.table, self.dataset, self.rules.where or "true")
        ]
        return np.concatenate([np.zeros(0, np.uint64), *(each[~among(each, matched)] for each in found)])

    @cached_property
    def _inserted(self) -> pa.RecordBatch | None:
        """The rows of the source that the table has no key of, with all columns."""
        if self.rules.when_not_matched == "ignore":
            return None
        there = np.zeros(self.source.given.num_rows, np.bool_)
        there[self.matches.places] = True
        places = np.flatnonzero(~there)
        return self.source.full_rows(places, self.table) if len(places) else None

    def _updated(self) -> pa.RecordBatch | None:
        """Returns the matched rows with the source's values, and with their row ids where these are stable."""
        found = self.matches
        if self.rules.when_matched != "update" or not len(found.addresses):
            return None
        given, names = self.source.given, self.table.schema.names
        values = given.take(pa.array(found.places))
        kept = [name for name in names if name not in given.schema.names]
        others = self._kept_values(kept) if kept else None
        columns = [
            values.column(name) if name in given.schema.names else others.column(name)  # type: ignore[union-attr]
            for name in names
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=self.table.schema)
        return rows.append_column(ROW_ID, pa.array(found.ids)) if self.dataset.has_stable_row_ids else rows

    def _kept_values(self, names: Sequence[str]) -> pa.RecordBatch:
        """Returns the values of columns that the source does not give, in the order of the matches."""
        order = np.argsort(self.matches.addresses, kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        found = rows_at(self.table, self.dataset, self.matches.addresses[order], names)
        schema = pa.schema([self.table.schema.field(name) for name in names])
        rows = pa.Table.from_batches(found).select(list(names)).take(pa.array(places)).combine_chunks()
        columns = [with_type(column.chunk(0), field) for field, column in zip(schema, rows.columns, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _counts(self) -> Iterator[tuple[str | None, RowCounts]]:
        counted = offsets_of([self.matches.addresses])
        rows = rows_by_partition(self.table, {i: len(own) for i, own in counted.items()})
        for partition, n in rows:
            if self.rules.when_matched == "update":
                yield partition, RowCounts(updated=n)
            elif self.rules.when_matched == "delete":
                yield partition, RowCounts(deleted=n)
        going = offsets_of([self._deleted])
        for partition, n in rows_by_partition(self.table, {i: len(own) for i, own in going.items()}):
            yield partition, RowCounts(deleted=n)
        if (inserted := self._inserted) is not None:
            ranges, keys = leaf_ranges(self.table), list(self.table.row_keys)
            splitter = ranges.splitter(self.table.schema, keys)
            numbers = splitter.ranges([inserted.column(name) for name in keys], inserted.num_rows)
            for number, n in zip(*np.unique(numbers, return_counts=True), strict=True):
                yield ranges.partitions[int(number)], RowCounts(inserted=int(n))
