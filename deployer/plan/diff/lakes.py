"""The one comparison: the changes that turn `live` into `desired`.

Pure; no I/O and no Pulumi. The provider's diff and the preview both call `diff` and only translate its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from deployer.plan.changes import (
    Change,
    ChangeClusters,
    ChangeDescription,
    ChangeEmbedding,
    ChangeEngine,
    ChangeHolds,
    ChangeLeafLimit,
    ChangeMaxStaleness,
    ChangeNotify,
    ChangeRetainedChanges,
    ChangeRetention,
    ChangeRoot,
    ChangeRowKeys,
    ChangeServiceOptions,
    ChangeSortKeys,
    ChangeSplitPoints,
    ChangeStateBackend,
    ChangeStorage,
    ChangeTags,
    ChangeTrigger,
    ChangeViewQuery,
    ColumnChange,
    CreateDataset,
    CreateInstance,
    CreateService,
    CreateTable,
    DeleteDataset,
    DeleteInstance,
    DeleteService,
    DeleteTable,
    MoveServiceToCluster,
    RenameColumn,
    RenameTable,
    ServiceChange,
    SetDeletionProtection,
    SetOnline,
    SetUnique,
    TableAlteration,
)
from deployer.plan.diff.columns import diff_columns
from deployer.plan.diff.datasets import diff_datasets
from deployer.plan.diff.indexes import diff_indexes
from deployer.plan.graph.build import Spec
from deployer.plan.stages import in_order
from deployer.specs.model import InstanceSpec, ServiceSpec, TableSpec
from deployer.specs.types.dataset import DatasetSpec
from deployer.specs.types.types import Column, format_type


def diff(live: Spec | None, desired: Spec | None, *, read: bool = False) -> tuple[Change, ...]:
    """Returns the changes of one resource, in the order in which they are applied; empty when there is nothing to do.

    `live` is the existing resource (None: it does not exist), `desired` the declared one (None: it should not exist).
    `read`: `live` was read at the root of `desired`, so an instance that records another root was moved.
    """
    match live, desired:
        case None, None:
            return ()
        case None, InstanceSpec():
            return (CreateInstance(desired.address, desired),)
        case None, DatasetSpec():
            return (CreateDataset(desired.address, desired),)
        case DatasetSpec(), None:
            return (DeleteDataset(live.address),)
        case DatasetSpec(), DatasetSpec():
            return tuple(diff_datasets(live, desired))
        case None, TableSpec():
            return (CreateTable(desired.address, desired),)
        case InstanceSpec(), None:
            return (DeleteInstance(live.address),)
        case TableSpec(), None:
            return (DeleteTable(live.address),)
        case InstanceSpec(), InstanceSpec():
            return tuple(_diff_instance(live, desired, read))
        case TableSpec(), TableSpec():
            return diff_tables(live, desired)
        case _:
            raise TypeError(f"cannot compare {type(live).__name__} with {type(desired).__name__}")


def _diff_instance(live: InstanceSpec, desired: InstanceSpec, read: bool) -> Iterator[Change]:
    address = desired.address
    found = read and live.root != desired.root
    if live.root != desired.root:
        yield ChangeRoot(address, live.root, desired.root, found)
    if live.state != desired.state:
        yield ChangeStateBackend(address, live.state, desired.state, found)
    if live.engine != desired.engine:
        yield ChangeEngine(address, live.engine, desired.engine)
    if live.clusters != desired.clusters:
        yield ChangeClusters(address, live.clusters, desired.clusters)
    if live.notify != desired.notify:
        yield ChangeNotify(address, live.notify, desired.notify)
    yield from _diff_annotations(live, desired)


def diff_tables(live: TableSpec, desired: TableSpec) -> tuple[TableAlteration, ...]:
    """Returns the changes that turn the live table into the desired one, in the order of `deployer.plan.stages`."""
    return in_order(_diff_table(live, desired), desired)


def _diff_table(live: TableSpec, desired: TableSpec) -> Iterator[TableAlteration]:
    address = desired.address
    if live.full_name != desired.full_name:
        yield RenameTable(address, live.full_name, desired.full_name)
    columns: tuple[ColumnChange, ...] = ()
    if live.view is None and desired.view is None:
        columns = tuple(diff_columns(address, live.columns, desired.columns))
    elif makes_other_rows(live, desired):
        yield ChangeViewQuery(address, live.view, desired.view)  # the new view is built with its columns
    else:
        columns = tuple(diff_columns(address, live.columns, desired.columns))
    yield from columns
    names = {each.column[0]: each.after for each in columns if isinstance(each, RenameColumn) and len(each.column) == 1}
    row_keys, sort_keys = (tuple(names.get(key, key) for key in keys) for keys in (live.row_keys, live.sort_keys))
    if row_keys != desired.row_keys:
        kept = live.unique and desired.unique and not set(row_keys) <= set(desired.row_keys)
        yield ChangeRowKeys(address, row_keys, desired.row_keys, kept)
    if desired.unique != live.unique:
        yield SetUnique(address, desired.unique, desired.row_keys if desired.unique else ())
    if sort_keys != desired.sort_keys:
        yield ChangeSortKeys(address, sort_keys, desired.sort_keys)
    if live.split_points != desired.split_points:
        types = {column.name: column.type for column in desired.columns}
        comparable = row_keys == desired.row_keys or desired.split_points
        there = all(name in types for name in desired.row_keys)  # another program may have dropped a key's column
        keys = tuple(Column(name, types[name]) for name in desired.row_keys if comparable and there)
        yield ChangeSplitPoints(address, live.split_points, desired.split_points, keys)
    if live.max_rows_per_leaf != desired.max_rows_per_leaf:
        yield ChangeLeafLimit(address, live.max_rows_per_leaf, desired.max_rows_per_leaf)
    if live.retention != desired.retention:
        before = live.retention
        if before is not None:
            before = replace(before, column=names.get(before.column, before.column))
        yield ChangeRetention(address, before, desired.retention)
    if live.holds != desired.holds:
        yield ChangeHolds(address, live.holds, desired.holds)
    if live.retain_changes != desired.retain_changes:
        yield ChangeRetainedChanges(address, live.retain_changes, desired.retain_changes)
    if live.storage != desired.storage:
        yield ChangeStorage(address, live.storage, desired.storage)
    yield from diff_indexes(address, live.indexes, desired.indexes, columns)
    yield from service_changes(address, live.services, desired.services)
    if live.view is not None and desired.view is not None and live.view.max_staleness != desired.view.max_staleness:
        yield ChangeMaxStaleness(address, live.view.max_staleness, desired.view.max_staleness)
    if live.embedding != desired.embedding:
        yield ChangeEmbedding(address, live.embedding, desired.embedding)
    if live.online != desired.online:
        yield SetOnline(address, desired.online)
    if live.deletion_protection != desired.deletion_protection:
        yield SetDeletionProtection(address, desired.deletion_protection)
    yield from _diff_annotations(live, desired)


def makes_other_rows(live: TableSpec, desired: TableSpec) -> bool:
    """Returns whether the rows of a view must be computed again: its query changed, or its columns have other names or
    types."""
    if live.view is None or desired.view is None:
        return live.view is not desired.view
    shapes = ([(column.name, format_type(column.type)) for column in each.columns] for each in (live, desired))
    before, after = shapes
    return not live.view.makes_the_rows_of(desired.view) or before != after


def _diff_annotations(
    live: InstanceSpec | TableSpec, desired: InstanceSpec | TableSpec
) -> Iterator[ChangeDescription | ChangeTags]:
    if live.description != desired.description:
        yield ChangeDescription(desired.address, live.description, desired.description)
    if live.tags != desired.tags:
        yield ChangeTags(desired.address, live.tags, desired.tags)


def service_changes(
    address: str, live: Iterable[ServiceSpec], desired: Iterable[ServiceSpec]
) -> Iterator[ServiceChange]:
    """Returns the services to detach, then those to attach or to change. Each property is a separate change."""
    wanted = {service.kind for service in desired}
    existing = {service.kind: service for service in live}
    yield from (DeleteService(address, service) for service in existing.values() if service.kind not in wanted)
    for service in desired:
        before = existing.get(service.kind)
        if before is None:
            yield CreateService(address, service)
            continue
        if before.trigger != service.trigger:
            yield ChangeTrigger(address, service.kind, before.trigger, service.trigger)
        if (before.options, before.unsafe_raw) != (service.options, service.unsafe_raw):
            raw = (before.unsafe_raw, service.unsafe_raw)
            yield ChangeServiceOptions(address, service.kind, before.options, service.options, *raw)
        if before.cluster != service.cluster:
            yield MoveServiceToCluster(address, service.kind, before.cluster, service.cluster)
