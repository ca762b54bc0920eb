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

#: What a run may become, by what it is. A run that is paused stays RUNNING: its holder waits, and keeps its lease.
TRANSITIONS: Mapping[RunStatus, frozenset[RunStatus]] = {
    "QUEUED": frozenset({"RUNNING", "FAILED", "CANCELLED", "SKIPPED"}),
    "RUNNING": frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "SKIPPED"}),
    "SUCCEEDED": frozenset(),
    "FAILED": frozenset(),
    "CANCELLED": frozenset(),
    "SKIPPED": frozenset(),
}

#: The services of which no run may be running when one of that service starts, beside the service itself.
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

#: The services whose runs write columns: of all of them together, no two open runs write the same column.
WRITES_COLUMNS: tuple[ServiceKind, ...] = ("LOAD_COLUMNS", "BACKFILL")

LEASE = "reader-"  #: what the names of savepoints begin with that are leases of readers
SHARED_LEASE = f"{LEASE}shared-"  #: those that readers do not release, of which tables that go need not wait for any
CHANGES_LEASE = f"{SHARED_LEASE}changes-"  #: those that all versions after theirs are kept for, too
REFRESH_LEASE = f"{CHANGES_LEASE}refresh-"  #: those of refreshes of views: none outlives its process

RUNS_KEPT = 100  #: ended runs of each service that a table's state keeps


@dataclass(frozen=True, slots=True)
class Service:
    """A service of a table, of which there is at most one of each kind.

    `trigger` says when an AUTOMATIC one runs: `schedule` (cron) with `timezone`, or after this many `commits`, `rows`,
    `bytes`, `small_files`, or at a `deleted_share`. `unsafe_raw`: options were taken as they are. `declared`: by specs.
    `since` is when its trigger began to count: when it was attached, its trigger was changed, or it was resumed. The
    state records it for every way to create the service, and two services that differ by it alone are equal (0:
    unknown).
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
    """The figures of a run: rows and bytes it read and wrote, and the table's figures before and after (its own
    names)."""

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
    """One run of a service. `cause` is why it was queued, such as `schedule` or `on demand`; `author` is by whom.

    `holder` works on it and has it until `lease_until`; the next process that finds its lease expired fails it. `wish`
    is the request to the holder. `reason` says why it failed, was skipped or cancelled; `log` is where its log is.

    A run that writes columns has these as its `target`; no two open runs write the same one. `job` is the id
    of the job that it works on, which a later run can resume. `claims` are the fragments that it is writing values for:
    no other run rewrites them while it is running. An ended run has none.
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
        """Returns whether it is queued or running."""
        return bool(TRANSITIONS[self.status])

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it writes, or that a run of a service wrote."""
        written = self.figures.after.get("columns")
        return self.target or (tuple(map(str, written)) if isinstance(written, list) else ())

    def competes_with(self, kind: ServiceKind, target: tuple[str, ...]) -> bool:
        """Returns whether no run of that kind and target may be open beside this one, while it is open."""
        shares = not self.target or not target or bool(set(self.target) & set(target))
        return self.is_open and self.service == kind and shares


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A named state of a table at one time; the data that it needs is kept as long as the savepoint exists. Names are
    unique in a table.

    `lance_version` is of dataset number `dataset`; `state_version` is the version of the table's log that recorded it.
    """

    name: SavepointName
    lance_version: int
    dataset: int
    state_version: int
    at: int = field(metadata=TIME)
    expires_at: int | None = field(metadata=TIME)
    author: str
    note: str = ""
