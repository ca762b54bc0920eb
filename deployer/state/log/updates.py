"""The changes of a transaction: two closed unions of values, one for each kind of log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deployer.state.log.catalog_updates import CatalogUpdate
from deployer.state.log.service_updates import ServiceUpdate
from deployer.state.model.entities import (
    JSON,
    Dataset,
    File,
    Job,
    Name,
    Partition,
    RestoreTarget,
    RowCounts,
    Service,
    TableEntry,
    TableId,
    TableProperties,
    TableStatus,
)
from deployer.state.model.location import Location, LocationOrNone
from deployer.state.model.names import SavepointName


@dataclass(frozen=True, slots=True)
class SetInstanceProperties:
    """Sets the properties given; a value of None removes the property."""

    TAG = "set-instance-properties"

    changes: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """Makes a table known under a name that is free."""

    TAG = "register-table"

    entry: TableEntry


@dataclass(frozen=True, slots=True)
class SetTableStatus:
    TAG = "set-table-status"
    table_id: TableId
    status: TableStatus


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Gives a table another name; its id, location and log stay."""

    TAG = "rename-table"

    table_id: TableId
    database: Name
    name: Name


@dataclass(frozen=True, slots=True)
class SetTableDataset:
    """The table's data is in another Lance dataset from now on: goes with the `TableRewritten` of its log."""

    TAG = "set-table-dataset"

    table_id: TableId
    location: Location
    dataset: int


@dataclass(frozen=True, slots=True)
class RemoveTable:
    """Forgets a table and frees its name."""

    TAG = "remove-table"

    table_id: TableId


@dataclass(frozen=True, slots=True)
class CreateTable:
    """The first update of a table's log. `partitions` is the whole tree; empty means one partition, `root`."""

    TAG = "create-table"

    properties: TableProperties
    schema: bytes
    lance_version: int
    partitions: tuple[Partition, ...] = ()


@dataclass(frozen=True, slots=True)
class SetTableProperties:
    """Sets fields of `TableProperties` (not `generation`); `storage`, `tags` and `declared` are replaced whole."""

    TAG = "set-table-properties"

    changes: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class SetSchema:
    """Replaces the Arrow schema (IPC bytes); `lance_version` is the dataset version that has it."""

    TAG = "set-schema"

    schema: bytes
    lance_version: int


@dataclass(frozen=True, slots=True)
class SetLanceVersion:
    """Records a dataset version that changed no file, such as one that built an index."""

    TAG = "set-lance-version"

    lance_version: int


@dataclass(frozen=True, slots=True)
class CommitStarted:
    """A job is about to commit to Lance on top of `base_lance_version`. A restore says what it restores."""

    TAG = "commit-started"

    job_id: str
    kind: str
    base_lance_version: int
    restore: RestoreTarget | None = field(default=None, metadata={"sparse": True})


@dataclass(frozen=True, slots=True)
class FilesAdded:
    """Files that dataset version `lance_version` added; with a job id the job is done and added `rows` rows."""

    TAG = "files-added"

    files: tuple[File, ...]
    lance_version: int
    job_id: str | None = None
    rows: int = 0
    kind: str = "ingest"  #: of the job, when there is no `CommitStarted`
    sources: str = field(default="", metadata={"sparse": True})  #: as `Job` has them


@dataclass(frozen=True, slots=True)
class FilesReplaced:
    """Files that dataset version `lance_version` rewrote: `removed` became `added`."""

    TAG = "files-replaced"

    removed: tuple[int, ...]
    added: tuple[File, ...]
    lance_version: int
    job_id: str | None = None
    kind: str = "compact"


@dataclass(frozen=True, slots=True)
class RowsLeft:
    """The number of rows that a file has left after some of them were deleted."""

    fragment_id: int
    rows: int


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """A change of rows in dataset version `lance_version`: files that lost rows or are gone, and files that came.

    A file of `left` keeps its partition, its order and its ranges, which are still true of the rows that are left.
    With a job id the job is done.
    """

    TAG = "rows-changed"

    left: tuple[RowsLeft, ...]
    removed: tuple[int, ...]
    added: tuple[File, ...]
    lance_version: int
    job_id: str | None = None
    kind: str = "delete"
    counts: RowCounts = RowCounts()
    sources: str = field(default="", metadata={"sparse": True})  #: files that the job read, as `Job` has them


