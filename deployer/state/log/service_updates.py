"""The changes of a transaction to a table's services, runs and savepoints. Times that they record are the entry's
own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deployer.platform.files.json_values import JSON
from deployer.state.model.names import SavepointName
from deployer.state.model.services import Figures, FinalStatus, Service, ServiceKind
from deployer.state.model.times import TIME


@dataclass(frozen=True, slots=True)
class PutService:
    """Attaches a service, or replaces the one of that kind."""

    TAG = "put-service"

    service: Service


@dataclass(frozen=True, slots=True)
class RemoveService:
    """Detaches a service; its runs stay."""

    TAG = "remove-service"

    kind: ServiceKind


@dataclass(frozen=True, slots=True)
class MoveServices:
    """All services of the table run on that cluster from now on, and so do services that are attached later by hand.

    None is the default cluster: a move is taken back.
    """

    TAG = "move-services"

    cluster: str | None


@dataclass(frozen=True, slots=True)
class PauseService:
    """No run of it starts any more; the one that is running is asked to wait."""

    TAG = "pause-service"

    kind: ServiceKind


@dataclass(frozen=True, slots=True)
class ResumeService:
    """Runs may start again, and a waiting one resumes."""

    TAG = "resume-service"

    kind: ServiceKind


@dataclass(frozen=True, slots=True)
class RunQueued:
    """A run that waits to be started: the only one of its service, and of its target, that is queued or running."""

    TAG = "run-queued"

    run_id: str
    service: ServiceKind
    cause: str
    cluster: str | None = None
    log: str = ""
    target: tuple[str, ...] = field(default=(), metadata={"sparse": True})  #: columns that it writes
    job: str = field(default="", metadata={"sparse": True})  #: the job that it works on


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A queued run is worked on by `holder`, whose lease ends `lease_ms` after the entry's time."""

    TAG = "run-started"

    run_id: str
    holder: str
    lease_ms: int
    log: str | None = None


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """The lease of a running run ends `lease_ms` after the entry's time; `progress` replaces the last."""

    TAG = "lease-renewed"

    run_id: str
    lease_ms: int
    progress: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FragmentsClaimed:
    """A running run works on these fragments from now on, and no longer on those that it claimed before."""

    TAG = "fragments-claimed"

    run_id: str
    fragments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """The holder of a running run is asked to end it."""

    TAG = "cancel-wished"

    run_id: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run is over; of those that ended, the state keeps the newest of each service."""

    TAG = "run-ended"

    run_id: str
    status: FinalStatus
    figures: Figures = field(default_factory=Figures)
    reason: str = ""
    progress: Mapping[str, JSON] | None = None


@dataclass(frozen=True, slots=True)
class PastVersion:
    """Version `lance_version` of dataset number `dataset`, which version `state_version` of the log recorded."""

    dataset: int
    lance_version: int
    state_version: int


@dataclass(frozen=True, slots=True)
class SavepointTaken:
    """A savepoint of the table as it is when this is committed, whatever came before; the last update of its entry.

    With `of`, it is of an earlier version instead, which is there as long as nothing removes it in between.
    """

    TAG = "savepoint-taken"

    name: SavepointName
    expires_at: int | None = field(default=None, metadata=TIME)
    note: str = ""
    of: PastVersion | None = field(default=None, metadata={"sparse": True})


@dataclass(frozen=True, slots=True)
class SavepointRemoved:
    TAG = "savepoint-removed"
    name: SavepointName


@dataclass(frozen=True, slots=True)
class SavepointsExpired:
    """Removes all savepoints whose time is over at `at` (ms); there may be none."""

    TAG = "savepoints-expired"

    at: int = field(metadata=TIME)


ServiceUpdate = (
    PutService
    | RemoveService
    | MoveServices
    | PauseService
    | ResumeService
    | RunQueued
    | RunStarted
    | LeaseRenewed
    | FragmentsClaimed
    | CancelRequested
    | RunEnded
    | SavepointTaken
    | SavepointRemoved
    | SavepointsExpired
)
