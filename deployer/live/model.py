"""Live resources, in the models of specs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from deployer.live.former_datasets import FormerDataset
from deployer.live.uncomputed import UncomputedColumn
from deployer.specs.model import InstanceSpec, TableSpec
from deployer.specs.types.dataset import DatasetSpec
from deployer.state.model.entities import TableEntry


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Sizes of a live table: rows and bytes of the files of its newest version."""

    rows: int = 0
    bytes: int = 0
    files: int = 0
    leaves: int = 1
    lance_version: int = 0
    state_version: int = 0
    generation: int = 1
    known: bool = True  #: False when specs are compared with specs: then sizes are unknown


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table of the lake; `owner` is the `project/stack` that manages it, empty without a manager.

    `former` are its datasets beside the current one, which are removed later. `recorded`: its log has everything that
    its dataset has; otherwise this is the state that would be recorded.
    """

    spec: TableSpec
    table_id: str
    location: str
    owner: str
    statistics: TableStatistics = TableStatistics()
    former: tuple[FormerDataset, ...] = ()
    recorded: bool = True
    savepoints: tuple[str, ...] = ()  #: their names, the newest first
    rates: Mapping[str, float] = field(default_factory=dict)  #: rows a second of the last backfill, by computed column
    uncomputed: tuple[UncomputedColumn, ...] = ()  #: computed columns that lack values in some rows


@dataclass(frozen=True, slots=True)
class LiveDataset:
    """A dataset of recordings; `owner` is the `project/stack` that manages it, empty without a manager. `layers` is how
    many layers are registered with it. A declared search index without values is in `spec` too."""

    spec: DatasetSpec
    dataset_id: str
    owner: str = ""
    layers: int = 0


@dataclass(frozen=True, slots=True)
class UnfinishedTable:
    """A table whose creation or deletion was interrupted. `owner` is empty when its log does not exist yet, or no
    longer exists.

    `rows` are from its log, None without a log. `former` are its datasets beside the current one.
    """

    entry: TableEntry
    owner: str = ""
    rows: int | None = None
    protected: bool = True
    former: tuple[FormerDataset, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A table that exists and cannot be read: its log, its dataset or their content is damaged, or access is denied.

    Only its name is known, and no command changes it. `what` is the error with its place; `remedy` is what to do.
    """

    address: str
    table_id: str
    what: str
    remedy: str = ""

    @property
    def name(self) -> str:
        """`database.name`."""
        return self.address.partition("/")[2]

    @property
    def why(self) -> str:
        """Returns the error and the remedy in one line."""
        return f"{self.what}; {self.remedy}" if self.remedy else self.what

    def as_row(self) -> dict[str, str | None]:
        """Returns the table in the JSON documents of commands that list such tables."""
        return {"table": self.name, "what": self.what, "remedy": self.remedy or None}


@dataclass(frozen=True, slots=True)
class LiveLake:
    """An instance and its tables by address; `instance` is None when there is none at this root.

    `unreadable` are existing tables that cannot be read, also by address; they do not count as missing.

    `owner` is the `project/stack` that manages the instance, empty when that is unknown. `read`: the lake was read at
    the root that the specs declare, and not made from specs for a comparison. `unfinished` are tables that are being
    created or deleted; `tables` does not have them. `applied` are the tables in Pulumi's state of the stack: the
    address of each resource, and the current address of its table. The two differ after a rename by hand. `resources`
    is the reverse.
    """

    instance: InstanceSpec | None
    tables: Mapping[str, LiveTable] = field(default_factory=dict)
    owner: str = ""
    read: bool = False
    unfinished: tuple[UnfinishedTable, ...] = ()
    unreadable: Mapping[str, Unreadable] = field(default_factory=dict)
    applied: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)
    datasets: Mapping[str, LiveDataset] = field(default_factory=dict)  #: by address, as they are called now
    entries: frozenset[str] = (
        frozenset()
    )  #: names (`database.name`) of external tables that clients of the catalog made
    applied_datasets: frozenset[str] = frozenset()  #: the ids of datasets that Pulumi's state of the stack has

    def with_applied(self, ids: Mapping[str, str]) -> LiveLake:
        """Returns the lake with the ids of its tables in Pulumi's state: `ids` are their ids by the resource's
        address."""
        live = {table.table_id: address for address, table in self.tables.items()}
        live |= {table.table_id: address for address, table in self.unreadable.items()}
        applied = {address: live[table_id] for address, table_id in sorted(ids.items()) if table_id in live}
        resources = {now: address for address, now in applied.items()}
        own = frozenset(ids.values()) & {each.dataset_id for each in self.datasets.values()}
        return replace(self, applied=applied, resources=resources, applied_datasets=own)

    def at(self, address: str) -> LiveTable | Unreadable | None:
        """Returns the table with this current address."""
        return self.tables.get(address) or self.unreadable.get(address)

    def of(self, spec: TableSpec) -> LiveTable | Unreadable | None:
        """Returns the table that `spec` declares; None when it is to be created.

        The rule is the engine's: a resource in Pulumi's state, under the declared address or the one before a rename,
        is the table with the same id, whatever its current name. Any other resource takes the table with its name or
        its former name, unless that table belongs to a resource in Pulumi's state.
        """
        addresses = [spec.address, *([f"table/{spec.former_name}"] if spec.former_name else ())]
        for address in addresses:
            if address in self.applied:
                return self.at(self.applied[address])
        free = (self.at(address) for address in addresses if address not in self.resources)
        return next((table for table in free if table is not None), None)

    def without(self, table: Unreadable) -> LiveLake:
        """Returns the lake after one of its tables was found to be unreadable."""
        tables = {address: each for address, each in self.tables.items() if each.table_id != table.table_id}
        return replace(self, tables=tables, unreadable={**self.unreadable, table.address: table})
