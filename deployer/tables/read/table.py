"""The table API for reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deployer.datasets.dataset import field_ids, open_dataset
from deployer.datasets.ordering.clustering import clustered_fields
from deployer.errors import InvalidInput
from deployer.state import open_reader
from deployer.tables.inspect.past_keys import KeysThen, keys_at
from deployer.tables.inspect.versions import At, TableVersion, dataset_at, history
from deployer.tables.open_table import ReadTable, find_entry, read_entry
from deployer.tables.read.conditions import check_condition
from deployer.tables.read.key_values import Interval, require_ordered, unknown_column
from deployer.tables.read.predicate import KeyPredicate, key_predicate
from deployer.tables.read.scan_plan import Condition, ScanPlan, fragments_by_id
from deployer.tables.read.where_ranges import ranges_in

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

WORTH_CHOOSING = 2  #: fragments; opening one is faster than planning a condition


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a read: its columns, its batches in the order of reading, and the numbers of opened and all
    fragments."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    opened: int
    total: int

    def to_table(self) -> pa.Table:
        """Returns all rows at once."""
        return pa.Table.from_batches(self.batches, self.schema)


def open_table(root: str, name: str) -> Table:
    """Returns the table `database.name`, or of that bare name when only one has it, of the instance at `root`.

    It needs no write permission, and writes nothing. Raises NotFound (with the nearest name) and InvalidInput.
    """
    store = open_reader(root)
    return Table(read_entry(store, root, find_entry(store.instance().tables.values(), name)))


class Table:
    """A table that is open for reading at the version at which it was opened. `refresh` moves to the newest one."""

    def __init__(self, opened: ReadTable, dataset: LanceDataset | None = None) -> None:
        """`dataset` is the dataset at the table's version, if it is already open."""
        self.opened = opened
        self._datasets: dict[tuple[int, int], LanceDataset] = {}
        if dataset is not None:
            self._datasets[opened.entry.dataset, opened.state.lance_version] = dataset

    def close(self) -> None:
        self.opened.store.close()

    def refresh(self) -> None:
        """Moves to the newest version. The call is cheap where there is no newer one."""
        self.opened = self.opened.refreshed()

    @property
    def name(self) -> str:
        return self.opened.entry.full_name

    @property
    def schema(self) -> pa.Schema:
        """The columns, with descriptions in the fields' metadata."""
        return self.opened.schema

    @property
    def row_keys(self) -> tuple[str, ...]:
        return self.opened.row_keys

    def count(self) -> int:
        """Returns the number of rows without reading data."""
        return self.opened.state.files.rows

    def history(self) -> list[TableVersion]:
        """Returns the versions that are kept, the newest first."""
        return history(self.opened)

    def keys(self, *keys: Sequence[Any], columns: Sequence[str] | None = None) -> Rows:
        """Returns the rows whose row key is one of `keys` or starts with it. Each key has values of the first row
        keys."""
        return self.scan(keys=keys, columns=columns)

    def range(self, ranges: Mapping[str, Interval], columns: Sequence[str] | None = None) -> Rows:
        """Returns the rows whose columns in `ranges` are all within their interval. Null is in no interval."""
        return self.scan(ranges=ranges, columns=columns)

    def scan(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        at: At | None = None,
        limit: int | None = None,
        keys: Sequence[Sequence[Any]] = (),
        ranges: Mapping[str, Interval] | None = None,
    ) -> Rows:
        """Returns the rows that match all given conditions. `where` is a single expression of Lance's SQL.

        Ranges of row keys, and of columns that files are clustered by, open only the fragments that may contain a
        match; ranges of other columns open all fragments. Comparisons of such columns with literals in `where` have the
        same effect, if they are joined by AND. At an earlier version, `at`, every fragment is opened, because zone maps
        exist only for the newest version; `keys` are then values of the row keys of that version.

        Raises InvalidInput for columns, values or SQL that do not fit the table.
        """
        dataset, plan = self._planned(where, columns, at, keys, ranges)
        batches = plan.batches(dataset, limit)
        first = next(batches, None)  # an error of the condition is reported now, not while rows are printed
        schema = first.schema if first is not None else _selected(dataset.schema, plan.columns)
        return Rows(schema, _chained(first, batches), len(plan.fragments), plan.total)

    def plan(
        self,
        where: str | None = None,
        columns: Sequence[str] | None = None,
        at: At | None = None,
        keys: Sequence[Sequence[Any]] = (),
        ranges: Mapping[str, Interval] | None = None,
    ) -> ScanPlan:
        """Returns the plan of a `scan`, for reads in other processes. Errors that Lance finds in `where` are raised
        during the read."""
        return self._planned(where, columns, at, keys, ranges)[1]

    def _planned(
        self,
        where: str | None,
        columns: Sequence[str] | None,
        at: At | None,
        keys: Sequence[Sequence[Any]],
        ranges: Mapping[str, Interval] | None,
    ) -> tuple[LanceDataset, ScanPlan]:
        if where is not None:
            check_condition(where, self.opened.address, self.opened.schema)
        location, version = self.opened.location, self.opened.state.lance_version
        dataset = self.dataset()
        if at is not None:
            number, then, version = dataset_at(self.opened, at)
            is_newest = (number, version) == (self.opened.state.dataset, self.opened.state.lance_version)
            location = location if is_newest else then.uri
            dataset = dataset if is_newest else open_dataset(location, version)
        else:
            is_newest = True
        condition = None if where is None else Condition.typed(where, dataset.schema)
        then = self.keys_at(None if is_newest or not (keys or ranges) else at)
        predicate = self._predicate(keys, ranges, dataset, then)
        fragments = [each.fragment_id for each in dataset.get_fragments()]
        if is_newest and self.opened.without:
            fragments = [each for each in fragments if each not in self.opened.without]
        total = len(fragments)
        if is_newest:
            fragments = self._chosen(fragments, predicate)
        if condition is not None and is_newest and len(fragments) >= WORTH_CHOOSING:
            # Lance gets the condition in any case, because it may report a problem with it
            fragments = self._chosen(fragments, self._said_by(condition.sql, dataset)) or fragments[:1]
        names = tuple(self._columns(columns, dataset.schema))
        address = self.opened.address
        return dataset, ScanPlan(address, location, version, tuple(fragments), total, names, predicate, condition)

    def candidates(self, where: str) -> tuple[Condition, list[Any]]:
        """Returns the condition in the form for Lance, and the fragments of this version that may contain a row for
        which it is true.

        Raises InvalidInput for a text that is not a single SQL expression.
        """
        check_condition(where, self.opened.address, self.opened.schema)
        dataset = self.dataset()
        condition = Condition.typed(where, dataset.schema)
        fragments = list(dataset.get_fragments())
        if len(fragments) < WORTH_CHOOSING:
            return condition, fragments
        ids = [each.fragment_id for each in fragments]
        return condition, fragments_by_id(dataset, self._chosen(ids, self._said_by(condition.sql, dataset)))

    def count_where(
        self,
        where: str | None = None,
        at: At | None = None,
        keys: Sequence[Sequence[Any]] = (),
        ranges: Mapping[str, Interval] | None = None,
    ) -> int:
        """Returns the number of rows that `scan` would return."""
        if where is None and at is None and not keys and not ranges:
            return self.count()
        return sum(batch.num_rows for batch in self.scan(where, self.schema.names[:1], at, None, keys, ranges).batches)

    def keys_at(self, at: At | None) -> KeysThen:
        """Returns the columns and row keys of the version `at`, to which the `keys` of a `scan` at it refer."""
        return keys_at(self.opened, at)

    def _predicate(
        self,
        keys: Sequence[Sequence[Any]],
        ranges: Mapping[str, Interval] | None,
        dataset: LanceDataset,
        then: KeysThen,
    ) -> KeyPredicate:
        if keys and not then.row_keys:
            raise InvalidInput("the table has no row keys", where=self.opened.address, remedy="use `where`")
        for name in ranges or ():
            require_ordered(name, then.schema)
        others = [name for name in ranges or () if name not in then.row_keys]
        ids = {name: field_ids(dataset, [name])[0] for name in others}
        return key_predicate(then.schema, then.row_keys, then.kinds, keys, ranges, ids)

    def _chosen(self, fragments: Sequence[int], predicate: KeyPredicate) -> list[int]:
        """Returns the ids of the fragments that may contain a row that matches the predicate."""
        if predicate.is_empty:
            return list(fragments)
        chosen = {file.fragment_id for file in predicate.files(self.opened.state.files)}
        return [each for each in fragments if each in chosen]

    def _said_by(self, where: str, dataset: LanceDataset) -> KeyPredicate:
        """Returns the ranges of row keys and of clustered columns that follow from the condition."""
        clustered = {each for by in self.opened.state.files.clusterings() for each in clustered_fields(by)}
        names = dataset.schema.names
        found = [name for name, number in zip(names, field_ids(dataset, names), strict=True) if number in clustered]
        ranges = ranges_in(where, dataset.schema, {*self.row_keys, *found})
        return self._predicate((), ranges, dataset, self.keys_at(None))

    def dataset(self) -> LanceDataset:
        """Returns the Lance dataset at this version, which readings share."""
        version = self.opened.state.lance_version
        key = (self.opened.entry.dataset, version)
        if key not in self._datasets:
            self._datasets = {key: self.opened.dataset(version)}
        return self._datasets[key]

    def _columns(self, columns: Sequence[str] | None, schema: pa.Schema) -> list[str]:
        if columns is None:
            return list(schema.names)
        known = frozenset(schema.names)
        for name in columns:
            if name not in known:
                raise unknown_column(name, schema.names, self.opened.address)
        return list(columns)


def _chained(first: pa.RecordBatch | None, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    if first is not None:
        yield first
        yield from rest


def _selected(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])