@dataclass(frozen=True, slots=True)
class FilesRemoved:
    TAG = "files-removed"
    removed: tuple[int, ...]
    lance_version: int


@dataclass(frozen=True, slots=True)
class CommitAbandoned:
    """A started commit that is known never to have reached Lance."""

    TAG = "commit-abandoned"

    job_id: str


@dataclass(frozen=True, slots=True)
class PartitionSplit:
    """Splits a leaf in two at an encoded key prefix. Its files stay recorded under it until they are rewritten."""

    TAG = "partition-split"

    partition_id: str
    split_point: bytes
    left_id: str
    right_id: str


@dataclass(frozen=True, slots=True)
class RewriteStarted:
    """A rewrite is about to write the table's rows into a new dataset, numbered above all there were."""

    TAG = "rewrite-started"

    number: int
    location: Location
    target: str


@dataclass(frozen=True, slots=True)
class TableRewritten:
    """The new dataset replaces the current one, which is kept at `retired_location` until it is removed.

    Everything recorded of the dataset is replaced; `lance_version` counts the new one's versions. Jobs stay done,
    unless `forgets_jobs`, and commits under way are forgotten: they were to the old dataset.
    """

    TAG = "table-rewritten"

    number: int
    retired_location: Location
    schema: bytes
    lance_version: int
    partitions: tuple[Partition, ...]
    files: tuple[File, ...]
    forgets_jobs: bool = False  #: the new dataset holds nothing that they added, so they can be run again


@dataclass(frozen=True, slots=True)
class TableRestored:
    """The table is as it was at an earlier moment: version `lance_version` of dataset `number` holds the rows of then.

    `savepoint` is the savepoint's name, or `version-DATASET.VERSION` of a restore to a version.
    Everything recorded of then replaces what there is; jobs done since are forgotten, so that they can be run
    again. Where `number` is not the current dataset's, that one is retired at `retired_location`. Runs and savepoints
    stay. `job_id` is the run that restored it, done from now on.
    """

    TAG = "table-restored"

    job_id: str
    savepoint: SavepointName
    number: int
    retired_location: LocationOrNone
    lance_version: int
    schema: bytes
    properties: TableProperties
    partitions: tuple[Partition, ...]
    files: tuple[File, ...]
    jobs: tuple[Job, ...]
    services: tuple[Service, ...]


@dataclass(frozen=True, slots=True)
class TableRebuilt:
    """Everything recorded of the table, as read from its dataset after the state store was lost (`state rebuild`).

    It replaces what there is, runs and savepoints aside, and may be the first update of a log.
    """

    TAG = "table-rebuilt"

    lance_version: int
    schema: bytes
    properties: TableProperties
    partitions: tuple[Partition, ...]
    files: tuple[File, ...]
    jobs: tuple[Job, ...]
    services: tuple[Service, ...]
    datasets: tuple[Dataset, ...]

    @property
    def number(self) -> int:
        """The number of the current dataset."""
        return next((each.number for each in self.datasets if each.status == "current"), 1)


@dataclass(frozen=True, slots=True)
class DatasetRemoved:
    """The files of a retired dataset, or of one that a rewrite gave up, are removed."""

    TAG = "dataset-removed"

    number: int


InstanceUpdate = (
    SetInstanceProperties | RegisterTable | SetTableStatus | RenameTable | SetTableDataset | RemoveTable | CatalogUpdate
)
TableUpdate = (
    CreateTable
    | SetTableProperties
    | SetSchema
    | SetLanceVersion
    | CommitStarted
    | FilesAdded
    | FilesReplaced
    | RowsChanged
    | FilesRemoved
    | CommitAbandoned
    | PartitionSplit
    | RewriteStarted
    | TableRewritten
    | TableRestored
    | TableRebuilt
    | DatasetRemoved
    | ServiceUpdate
)
Update = InstanceUpdate | TableUpdate
