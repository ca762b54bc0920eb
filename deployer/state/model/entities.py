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
    """The instance's record of a table.

    `location` is relative to the instance root, and changes only when another dataset becomes the current one.
    `dataset` is the number of the Lance dataset at the location (see `Dataset`).
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
    """The state of the instance at one version of its log. Version 0 is the empty log."""

    version: int = 0
    properties: Mapping[str, JSON] = field(default_factory=dict)
    tables: Mapping[str, TableEntry] = field(default_factory=LayeredMap)
    at: int = 0  #: time of the last entry

    def by_name(self, full_name: str) -> TableEntry | None:
        """Returns the table with this `database.name`, whatever its status, or None. A name is free only after its
        table is removed."""
        return next((table for table in self.tables.values() if table.full_name == full_name), None)


@dataclass(frozen=True, slots=True)
class TableProperties:
    """The declared properties of a table. `generation` counts the commits that changed the properties or the schema.

    `services_cluster` is the cluster for services that are attached by hand without a cluster (see `MoveServices`).
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
    """A node of the partition tree: the keys k with lower <= k < upper, as encoded prefixes. `upper` None is unbounded.

    A leaf has no children. Any other node has exactly two, which are separated at `split_point`.
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


REARRANGES = frozenset({"compact", "cluster"})  #: kinds of jobs that only rewrite rows that the table has already


@dataclass(frozen=True, slots=True)
class RowCounts:
    """The numbers of rows that a change inserted, updated and deleted."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def changed(self) -> int:
        """The number of all rows that the change touched."""
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class Job:
    """A completed job. It is kept until the table is emptied, so that the same job id is never committed twice.

    `rows` is the number of written rows, or of affected rows for a change of rows. `sources` are the files of a load,
    or the request of a backfill, as JSON; empty when they are unknown. `counts` is set for a change of rows (update,
    delete, merge) and None for other jobs.
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
        """The number of rows that the job added to the table or changed."""
        if self.counts is not None:
            return self.counts.inserted + self.counts.updated
        return 0 if self.kind in REARRANGES else self.rows


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """The target of a restore of a table, and the tables that are restored together: all of them or none.

    `name` is the name of the savepoint, or `version-DATASET.VERSION`. The rows are those of version `lance_version` of
    dataset number `dataset`. Version `state_version` of the table's log has everything else. `generation` is the
    generation of the table's properties when the restore began. `catalog`: the catalog is restored together with the
    tables, to its savepoint of the same name.
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
    """The recorded intent of a job to commit to Lance, which has no recorded outcome. `restore` is set for a
    restore."""

    job_id: str
    kind: str
    started_at: int = field(metadata=TIME)
    base_lance_version: int
    restore: RestoreTarget | None = None

    @property
    def together(self) -> tuple[TableId, ...]:
        """The tables that are restored together or with the catalog, including this one. It is empty for a restore of
        this table alone and for other jobs."""
        if self.restore is None:
            return ()
        return self.restore.tables if len(self.restore.tables) > 1 or self.restore.catalog else ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """One of the Lance datasets that a table has had. The first has number 1, and each rewrite makes the next one.

    `since` is the time at which it got its status. `lance_version` is the last recorded version of a retired dataset;
    versions of different datasets are unrelated. `target` is a fingerprint of the result of a rewrite.
    """

    number: int
    location: Location
    status: DatasetStatus
    since: int = field(metadata=TIME)
    lance_version: int = 0
    target: str = ""


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a table at one version of its log. Version 0 is the empty log. `schema` is an Arrow schema (IPC
    bytes).

    `lance_version` is a version of the current dataset. `datasets` are all datasets that the table has had, oldest
    first; it is empty until the first rewrite.
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
    at: int = 0  #: time of the last entry
    datasets: tuple[Dataset, ...] = ()
    services: Mapping[ServiceKind, Service] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=LayeredMap)  #: by id; of the ended runs, only the newest
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
