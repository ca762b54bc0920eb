"""The declared lake as frozen values: what the specs say after includes and schemas are resolved.

`sources` maps a property's path (`"row_keys"`, `"columns.carrier.type"`, `""` for the whole) to the place that declared
it; it does not count for equality, so two specs are equal when they declare the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deployer.errors import Position
from deployer.specs.types.dataset import DatasetSpec
from deployer.specs.types.types import Column
from deployer.specs.types.view import ViewSpec

# A row-key value as `deployer.state.model.keys` encodes it: numbers, text, bytes and booleans as themselves; dates,
# times, timestamps and durations as the integers that Arrow stores; decimals as text. See `deployer.specs.values.keys`.
KeyValue = bool | int | float | str | bytes
Sources = Mapping[str, Position]


@dataclass(frozen=True, slots=True)
class Cluster:
    """The place where Spark jobs run: `local`, `emr-serverless` or `emr`; `options` are the kind's own settings."""

    name: str
    kind: str
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StateBackend:
    """The state store of the instance; `options` hold a backend's own settings (table name, endpoint)."""

    backend: str = "sqlite"
    options: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectLock:
    """The time for which S3 keeps every version of an object: `mode` is `governance` or `compliance`."""

    mode: str
    days: int


@dataclass(frozen=True, slots=True)
class AccessOnlyFrom:
    """The required origin of requests to the bucket: an organization's id, ids of VPC endpoints."""

    organization: str | None = None
    vpc_endpoints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicateTo:
    """The place to which S3 copies the lake's objects: ARNs of a bucket, and of the key that encrypts them there."""

    bucket: str
    kms_key: str | None = None


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """The settings of a lake on S3 that differ from the default; `deployer.specs.schema.aws_settings` describes
    each."""

    kms_key: str | None = None  #: `managed` for a key of the lake's own, or an ARN; None: AWS's own keys
    state_capacity: tuple[int, int] | None = None  #: read and write units of the state's table; None: paid by request
    permissions_boundary: str | None = None  #: ARN of the policy that bounds the stack's roles
    state_ceiling: tuple[int, int] = (4_000, 1_000)  #: read and write units a second of a table paid by request
    budget: int | None = None  #: USD a month, 0 for none; None: by the expected cost
    access_logs: str = "managed"  #: `managed`, `none` or s3://bucket/prefix
    object_lock: ObjectLock | None = None
    replicate_to: ReplicateTo | None = None
    emr_certificates: str | None = None  #: s3://… of a zip file
    only_from: AccessOnlyFrom = AccessOnlyFrom()


@dataclass(frozen=True, slots=True)
class InstanceSpec:
    """A lake: its root, its state store and its clusters."""

    name: str
    root: str
    description: str = ""
    engine: str = "auto"  #: `auto`, `embedded` or `cli`
    state: StateBackend = StateBackend()
    clusters: tuple[Cluster, ...] = ()  #: by name
    tags: Mapping[str, str] = field(default_factory=dict)
    notify: tuple[str, ...] = ()  #: e-mail addresses that are notified of failed runs
    aws: AwsSettings = field(
        default=AwsSettings(), compare=False
    )  #: tags of the stack's resources, not of the lake itself
    sources: Sources = field(default_factory=dict, compare=False, repr=False)

    @property
    def address(self) -> str:
        return f"instance/{self.name}"


