"""Folds log entries into states. The functions are pure: the same entries make the same state everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import assert_never

from deployer.errors import Corrupt
from deployer.platform.storage.envelope import FORGED, RECOVERY
from deployer.state.log.codec import Mismatch, decode_field
from deployer.state.log.entries import LogEntry
from deployer.state.log.inapplicable import Inapplicable
from deployer.state.log.instance_reducer import apply_to_instance, clash_since
from deployer.state.log.service_reducer import apply_to_services
from deployer.state.log.service_updates import ServiceUpdate
from deployer.state.log.updates import (
    CommitAbandoned,
    CommitStarted,
    CreateTable,
    DatasetRemoved,
    FilesAdded,
    FilesRemoved,
    FilesReplaced,
    InstanceUpdate,
    PartitionSplit,
    RewriteStarted,
    RowsChanged,
    RowsLeft,
    SetLanceVersion,
    SetSchema,
    SetTableProperties,
    TableRebuilt,
    TableRestored,
    TableRewritten,
    TableUpdate,
)
from deployer.state.model.entities import (
    INSTANCE_LOG,
    JSON,
    Dataset,
    File,
    Files,
    InstanceState,
    Intent,
    Job,
    Partition,
    RowCounts,
    State,
    TableProperties,
    TableState,
)
from deployer.state.model.location import Location
from deployer.state.model.partitions import check_tree, split
from deployer.state.model.persistent_map import LayeredMap, layered
from deployer.state.model.table_locations import fault_of_datasets


def empty_state(log: str) -> State:
    """Returns the state of a log at version 0."""
    return InstanceState() if log == INSTANCE_LOG else TableState(table_id=log)


def fold(state: State, entries: Iterable[LogEntry]) -> State:
    """Returns the state after the entries. Raises Corrupt, which names the entry, when an entry does not fit the state
    or does not follow the one before without a gap."""
    if not isinstance(state, InstanceState):
        for entry in entries:
            state = _after(state, entry)
        return state
    before, listed = state, list(entries)
    folded: State = state
    for entry in listed:
        folded = _after(folded, entry)
    if clash_since(before, folded) is None:  # one check for all entries, because it compares all tables
        return folded
    folded = before
    for entry in listed:
        earlier, folded = folded, _after(folded, entry)
        if fault := clash_since(earlier, folded):
            raise Corrupt(fault, where=_place(entry), remedy=FORGED)
    return folded


def _after(state: State, entry: LogEntry) -> State:
    if entry.version != state.version + 1:
        raise Corrupt(f"it follows version {state.version}", where=_place(entry), remedy=RECOVERY)
    if entry.at < state.at:  # retention periods are counted from the times of entries
        fault = f"its time {entry.at} is before that of the entry before, {state.at}"
        raise Corrupt(fault, where=_place(entry), remedy=FORGED)
    try:
        return _applied(state, entry)
    except Inapplicable as error:
        raise Corrupt(error.what, where=_place(entry), remedy=FORGED) from None


def _place(entry: LogEntry) -> str:
    return f"entry {entry.version} of log {entry.log}"


def apply(state: State, entry: LogEntry) -> State:
    """Returns the state after one entry that is not committed yet. Raises Inapplicable when it does not fit."""
    after = _applied(state, entry)
    if fault := clash_since(state, after):
        raise Inapplicable(fault)
    return after


def _applied(state: State, entry: LogEntry) -> State:
    if isinstance(state, InstanceState):
        for update in entry.updates:
            if not isinstance(update, InstanceUpdate):
                raise Inapplicable(f"{type(update).__name__} is not an update of the instance")
            state = apply_to_instance(state, update, entry.version, entry.at, entry.author)
        return replace(state, version=entry.version, at=entry.at)
    generation = state.properties.generation
    redeclared = False
    for update in entry.updates:
        if not isinstance(update, TableUpdate):
            raise Inapplicable(f"{type(update).__name__} is not an update of a table")
        redeclared |= isinstance(update, SetTableProperties | SetSchema | TableRestored)
        state = _apply_to_table(state, update, entry)
    if redeclared:
        state = replace(state, properties=replace(state.properties, generation=generation + 1))
    return replace(state, version=entry.version, at=entry.at)


def _apply_to_table(state: TableState, update: TableUpdate, entry: LogEntry) -> TableState:
    if isinstance(update, CreateTable):
        return _create(state, update)
    if isinstance(update, TableRebuilt):
        return _rebuilt(state, update)
    if not state.schema:
        raise Inapplicable(f"table {state.table_id} was never created")
    if isinstance(update, ServiceUpdate):
        return apply_to_services(state, update, entry.version, entry.at, entry.author)
    at = entry.at
    match update:
        case SetTableProperties(changes):
            return replace(state, properties=_changed_properties(state.properties, changes))
        case SetSchema(schema, lance_version):
            return replace(_seen(state, lance_version), schema=schema)
        case SetLanceVersion(lance_version):
            return _seen(state, lance_version)
        case CommitStarted(job_id, kind, base_lance_version, restore):
            if job_id in state.jobs:
                raise Inapplicable(f"job {job_id} is done already")
            intent = Intent(job_id, kind, at, base_lance_version, restore)
            return replace(state, intents=layered(state.intents).changed({job_id: intent}))
        case FilesAdded(files, lance_version, job_id, rows, kind, sources):
            state = _finish(state, job_id, kind, rows, lance_version, at, sources)
            return replace(_seen(state, lance_version), files=_with_files(state.files, files, ()))
        case FilesReplaced(removed, added, lance_version, job_id, kind):
            state = _finish(state, job_id, kind, sum(file.rows for file in added), lance_version, at)
            return replace(_seen(state, lance_version), files=_with_files(state.files, added, removed))
        case RowsChanged(left, removed, added, lance_version, job_id, kind, counts, sources):
            now = _with_files(state.files, (*_with_rows_left(state.files, left), *added), (*_ids(left), *removed))
            state = _finish(state, job_id, kind, counts.changed, lance_version, at, sources, counts)
            return replace(_seen(state, lance_version), files=now)
        case FilesRemoved(removed, lance_version):
            return replace(_seen(state, lance_version), files=_with_files(state.files, (), removed))
        case CommitAbandoned(job_id):
            if job_id not in state.intents:
                raise Inapplicable(f"job {job_id} has no unfinished commit")
            return replace(state, intents=layered(state.intents).changed({}, [job_id]))
        case PartitionSplit(partition_id, split_point, left_id, right_id):
            try:
                changed = split(state.partitions, partition_id, split_point, left_id, right_id)
            except ValueError as error:
                raise Inapplicable(str(error)) from None
            return replace(state, partitions=layered(state.partitions).changed(changed))
        case RewriteStarted(number, location, target):
            if number <= max((each.number for each in state.datasets), default=1):
                raise Inapplicable(f"dataset {number} of the table was there already")
            return _with_datasets(state, Dataset(number, location, "writing", at, 0, target))
        case TableRewritten():
            return _rewritten(state, update, at)
        case TableRestored():
            return _restored(state, update, at)
        case DatasetRemoved(number):
            found = _dataset(state, number, "writing", "retired")
            return _with_datasets(state, replace(found, status="removed", since=at))
        case _:
            assert_never(update)


def _rewritten(state: TableState, update: TableRewritten, at: int) -> TableState:
    new = replace(_dataset(state, update.number, "writing"), status="current", since=at)
    old = Dataset(state.dataset, update.retired_location, "retired", at, state.lance_version)
    return replace(
        _with_datasets(state, _retired_in_place(state, old), new),
        schema=update.schema,
        lance_version=update.lance_version,
        partitions=LayeredMap(_tree(update.partitions)),
        files=_with_files(Files(), update.files, ()),
        jobs=LayeredMap() if update.forgets_jobs else state.jobs,
        intents=LayeredMap(),
    )


def _restored(state: TableState, update: TableRestored, at: int) -> TableState:
    datasets, intents = state.datasets, layered(state.intents)
    if update.number != state.dataset:
        if not update.retired_location:
            raise Inapplicable(f"dataset {state.dataset} of the table would be lost")
        new = replace(_dataset(state, update.number, "retired"), status="current", since=at, lance_version=0)
        old = Dataset(state.dataset, Location(update.retired_location), "retired", at, state.lance_version)
        datasets = _with_datasets(state, _retired_in_place(state, old), new).datasets
        intents = LayeredMap()
    elif update.job_id in intents:
        intents = intents.changed({}, [update.job_id])
    job = Job(update.job_id, "restore", 0, update.lance_version, at)
    return replace(_as_of(state, update, (*update.jobs, job)), intents=intents, datasets=datasets)


def _rebuilt(state: TableState, update: TableRebuilt) -> TableState:
    if not update.schema:
        raise Inapplicable("a table needs a schema")
    state = _with_datasets(replace(state, datasets=()), *update.datasets)
    return replace(_as_of(state, update, update.jobs), intents=LayeredMap())


def _as_of(state: TableState, update: TableRestored | TableRebuilt, jobs: Iterable[Job]) -> TableState:
    """Returns the state with everything that the update records, and with `jobs`."""
    return replace(
        state,
        properties=update.properties,
        schema=update.schema,
        lance_version=update.lance_version,
        partitions=LayeredMap(_tree(update.partitions)),
        files=_with_files(Files(), update.files, ()),
        jobs=LayeredMap({each.job_id: each for each in jobs}),
        services={each.kind: each for each in update.services},
    )


def _dataset(state: TableState, number: int, *statuses: str) -> Dataset:
    found = next((each for each in state.datasets if each.number == number), None)
    if found is None or found.status not in statuses:
        raise Inapplicable(f"dataset {number} of the table is {found.status if found else 'unknown'}")
    return found


def _retired_in_place(state: TableState, old: Dataset) -> Dataset:
    """Returns `old`, the retired dataset. Raises Inapplicable if its location differs from the recorded one."""
    before = next((each.location for each in state.datasets if each.number == old.number), old.location)
    if before != old.location:
        raise Inapplicable(f"dataset {old.number} of the table is at {before}, not at {old.location}")
    return old


def _with_datasets(state: TableState, *changed: Dataset) -> TableState:
    known = {each.number: each for each in state.datasets} | {each.number: each for each in changed}
    datasets = tuple(known[number] for number in sorted(known))
    if fault := fault_of_datasets(state.table_id, datasets):
        raise Inapplicable(fault)
    return replace(state, datasets=datasets)


def _create(state: TableState, update: CreateTable) -> TableState:
    if state.version or state.schema:
        raise Inapplicable(f"table {state.table_id} exists already")
    if not update.schema:
        raise Inapplicable("a table needs a schema")
    return replace(
        state,
        properties=update.properties,
        schema=update.schema,
        lance_version=update.lance_version,
        partitions=LayeredMap(_tree(update.partitions)),
    )


def _tree(partitions: tuple[Partition, ...]) -> dict[str, Partition]:
    """Returns the partitions by id; if there are none, one partition `root` that holds all keys.

    Raises Inapplicable if the partitions are not one complete tree.
    """
    tree = {each.partition_id: each for each in partitions or (Partition("root", None),)}
    try:
        check_tree(tree)
    except ValueError as error:
        raise Inapplicable(str(error)) from None
    return tree


def _changed_properties(properties: TableProperties, changes: Mapping[str, JSON]) -> TableProperties:
    if "generation" in changes:
        raise Inapplicable("generation counts changes and cannot be set")
    try:
        values = {name: decode_field(TableProperties, name, value) for name, value in changes.items()}
    except Mismatch as error:
        raise Inapplicable(str(error)) from None
    now = {field.name: getattr(properties, field.name) for field in fields(properties)}
    return TableProperties(**{**now, **values})


def _finish(
    state: TableState,
    job_id: str | None,
    kind: str,
    rows: int,
    lance_version: int,
    at: int,
    sources: str = "",
    counts: RowCounts | None = None,
) -> TableState:
    if job_id is None:
        return state
    if job_id in state.jobs:
        raise Inapplicable(f"job {job_id} is done already")
    intents = layered(state.intents)
    if intent := intents.get(job_id):
        kind, intents = intent.kind, intents.changed({}, [job_id])
    job = Job(job_id, kind, rows, lance_version, at, sources, counts)
    return replace(state, jobs=layered(state.jobs).changed({job_id: job}), intents=intents)


def _ids(left: tuple[RowsLeft, ...]) -> list[int]:
    return [each.fragment_id for each in left]


def _with_rows_left(files: Files, left: tuple[RowsLeft, ...]) -> list[File]:
    """Returns the files of `left` with their new numbers of rows. Raises Inapplicable for an unknown fragment."""
    changed = []
    for each in left:
        file = files.get(each.fragment_id)
        if file is None:
            raise Inapplicable(f"fragment {each.fragment_id} is not in the table")
        changed.append(replace(file, rows=each.rows))
    return changed


def _with_files(files: Files, added: tuple[File, ...], removed: tuple[int, ...]) -> Files:
    if missing := files.missing(removed):
        raise Inapplicable(f"fragment {missing[0]} is not in the table")
    if len(set(removed)) != len(removed) or len({file.fragment_id for file in added}) != len(added):
        raise Inapplicable("a fragment is named twice")
    for file in added:
        if file.fragment_id in files and file.fragment_id not in removed:
            raise Inapplicable(f"fragment {file.fragment_id} is in the table already")
    return files.changed(added, removed)


def _seen(state: TableState, lance_version: int) -> TableState:
    # Commits may be recorded in a different order than Lance made them, so the version never decreases.
    return replace(state, lance_version=max(state.lance_version, lance_version))
