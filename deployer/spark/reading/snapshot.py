"""The one version of a table that a DataFrame reads, in all its queries and all their tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from deployer.errors import InvalidInput, NotFound, Refused
from deployer.services.restore.points import version_point
from deployer.services.savepoints.read_lease import hold_past, hold_shared
from deployer.spark.options import ReadOptions
from deployer.spark.reading.partitions import TASKS, TaskPlan, files_of, leaves_of, task_plans
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.types import Column
from deployer.state import open_reader, open_store
from deployer.state.log.service_updates import PastVersion
from deployer.state.reader import StateReader
from deployer.state.store import StateStore
from deployer.tables.inspect.versions import dataset_at
from deployer.tables.open_table import OpenTable, ReadTable, open_entry, open_to_change, read_entry
from deployer.tables.read.key_values import Interval, parse_keys, parse_ranges, unknown_column
from deployer.tables.read.scan_plan import ScanPlan
from deployer.tables.read.table import Table, open_table


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Version `lance_version` of dataset number `dataset` of a table. `columns` are its columns.

    `state_version` is the version of the table's log at which this version was the newest; None where the log no longer
    has it. `without` are fragments whose rows do not count (see `ReadTable`).
    """

    root: str
    name: str
    table_id: str
    dataset: int
    lance_version: int
    columns: tuple[Column, ...]
    state_version: int | None = None
    without: frozenset[int] = frozenset()

    def selected(self, names: Sequence[str] | None) -> tuple[Column, ...]:
        """Returns the columns of these names. Raises InvalidInput for an unknown name."""
        return selected(self.columns, names, f"table/{self.name}")


def take_snapshot(options: ReadOptions) -> Snapshot:
    """Opens the version that the options name, otherwise the newest, with a shared lease that protects it from CLEAN.
    Raises InvalidInput for options that do not fit the table, NotFound for a missing table or version.
    """
    with _opened(options) as opened:
        state, at = opened.state, options.at
        number, version = state.dataset, state.lance_version
        if at is not None:
            number, dataset, version = dataset_at(opened, at)
        is_newest = (number, version) == (state.dataset, state.lance_version)
        recorded = state.version if is_newest else _recorded_at(opened, number, version)
        columns = columns_of(opened.schema if is_newest else dataset.checkout_version(version).schema)
        snapshot = Snapshot(
            options.root,
            opened.entry.full_name,
            opened.entry.table_id,
            number,
            version,
            columns,
            recorded,
            opened.without if is_newest else frozenset(),
        )
        _hold(opened, snapshot, options)
        snapshot.selected(options.columns)
        plan = scan_plan(Table(opened), snapshot, options, options.columns)
        plan.check(plan.open())
        return snapshot


@contextmanager
def _opened(options: ReadOptions) -> Iterator[ReadTable]:
    opened: ReadTable
    if options.lease is None:
        opened = open_table(options.root, options.table).opened
    else:
        opened = changed = open_to_change(options.root, options.table)
        if options.at is None:
            opened = hold_shared(changed, options.lease)
    try:
        yield opened
    finally:
        opened.store.close()


def selected(columns: Sequence[Column], names: Sequence[str] | None, address: str) -> tuple[Column, ...]:
    """Returns the columns of these names, in their order; all of them for None. `address` is the table's. Raises
    InvalidInput for an unknown name."""
    if names is None:
        return tuple(columns)
    by_name = {column.name: column for column in columns}
    for name in names:
        if name not in by_name:
            raise unknown_column(name, list(by_name), address)
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise InvalidInput(f"the option `columns` names {repeated!r} twice", remedy="name it once")
    return tuple(by_name[name] for name in names)


def tasks(
    snapshot: Snapshot, options: ReadOptions, columns: Sequence[str], conditions: Sequence[str], most: int = TASKS
) -> list[TaskPlan]:
    """Returns the plans for the tasks of one query: rows of the options for which the SQL `conditions` are true.

    `most` is as in `task_plans`. Extends the lease. Raises NotFound when the version no longer exists.
    """
    with closing(open_reader(options.root) if options.lease is None else open_store(options.root)) as store:
        opened = _opened_then(store, snapshot, options)
        where = " AND ".join(f"({each})" for each in (options.where, *conditions) if each) or None
        plan = scan_plan(Table(opened), snapshot, replace(options, where=where), columns)
        files = [opened.state.files.get(each) for each in plan.fragments] if _is_of(opened, snapshot) else [None]
        known = [file for file in files if file is not None]
        if len(known) < len(files):
            return task_plans(plan, files_of(plan.open()), (), options.partition_size, most)
        return task_plans(plan, known, leaves_of(opened.state), options.partition_size, most)


def scan_plan(table: Table, snapshot: Snapshot, options: ReadOptions, columns: Sequence[str] | None) -> ScanPlan:
    """Returns the plan of reading the snapshot by the options. Raises InvalidInput for those that do not fit the
    table."""
    at = None if _is_of(table.opened, snapshot) else f"{snapshot.dataset}:{snapshot.lance_version}"
    keys: list[tuple[Any, ...]] = []
    ranges: Mapping[str, Interval] = {}
    if options.keys or options.ranges:
        then = table.keys_at(at)
        keys = [parse_keys(then.schema, then.row_keys, text) for text in options.keys]
        ranges = parse_ranges(then.schema, options.ranges)
    return table.plan(options.where, columns, at, keys, ranges)


def _hold(opened: ReadTable, snapshot: Snapshot, options: ReadOptions) -> None:
    """Holds a lease on the snapshot, if one is requested and the log still has its version."""
    if options.lease is not None and snapshot.state_version is not None and isinstance(opened, OpenTable):
        hold_past(opened, PastVersion(snapshot.dataset, snapshot.lance_version, snapshot.state_version), options.lease)


def _recorded_at(opened: ReadTable, dataset: int, version: int) -> int | None:
    """Returns the version of the table's log that recorded a version of a dataset; None where the log does not have
    it."""
    if not isinstance(opened, OpenTable):
        return None
    try:
        return version_point(opened, f"{dataset}:{version}").state_version
    except Refused:  # retention removed it
        return None


def _is_of(opened: ReadTable, snapshot: Snapshot) -> bool:
    return (opened.state.dataset, opened.state.lance_version) == (snapshot.dataset, snapshot.lance_version)


def _opened_then(store: StateReader, snapshot: Snapshot, options: ReadOptions) -> ReadTable:
    """Returns the table's state when the snapshot was its newest version; its current state where the log does not
    reach back that far."""
    entry = store.instance().tables.get(snapshot.table_id)
    if entry is None or entry.status != "active":
        raise NotFound(f"the table {snapshot.name} was deleted since it was loaded", remedy="load another one")
    opened: ReadTable
    if options.lease is None or not isinstance(store, StateStore):
        opened = read_entry(store, snapshot.root, entry)
    else:
        opened = open_entry(store, snapshot.root, entry)
        _hold(opened, snapshot, options)
    if _is_of(opened, snapshot) or snapshot.state_version is None:
        return opened
    try:
        then = store.table(snapshot.table_id, at=snapshot.state_version)
    except NotFound:
        return opened
    places = {each.number: each.location for each in opened.state.datasets}
    place = places.get(snapshot.dataset, opened.entry.location)
    former = replace(opened.entry, location=place, dataset=snapshot.dataset)
    seen = ReadTable(store, snapshot.root, former, then, snapshot.without)
    return seen if _is_of(seen, snapshot) else opened  # it was read with what the log lacked