@dataclass(frozen=True, slots=True)
class Storage:
    """The way Lance writes the table's files. Sizes in rows and bytes."""

    data_storage_version: str = "2.1"
    max_rows_per_file: int = 1_048_576
    max_bytes_per_file: int = 1_073_741_824
    stable_row_ids: bool | None = None  #: None: on for tables without row keys, off for tables with them
    keep_replaced_for: str = "7d"  #: how long a dataset is kept after a rewrite replaced it, in canonical form


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index of a table. `columns` are dotted paths; `parameters` are those that differ from the kind's defaults."""

    name: str
    columns: tuple[str, ...]
    kind: str
    parameters: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Embedding:
    """The function that makes vectors of texts: `package.module:function`, of a column's texts for another's vectors.

    It gets a list of texts, and returns a vector for each. The columns are dotted paths.
    """

    function: str
    column: str
    vector: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """The conditions under which a service runs by itself; one is enough. Conditions other than the schedule count from
    its last run."""

    schedule: str | None = None  #: a cron expression of five fields
    timezone: str = "UTC"  #: the time zone of the schedule
    commits: int | None = None
    rows: int | None = None
    bytes: int | None = None
    small_files: int | None = None  #: number of small files of the table
    deleted_share: float | None = None  #: of the rows in the table's files


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """A table service. `options` are those that differ from the kind's defaults; texts of any name if `unsafe_raw`."""

    kind: str  #: one of `service_schema.KINDS`, such as `COMPACT`
    trigger: Trigger | None = None  #: None: on demand only
    cluster: str | None = None  #: None: the default cluster of the table's jobs
    options: Mapping[str, object] = field(default_factory=dict)
    unsafe_raw: bool = False

    @property
    def name(self) -> str:
        """The name in specs and addresses: `compact`."""
        return self.kind.lower()

    @property
    def trigger_mode(self) -> str:
        return "AUTOMATIC" if self.trigger else "ON_DEMAND"


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of rows: EXPIRE removes those whose date or time in `column` is older than `keep`."""

    column: str
    keep: str  #: in canonical form, such as `400d`


@dataclass(frozen=True, slots=True)
class Hold:
    """A legal hold: rows for which `where` is true are neither deleted nor changed; without it, all rows."""

    name: str
    where: str = ""  #: an SQL condition; empty: every row
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table, or a materialized view: columns, keys, partition tree and flags.

    `split_points` are prefixes of the row-key tuple in ascending order; leaf i holds the keys k with
    split_points[i-1] <= k < split_points[i], compared lexicographically.
    """

    database: str
    name: str
    columns: tuple[Column, ...]
    row_keys: tuple[str, ...] = ()
    sort_keys: tuple[str, ...] = ()
    split_points: tuple[tuple[KeyValue, ...], ...] = ()
    max_rows_per_leaf: int | None = None  #: leaves with more rows are split after a load; None: only by hand
    description: str = ""
    online: bool = True
    deletion_protection: bool = True
    storage: Storage = Storage()
    renamed_from: str | None = None  #: former `database.name` or `name`; it counts for planning, not for equality
    tags: Mapping[str, str] = field(default_factory=dict)
    indexes: tuple[IndexSpec, ...] = ()  #: by name
    services: tuple[ServiceSpec, ...] = ()  #: one of a kind, in the order of `service_schema.KINDS`
    unique: bool = False  #: two rows may not have the same row keys: loads refuse or skip rows with existing keys
    embedding: Embedding | None = None
    retention: Retention | None = None  #: None: rows never expire
    holds: tuple[Hold, ...] = ()  #: by name
    retain_changes: str | None = None  #: how long changes can be read, in canonical form; None: as long as versions are
    view: ViewSpec | None = None  #: how the rows are computed from other tables; None: they are loaded
    sources: Sources = field(default_factory=dict, compare=False, repr=False)

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"

    @property
    def address(self) -> str:
        return f"table/{self.full_name}"

    @property
    def former_name(self) -> str | None:
        """The `database.name` that `renamed_from` means, by default in the same database; None without it."""
        if not self.renamed_from:
            return None
        return self.renamed_from if "." in self.renamed_from else f"{self.database}.{self.renamed_from}"


@dataclass(frozen=True, slots=True)
class Lake:
    """Everything that one set of specs declares: exactly one instance, its tables (including views), and its datasets
    of recordings."""

    instance: InstanceSpec
    tables: tuple[TableSpec, ...] = ()
    files: tuple[str, ...] = ()  #: the spec files read, relative to the project
    datasets: tuple[DatasetSpec, ...] = ()

    def table(self, full_name: str) -> TableSpec | None:
        return next((table for table in self.tables if table.full_name == full_name), None)

    def dataset(self, name: str) -> DatasetSpec | None:
        return next((dataset for dataset in self.datasets if dataset.name == name), None)
