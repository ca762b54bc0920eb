"""Rebuilds a lost state store from the datasets below the instance's root: `state rebuild`.

Tables come from the records in their datasets. A dataset from before records existed is identified by its name. Its id
comes from Pulumi's state, and its keys and partitions from the specs, where they declare it.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deployer.datasets.dataset import open_dataset
from deployer.datasets.errors import lance_errors
from deployer.datasets.lance_transactions import metadata_since
from deployer.datasets.ordering.key_ranges import fault_of_keys
from deployer.datasets.recovery.rebuilt import RebuiltLog, Source, rebuilt_log
from deployer.datasets.storage.places import dataset_uri
from deployer.errors import Conflict, Corrupt, DeployerError, Interrupted, NotFound, Refused
from deployer.live.reader import active_tables, live_table
from deployer.platform.system.clock import Clock
from deployer.platform.system.processes import local_user
from deployer.platform.system.progress import OnProgress, counted, no_progress
from deployer.specs.model import InstanceSpec, Storage, TableSpec
from deployer.specs.serialized.properties import declared_properties
from deployer.specs.serialized.specs import instance_to_json, storage_in_full
from deployer.specs.types.arrow import columns_of
from deployer.state import open_reader, open_store
from deployer.state.log.entries import LogEntry
from deployer.state.log.updates import InstanceUpdate, RegisterTable, SetInstanceProperties
from deployer.state.model.declared_properties import OWNER, SPEC, SPLIT_POINTS
from deployer.state.model.entities import INSTANCE_LOG, Dataset, TableEntry, TableProperties
from deployer.state.model.location import Location
from deployer.state.model.table_locations import fault_between
from deployer.state.new_store import write_store
from deployer.state.records.document import TableRecord
from deployer.state.records.files import records_at
from deployer.tables.layout.partitions.split_points import declared_partitions, one_leaf
from deployer.tables.maintenance.verify.lost_datasets import Claim, FoundDataset, Problem, find_datasets

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

_MADE = re.compile(r"(?P<base>(?P<database>[^/]+)/(?P<name>.+)-(?P<id>[0-9a-f]{8}))(-g(?P<number>[0-9]+))?\.lance")

#: services that send data elsewhere; they are not read from records, because any writer of a dataset can write them
_REACH_OUT = frozenset({"METASYNC"})


@dataclass(frozen=True, slots=True)
class ProjectDeclarations:
    """The project's declarations: the instance, its tables by full name, their owner (`project/stack`), and the ids in
    Pulumi's state by address."""

    instance: InstanceSpec
    tables: Mapping[str, TableSpec]
    owner: str
    ids: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RebuiltTable:
    """A table of the new store. `origin` is the source of its keys. `log` is None for a table that is being deleted."""

    entry: TableEntry
    origin: str
    log: RebuiltLog | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The content of a rebuild: its tables by name, the problems of what is left out, and other programs' datasets."""

    root: str
    declared: ProjectDeclarations
    tables: tuple[RebuiltTable, ...]
    problems: tuple[Problem, ...]
    plain: tuple[str, ...] = ()


def plan_rebuild(root: str, declared: ProjectDeclarations, on_progress: OnProgress = no_progress) -> Rebuild:
    """Returns the plan of a rebuild. Changes nothing. Raises Refused if the state store exists and is complete."""
    require_lost(root)
    found = find_datasets(root, records_at(root), declared.instance.name)
    problems = found.problems
    tables: list[RebuiltTable] = []
    claims = [*((each, "its record", ()) for each in found.claims), *_unrecorded(root, found, declared)]
    for claim, origin, notes in counted(claims, len(claims), "reading", "datasets", on_progress):
        try:
            tables.append(_rebuilt(claim, origin, notes))
        except Interrupted:
            raise
        except DeployerError as error:
            problems.append(Problem(claim.record.entry.location, str(error)))
    tables.sort(key=lambda each: each.entry.full_name)
    times_named = Counter(each.entry.full_name for each in tables)
    for name in sorted(name for name, times in times_named.items() if times > 1):
        problems += [
            Problem(each.entry.location, f"several datasets are of a table {name}")
            for each in tables
            if each.entry.full_name == name
        ]
        tables = [each for each in tables if each.entry.full_name != name]
    if wrong := fault_between(each.entry for each in tables):
        raise Corrupt(wrong, where=root, remedy="move one of the datasets out of the root")
    return Rebuild(root, declared, tuple(tables), tuple(problems), tuple(found.plain))


