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
    """Sets properties of the instance; a value of None removes the property."""

    TAG = "set-instance-properties"

    changes: Mapping[str, JSON]


@dataclass(frozen=True, slots=True)
class RegisterTable:
    """Registers a table in the instance, under a free name."""

    TAG = "register-table"

    entry: TableEntry


@dataclass(frozen=True, slots=True)
class SetTableStatus:
    TAG = "set-table-status"
    table_id: TableId
    status: TableStatus


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Gives a table another name; its id, its location and its log stay the same."""

    TAG = "rename-table"

    table_id: TableId
    database: Name
    name: Name


@dataclass(frozen=True, slots=True)
class SetTableDataset:
    """Records that the table's data is in another Lance dataset. The same transaction has the `TableRewritten` in the
    table's log."""

    TAG = "set-table-dataset"

    table_id: TableId
    location: Location
    dataset: int


@dataclass(frozen=True, slots=True)
class RemoveTable:
    """Removes a table from the instance and frees its name."""

    TAG = "remove-table"

    table_id: TableId


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Creates a table; it is the first update of the table's log.

    `schema` is the Arrow schema (IPC bytes). `partitions` is the whole tree; empty means one partition, `root`.
    """

    TAG = "create-table"

    properties: TableProperties
    schema: bytes
    lance_version: int
    partitions: tuple[Partition, ...] = ()


@dataclass(frozen=True, slots=True)
class SetTableProperties:
    """Sets fields of `TableProperties`, except `generation`. `storage`, `tags` and `declared` are replaced as a
    whole."""

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
    """Records a dataset version that did not change any data file, such as one that built an index."""

    TAG = "set-lance-version"

    lance_version: int


@dataclass(frozen=True, slots=True)
class CommitStarted:
    """Records that a job is about to commit to Lance on top of `base_lance_version`.

    `restore` is set only for a restore, and states what it restores.
    """

    TAG = "commit-started"

    job_id: str
    kind: str
    base_lance_version: int
    restore: RestoreTarget | None = field(default=None, metadata={"sparse": True})


@dataclass(frozen=True, slots=True)
class FilesAdded:
    """Records the files that dataset version `lance_version` added.

    With a `job_id`, it also records that this job is done and added `rows` rows.
    """

    TAG = "files-added"

    files: tuple[File, ...]
    lance_version: int
    job_id: str | None = None
    rows: int = 0
    kind: str = "ingest"  #: the kind of the job, if it has no `CommitStarted`
    sources: str = field(default="", metadata={"sparse": True})  #: the files that the job read, as in `Job`


@dataclass(frozen=True, slots=True)
class FilesReplaced:
    """Records the files that dataset version `lance_version` rewrote: `added` replaces `removed` (fragment ids)."""

    TAG = "files-replaced"

    removed: tuple[int, ...]
    added: tuple[File, ...]
    lance_version: int
    job_id: str | None = None
    kind: str = "compact"


@dataclass(frozen=True, slots=True)
class RowsLeft:
    """The number of rows that are left in a file after some of its rows were deleted."""

    fragment_id: int
    rows: int


@dataclass(frozen=True, slots=True)
class RowsChanged:
    """Records a change of rows in dataset version `lance_version`: `left` are files that lost rows, `removed` are the
    fragment ids of removed files, and `added` are new files.

    A file of `left` keeps its partition, its order and its ranges, which still hold for the rows that are left. With a
    `job_id`, it also records that this job is done.
    """

    TAG = "rows-changed"

    left: tuple[RowsLeft, ...]
    removed: tuple[int, ...]
    added: tuple[File, ...]
    lance_version: int
    job_id: str | None = None
    kind: str = "delete"
    counts: RowCounts = RowCounts()
    sources: str = field(default="", metadata={"sparse": True})  #: the files that the job read, as in `Job`


@dataclass(frozen=True, slots=True)
class FilesRemoved:
    TAG = "files-removed"
    removed: tuple[int, ...]
    lance_version: int


@dataclass(frozen=True, slots=True)
class CommitAbandoned:
    """Records that a started commit never reached Lance."""

    TAG = "commit-abandoned"

    job_id: str


@dataclass(frozen=True, slots=True)
class PartitionSplit:
    """Splits a leaf into two at an encoded key prefix. The files of the leaf stay recorded under it until they are
    rewritten."""

    TAG = "partition-split"

    partition_id: str
    split_point: bytes
    left_id: str
    right_id: str


@dataclass(frozen=True, slots=True)
class RewriteStarted:
    """Records that a rewrite is about to write the table's rows into a new dataset.

    `number` is greater than the numbers of all earlier datasets.
    """

    TAG = "rewrite-started"

    number: int
    location: Location
    target: str


@dataclass(frozen=True, slots=True)
class TableRewritten:
    """Replaces the current dataset by the new one. The old dataset stays at `retired_location` until it is removed.

    The records of the old dataset are replaced. `lance_version` is a version of the new dataset. Records of finished
    jobs stay unless `forgets_jobs` is set. Unfinished commits are forgotten, because they were to the old dataset.
    """

    TAG = "table-rewritten"

    number: int
    retired_location: Location
    schema: bytes
    lance_version: int
    partitions: tuple[Partition, ...]
    files: tuple[File, ...]
    forgets_jobs: bool = False  #: the new dataset has none of the rows that the jobs added, so they can run again


@dataclass(frozen=True, slots=True)
class TableRestored:
    """Restores the table to an earlier moment. Version `lance_version` of dataset `number` has the rows of that moment.

    `savepoint` is the savepoint's name, or `version-DATASET.VERSION` for a restore to a version. The records of that
    moment replace the current ones. Later jobs are forgotten, so that they can run again. If `number` is not the
    current dataset, the current dataset is retired at `retired_location`. Runs and savepoints stay. `job_id` is the id
    of the run that restored the table; it is recorded as a finished job.
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
    """Replaces the records of the table by those read from its dataset, after the state store was lost (`state
    rebuild`).

    Runs and savepoints stay. It may be the first update of a log.
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
    """Records that the files of a retired dataset, or of the new dataset of an abandoned rewrite, are removed."""

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
