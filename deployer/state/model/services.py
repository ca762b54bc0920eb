"""Table services, their runs, and savepoints, as values of a table's state. Times are milliseconds since 1970 (UTC)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from deployer.platform.files.json_values import JSON
from deployer.state.model.names import SavepointName
from deployer.state.model.times import TIME

ServiceKind = Literal[
    "COMPACT",
    "CLUSTER",
    "CLEAN",
    "METASYNC",
    "AUTOSAVEPOINT",
    "LOAD_COLUMNS",
    "RESTORE",
    "INGEST",
    "EXPIRE",
    "BACKFILL",
    "REFRESH",
]
TriggerMode = Literal["AUTOMATIC", "ON_DEMAND"]
RunStatus = Literal["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"]
FinalStatus = Literal["SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"]
Wish = Literal["pause", "cancel"]

#: The statuses that may follow each status of a run. A paused run stays RUNNING: its holder waits and keeps its lease.
TRANSITIONS: Mapping[RunStatus, frozenset[RunStatus]] = {
    "QUEUED": frozenset({"RUNNING", "FAILED", "CANCELLED", "SKIPPED"}),
    "RUNNING": frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"}),
    "SUCCEEDED": frozenset(),
    "FAILED": frozenset(),
    "CANCELLED": frozenset(),
    "SKIPPED": frozenset(),
}

#: For each service, the other services that must not have a running run when a run of the service starts.
EXCLUDES: Mapping[ServiceKind, tuple[ServiceKind, ...]] = {
    "COMPACT": ("CLUSTER", "RESTORE", "EXPIRE"),
    "CLUSTER": ("COMPACT", "RESTORE", "EXPIRE"),
    "CLEAN": ("RESTORE",),
    "METASYNC": (),
    "AUTOSAVEPOINT": (),
    "RESTORE": ("COMPACT", "CLUSTER", "CLEAN", "LOAD_COLUMNS", "EXPIRE", "INGEST", "BACKFILL", "REFRESH"),
    "LOAD_COLUMNS": ("RESTORE",),
    "EXPIRE": ("COMPACT", "CLUSTER", "RESTORE"),
    "INGEST": ("RESTORE",),
    "BACKFILL": ("RESTORE",),
    "REFRESH": ("RESTORE",),
}

#: The services whose runs write columns. No two open runs of any of them write the same column.
WRITES_COLUMNS: tuple[ServiceKind, ...] = ("LOAD_COLUMNS", "BACKFILL")

LEASE = "reader-"  #: prefix of the names of savepoints that are leases of readers
#: Prefix of leases that readers do not release. A table may be removed without waiting for these leases.
SHARED_LEASE = f"{LEASE}shared-"
CHANGES_LEASE = f"{SHARED_LEASE}changes-"  #: prefix of leases that also keep all later versions
REFRESH_LEASE = f"{CHANGES_LEASE}refresh-"  #: prefix of leases of refreshes of views, which end with their process

RUNS_KEPT = 100  #: number of ended runs of each service that a table's state keeps


@dataclass(frozen=True, slots=True)
class Service:
    """A service of a table. A table has at most one service of each kind.

    `trigger` defines when an AUTOMATIC service runs: `schedule` (cron) with `timezone`, or after this many `commits`,
    `rows`, `bytes` or `small_files`, or at a `deleted_share`. `unsafe_raw`: the options were not checked. `declared`:
    specs declare the service. `since` is the time from which its trigger counts: when the service was attached, when
    its trigger was changed or when it was resumed (0: unknown). The state sets `since` for every way to create the
    service; services that differ only in `since` are equal.
    """

    kind: ServiceKind
    trigger_mode: TriggerMode = "ON_DEMAND"
    trigger: Mapping[str, JSON] = field(default_factory=dict)
    options: Mapping[str, JSON] = field(default_factory=dict)
    cluster: str | None = None
    paused: bool = False
    unsafe_raw: bool = False
    declared: bool = False
    since: int = field(default=0, compare=False, metadata=TIME)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a run: the rows and bytes that it read and wrote, and figures of the table before and after the
    run, whose names each service chooses."""

    rows_in: int = 0
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    lance_version_before: int | None = None
    lance_version_after: int | None = None
    before: Mapping[str, JSON] = field(default_factory=dict)
    after: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a service. `cause` is the reason why it was queued, such as `schedule` or `on demand`, and `author`
    queued it.

    `holder` works on the run and holds it until `lease_until`. A process that finds the lease expired records the run
    as failed. `wish` is the request to the holder. `reason` is the reason why it failed, was skipped or cancelled.
    `log` is the location of its log.

    `target` are the columns that a run writes; no two open runs write the same column. `job` is the id of the job that
    the run works on, which a later run can resume. `claims` are the fragments for which it writes values: no other run
    rewrites them while it is running. An ended run has no claims.
    """

    run_id: str
    service: ServiceKind
    status: RunStatus
    cause: str
    author: str
    cluster: str | None
    queued_at: int = field(metadata=TIME)
    started_at: int | None = field(default=None, metadata=TIME)
    ended_at: int | None = field(default=None, metadata=TIME)
    holder: str | None = None
    lease_until: int | None = field(default=None, metadata=TIME)
    wish: Wish | None = None
    progress: Mapping[str, JSON] = field(default_factory=dict)
    figures: Figures = field(default_factory=Figures)
    reason: str = ""
    log: str = ""
    target: tuple[str, ...] = field(default=(), metadata={"sparse": True})
    job: str = field(default="", metadata={"sparse": True})
    claims: tuple[int, ...] = field(default=(), metadata={"sparse": True})

    @property
    def is_open(self) -> bool:
        """Returns whether the run is queued or running."""
        return bool(TRANSITIONS[self.status])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the run writes or, according to its figures, wrote."""
        written = self.figures.after.get("columns")
        return self.target or (tuple(map(str, written)) if isinstance(written, list) else ())

    def competes_with(self, kind: ServiceKind, target: tuple[str, ...]) -> bool:
        """Returns whether this run is open and so prevents another open run of the service `kind` on `target`."""
        shares = not self.target or not target or bool(set(self.target) & set(target))
        return self.is_open and self.service == kind and shares


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A named state of a table. The data that it needs is kept as long as the savepoint exists. Names are unique in a
    table.

    `lance_version` is a version of dataset number `dataset`. `state_version` is the version of the table's log that
    recorded it.
    """

    name: SavepointName
    lance_version: int
    dataset: int
    state_version: int
    at: int = field(metadata=TIME)
    expires_at: int | None = field(metadata=TIME)
    author: str
    note: str = ""