def require_lost(root: str) -> None:
    """Raises Refused for a state store that exists, has tables, and can be read."""
    try:
        with closing(open_reader(root)) as store:
            tables = len(store.instance().tables)
            unreadable = active_tables(store).unreadable
    except (NotFound, Corrupt):
        return
    if tables and not unreadable:
        raise Refused(
            f"the state store is there and has {tables} table{'s' if tables > 1 else ''}; nothing was changed",
            where=root,
            remedy="`deployer state verify` shows whether it is complete, and `deployer state repair` repairs it",
        )


def apply_rebuild(planned: Rebuild) -> str | None:
    """Writes the new state store. Returns the path to which the damaged store was moved; None if there was none.

    Raises the errors of the storage.
    """
    declared = planned.declared
    updates: list[InstanceUpdate] = [
        SetInstanceProperties({SPEC: instance_to_json(declared.instance), OWNER: declared.owner})
    ]
    updates += [RegisterTable(each.entry) for each in planned.tables]
    clock = Clock()
    first = LogEntry(INSTANCE_LOG, 1, uuid.uuid4().hex, clock.now(), local_user(), tuple(updates))
    logs: dict[str, Sequence[LogEntry]] = {
        each.entry.table_id: each.log.entries for each in planned.tables if each.log is not None
    }
    options = declared.instance.state.options
    aside = write_store(planned.root, {**logs, INSTANCE_LOG: [first]}, options, instance=declared.instance.name)
    with closing(open_store(planned.root)) as store:
        for table_id in logs:
            store.keep_record(table_id)
    return aside


def _rebuilt(claim: Claim, origin: str, notes: tuple[str, ...]) -> RebuiltTable:
    entry, current = claim.record.entry, claim.current
    if current is None:
        return RebuiltTable(entry, origin, None, ("its deletion is unfinished; the next `deployer up` finishes it",))
    record = current.record
    if reaching := [each.kind for each in record.services if each.kind in _REACH_OUT]:
        kept = tuple(each for each in record.services if each.kind not in _REACH_OUT)
        current = replace(current, record=replace(record, services=kept))
        notes = (
            *notes,
            f"service {', '.join(reaching)} is left out; `deployer up` attaches it if the specs declare it",
        )
    with lance_errors(current.uri):
        log = rebuilt_log(current, claim.former, local_user())
    live_table(entry, log.state)  # raises Corrupt if the settings in the record are not valid
    if log.lost:
        notes = (*notes, f"savepoints of datasets that are gone: {', '.join(log.lost)}")
    return RebuiltTable(entry, origin, log, notes)


def _unrecorded(
    root: str, found: FoundDataset, declared: ProjectDeclarations
) -> Iterator[tuple[Claim, str, tuple[str, ...]]]:
    """Yields the tables of datasets without a record. All datasets of one table are yielded together."""
    groups: dict[str, list[Location]] = {}
    for location in found.made:
        if (parts := _MADE.fullmatch(location)) is not None:
            groups.setdefault(parts["base"], []).append(location)
    for several in groups.values():
        try:
            with lance_errors(dataset_uri(root, several[0])):
                claim = _claimed(root, several, declared)
        except Interrupted:
            raise
        except DeployerError as error:
            found.problems.extend(Problem(each, error.what) for each in several)
            continue
        if claim is not None:
            yield claim


