"""The state of an instance and of a table, as values. Times are milliseconds since 1970 (UTC)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from deployer.platform.files.json_values import JSON
from deployer.state.model.files.data_file import File
from deployer.state.model.files.files import Files
from deployer.state.model.location import Location
from deployer.state.model.names import INSTANCE, Name, SavepointName, TableId
from deployer.state.model.persistent_map import LayeredMap
from deployer.state.model.services import Run, Savepoint, Service, ServiceKind
from deployer.state.model.times import TIME

__all__ = [
    "INSTANCE_LOG",
    "JSON",
    "Dataset",
    "DatasetStatus",
    "File",
    "Files",
    "InstanceState",
    "Intent",
    "Job",
    "Location",
    "Name",
    "Partition",
    "RowCounts",
    "Run",
    "Savepoint",
    "Service",
    "ServiceKind",
    "State",
    "TableEntry",
    "TableId",
    "TableProperties",
    "TableState",
    "TableStatus",
]

INSTANCE_LOG = INSTANCE  #: the log of the instance; every other log is named by its table's id

TableStatus = Literal["creating", "active", "deleting"]
DatasetStatus = Literal["writing", "current", "retired", "removed"]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A table as the instance knows it. `location` is relative to the instance root; only a rewrite gives another.

    `dataset` numbers the Lance dataset that is there (see `Dataset`).
    """

    table_id: TableId
    database: Name
    name: Name
    location: Location
    status: TableStatus
    created_at: int = field(metadata=TIME)
    dataset: int = 1

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def address(self) -> str:
        return f"table/{self.full_name}"


@dataclass(frozen=True, slots=True)
class InstanceState:
    """The instance at one version of its log; version 0 is the empty log."""

    version: int = 0
    properties: Mapping[str, JSON] = field(default_factory=dict)
    tables: Mapping[str, TableEntry] = field(default_factory=LayeredMap)
    at: int = 0  #: when the last entry was written

    def by_name(self, full_name: str) -> TableEntry | None:
        """Returns the table of that `database.name`, whatever its status: a name is free once its table is removed."""
        return next((table for table in self.tables.values() if table.full_name == full_name), None)


@dataclass(frozen=True, slots=True)
class TableProperties:
    """The declared properties of a table. `generation` counts the commits that changed properties or schema.

    `services_cluster` is the cluster of services that are attached by hand and name none (see `MoveServices`).
    """

    generation: int = 1
    row_keys: tuple[str, ...] = ()
    sort_keys: tuple[str, ...] = ()
    online: bool = True
    deletion_protection: bool = True
    description: str = ""
    storage: Mapping[str, JSON] = field(default_factory=dict)
    tags: Mapping[str, JSON] = field(default_factory=dict)
    declared: Mapping[str, JSON] = field(default_factory=dict)
    services_cluster: str | None = field(default=None, metadata={"sparse": True})


@dataclass(frozen=True, slots=True)
class Partition:
    """A node of the partition tree: the keys k with lower <= k < upper (None: no end), as encoded prefixes.

    A leaf has no children; any other node has exactly two, parted at `split_point`.
    """

    partition_id: str
    parent: str | None
    lower: bytes = b""
    upper: bytes | None = None
    children: tuple[str, ...] = ()
    split_point: bytes | None = None

    @property
    def is_leaf(self) -> bool:
        return not self.children

    def holds(self, key: bytes) -> bool:
        return self.lower <= key and (self.upper is None or key < self.upper)


REARRANGES = frozenset({"compact", "cluster"})  #: kinds of jobs whose rows the table had before


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The numbers of rows that a change inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def changed(self) -> int:
        """All rows that it touched."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class Job:
    """A completed job; it is kept until the table is emptied, so that the same job id is never committed twice.

    `rows` is the number of written rows, or of affected rows for a change of rows. `sources` are the files of a load,
    or the request of a backfill, as JSON; empty when they are unknown. `counts` are those of a change of rows (update,
    delete, merge), None for other jobs.
    """

    job_id: str
    kind: str
    rows: int
    lance_version: int
    at: int = field(metadata=TIME)
    sources: str = field(default="", metadata={"sparse": True})
    counts: RowCounts | None = field(default=None, metadata={"sparse": True})

    @property
    def added(self) -> int:
        """Rows that it wrote and that the table did not have, or had with other values."""
        if self.counts is not None:
            return self.counts.inserted + self.counts.updated
        return 0 if self.kind in REARRANGES else self.rows


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """The target of a restore of a table, and the tables that are restored together: all of them or none.

    `name` is the savepoint's, or `version-DATASET.VERSION`. The rows are those of version `lance_version` of dataset
    number `dataset`; version `state_version` of the table's log has the rest. `generation` is that of the table's
    properties when the restore began. `catalog`: the catalog is restored to its savepoint of that
    name together with them.
    """

    name: SavepointName
    dataset: int
    lance_version: int
    state_version: int
    generation: int
    tables: tuple[TableId, ...]
    catalog: bool = field(default=False, metadata={"sparse": True})


@dataclass(frozen=True, slots=True)
class Intent:
    """The recorded intent of a job to commit to Lance, without an outcome. `restore` is given for a restore."""

    job_id: str
    kind: str
    started_at: int = field(metadata=TIME)
    base_lance_version: int
    restore: RestoreTarget | None = None

    @property
    def together(self) -> tuple[TableId, ...]:
        """The tables that are restored together, or with the catalog, this one included; empty for anything else."""
        if self.restore is None:
            return ()
        return self.restore.tables if len(self.restore.tables) > 1 or self.restore.catalog else ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """One of the Lance datasets that a table has had: the first is number 1, and each rewrite makes the next.

    `since` is when it got its status. `lance_version` is the last version that was recorded of a retired one, whose own
    versions have nothing to do with those of the others. `target` names what a rewrite makes (a fingerprint).
    """

    number: int
    location: Location
    status: DatasetStatus
    since: int = field(metadata=TIME)
    lance_version: int = 0
    target: str = ""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one version of its log; version 0 is the empty log. `schema` is an Arrow IPC schema.

    `lance_version` is of the current dataset. `datasets` are all there were, oldest first; empty until a first rewrite.
    """

    version: int = 0
    table_id: str = ""
    properties: TableProperties = TableProperties()
    schema: bytes = b""
    lance_version: int = 0
    partitions: Mapping[str, Partition] = field(default_factory=LayeredMap)
    files: Files = field(default_factory=Files)
    jobs: Mapping[str, Job] = field(default_factory=LayeredMap)
    intents: Mapping[str, Intent] = field(default_factory=LayeredMap)
    at: int = 0  #: when the last entry was written
    datasets: tuple[Dataset, ...] = ()
    services: Mapping[ServiceKind, Service] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=LayeredMap)  #: by id; the newest of those that ended
    savepoints: Mapping[str, Savepoint] = field(default_factory=dict)  #: by name

    @property
    def dataset(self) -> int:
        """The number of the current dataset."""
        return next((each.number for each in self.datasets if each.status == "current"), 1)

    def leaves(self) -> tuple[Partition, ...]:
        """Returns the leaf partitions in the order of their keys."""
        leaves = [partition for partition in self.partitions.values() if partition.is_leaf]
        return tuple(sorted(leaves, key=lambda leaf: leaf.lower))


State = InstanceState | TableState
