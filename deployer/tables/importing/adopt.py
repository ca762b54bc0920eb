"""Takes a plain Lance dataset that lies under an instance's root under management where it is; no data moves."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deployer.datasets.dataset import open_dataset
from deployer.datasets.indexes.read import observed_indexes
from deployer.datasets.recovery.unrecorded import adopted_updates
from deployer.datasets.storage.removal import needed_by
from deployer.errors import Conflict, InvalidInput, NotFound, Refused
from deployer.platform.system.clock import Clock
from deployer.specs.model import Storage, TableSpec
from deployer.specs.rules import Rule
from deployer.specs.serialized.specs import storage_in_full
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.column_names import NameFault, name_fault
from deployer.specs.types.lance_support import Finding, type_findings
from deployer.specs.types.types import Column
from deployer.state.commits import Part
from deployer.state.log.requirements import LogEmpty, NameFree
from deployer.state.log.updates import CreateTable, RegisterTable
from deployer.state.model.declared_properties import OWNER, SPLIT_POINTS
from deployer.state.model.entities import INSTANCE_LOG, TableEntry, TableProperties, TableState
from deployer.state.model.location import Location
from deployer.state.store import StateStore
from deployer.tables.layout.partitions.split_points import one_leaf

MANAGED_VERSIONS = ("2.1", "2.2")  #: of the file format, those that a spec can declare


@dataclass(frozen=True, slots=True)
class Adoptable:
    """A dataset under the root: its location, relative to the root, and the spec that declares it as it is."""

    location: Location
    spec: TableSpec


def is_dataset(path: Path) -> bool:
    """Returns whether a folder is a Lance dataset."""
    return path.is_dir() and (path / "_versions").is_dir()


def plain_datasets(root: str) -> Iterator[Path]:
    """Yields the datasets directly in a root on disk, as LanceDB keeps them, by name."""
    folder = Path(root)
    if folder.is_dir():
        yield from (path for path in sorted(folder.glob("*.lance")) if is_dataset(path))


def location_under(root: str, path: Path) -> str | None:
    """Returns the dataset's location relative to the root; None when it lies elsewhere."""
    real, folder = path.resolve(), Path(root).resolve()
    return real.relative_to(folder).as_posix() if real.is_relative_to(folder) and real != folder else None


def adoptable(root: str, path: Path, database: str, name: str) -> Adoptable:
    """Returns the dataset at `path` as table `database.name`, without row keys and exactly as it is.

    Raises NotFound without a dataset, InvalidInput for columns that no table can have, Refused for a dataset outside of
    the root or in an older file format.
    """
    if not is_dataset(path):
        raise NotFound("there is no Lance dataset", where=path, remedy="give its folder, which ends in .lance")
    under = location_under(root, path)
    if under is None:
        raise Refused("the dataset lies outside of the instance's root", where=path, remedy="import it by copy")
    try:
        location = Location(under)
    except ValueError as error:
        raise Refused(
            f"a table cannot be stored there: {error}",
            where=path,
            remedy="move the folder, or import it by copy: add --copy",
        ) from None
    dataset = open_dataset(str(path))
    version = str(dataset.data_storage_version)
    if version not in MANAGED_VERSIONS:
        raise Refused(
            f"its files are of version {version}, and tables have {' or '.join(MANAGED_VERSIONS)}",
            where=path,
            remedy="import it by copy: add --copy",
        )
    stable = bool(dataset.has_stable_row_ids)
    columns = columns_of(dataset.schema)
    for fault in _name_faults(columns):
        remedy = f"rename it with Lance's alter_columns, or import a copy of the data: {fault.remedy}"
        raise InvalidInput(fault.what, where=path, remedy=remedy)
    storage = Storage(data_storage_version=version, stable_row_ids=None if stable else False)
    observed = observed_indexes(dataset)
    indexes = tuple(observed[index].index for index in sorted(observed))
    return Adoptable(location, TableSpec(database, name, columns, storage=storage, indexes=indexes))


def _name_faults(columns: Sequence[Column]) -> Iterator[NameFault | Finding]:
    for column in columns:
        if fault := name_fault(column.name):
            yield fault
        yield from (finding for finding in type_findings(column) if finding.rule is Rule.BAD_TEXT)


def adopt(store: StateStore, root: str, found: Adoptable, owner: str) -> str:
    """Registers the dataset, whole or not at all, as a table that `owner` manages; gives the table's id.

    Nothing happens when it was adopted as that table before. Raises Conflict when the name or the dataset belongs to
    another table, as a dataset that a rewrite replaced does for as long as it is kept.
    """
    spec = found.spec
    for other in store.instance().tables.values():
        if other.location == found.location and other.full_name == spec.full_name and other.status == "active":
            return other.table_id
        if other.location == found.location:
            raise Conflict(
                f"the dataset belongs to table {other.full_name}",
                where=found.location,
                remedy="there is nothing to import",
            )
        if needed := needed_by(store, other, found.location):
            raise Conflict(
                needed,
                where=found.location,
                remedy="import it by copy: add --copy",
            )
    dataset = open_dataset(f"{root.rstrip('/')}/{found.location}")
    table_id, at = uuid.uuid4().hex, Clock().now()
    entry = TableEntry(table_id, spec.database, spec.name, found.location, "active", at)
    properties = TableProperties(
        deletion_protection=spec.deletion_protection,
        storage=storage_in_full(spec.storage),
        declared={OWNER: owner, SPLIT_POINTS: []},
    )
    schema = dataset.schema.serialize().to_pybytes()
    partitions = one_leaf()
    create = CreateTable(properties, schema, dataset.version, partitions)
    empty = TableState(
        table_id=table_id,
        properties=properties,
        schema=schema,
        lance_version=dataset.version,
        partitions={partition.partition_id: partition for partition in partitions},
    )
    # One transaction: a table that is only being created would be created again, and its data removed, by the next run.
    store.commit_all(
        [
            Part(
                INSTANCE_LOG,
                [RegisterTable(entry)],
                [NameFree(entry.database, entry.name)],
            ),
            Part(table_id, [create, *adopted_updates(dataset, empty)], [LogEmpty()]),
        ]
    )
    return table_id