def _claimed(
    root: str, several: list[Location], declared: ProjectDeclarations
) -> tuple[Claim, str, tuple[str, ...]] | None:
    """Returns the table to which the datasets with one name and id belong; None if a failed creation left only an empty
    dataset."""
    location = _newest(root, several)
    parts = _MADE.fullmatch(location)
    assert parts is not None  # noqa: S101 (its caller has looked)
    named = [address for address, each in declared.ids.items() if each.startswith(parts["id"])]
    table_id = declared.ids[named[0]] if len(named) == 1 else parts["id"] + uuid.uuid4().hex[8:]
    full_name = named[0].removeprefix("table/") if len(named) == 1 else f"{parts['database']}.{parts['name']}"
    spec = declared.tables.get(full_name)
    dataset = open_dataset(dataset_uri(root, location))
    if spec is None and not named and dataset.version == 1 and not dataset.count_rows():
        return None
    number = int(parts["number"] or 1)
    at = Clock().now()
    datasets = tuple(
        Dataset(each.number or 1, each, "current" if each == location else "retired", at)
        for each in sorted(several, key=lambda one: one.number or 1)
    )
    properties, notes = _properties(dataset, spec, declared.owner)
    tree = declared_partitions(spec) if spec is not None and properties.row_keys else one_leaf()
    database, _, name = full_name.partition(".")
    entry = TableEntry(table_id, database, name, location, "active", at, number)
    record = TableRecord(
        instance=declared.instance.name,
        at=0,
        state_version=0,
        lance_version=int(dataset.version),
        entry=entry,
        properties=properties,
        partitions=tree,
        datasets=datasets if number > 1 else (),
        services=(),
        savepoints=(),
    )
    origin = "the specs" if spec is not None else "none: the specs do not declare it"
    return Claim(record, Source(dataset_uri(root, location), record, None, True)), origin, notes


def _newest(root: str, several: Sequence[Location]) -> Location:
    """Returns the dataset that replaced the others, according to commit metadata. Raises Conflict if the metadata does
    not show it."""
    if len(several) == 1:
        return several[0]
    newest = max(several, key=lambda each: each.number or 1)
    kinds = [
        info.kind for infos in metadata_since(open_dataset(dataset_uri(root, newest)), 0).values() for info in infos
    ]
    if any(kind != "rewrite" for kind in kinds):  # such as a load, which only writes to the table's current dataset
        return newest
    raise Conflict(
        f"{len(several)} datasets are of one table, and no commit metadata shows which one is current: "
        f"{', '.join(sorted(several))}",
        where=root,
        remedy="move those that are not out of the root",
    )


def _properties(dataset: LanceDataset, spec: TableSpec | None, owner: str) -> tuple[TableProperties, tuple[str, ...]]:
    """Returns the properties from the specs, and notes about them. Without a spec, they are those of a table without
    keys and owner."""
    storage = Storage(
        data_storage_version=str(dataset.data_storage_version),
        stable_row_ids=None if dataset.has_stable_row_ids else False,
    )
    if spec is None:
        return TableProperties(storage=storage_in_full(storage), declared={OWNER: "", SPLIT_POINTS: []}), (
            "it has no row keys",
        )
    columns = columns_of(dataset.schema)
    keys, notes = (*spec.row_keys, *spec.sort_keys), list[str]()
    if fault := fault_of_keys(columns, keys) if keys else None:
        notes.append(f"the keys that the specs declare do not fit its columns, so it has none: {fault}")
        spec = replace(spec, row_keys=(), sort_keys=(), split_points=())
    if str(dataset.data_storage_version) == spec.storage.data_storage_version:
        storage = spec.storage
    # The next plan checks the keys of all rows before it declares them unique.
    properties = declared_properties(replace(spec, storage=storage, unique=False), owner)
    return properties, tuple(notes)
