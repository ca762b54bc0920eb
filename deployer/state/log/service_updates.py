"""The changes of a transaction to a table's services, runs and savepoints.

The times that they record in the state are the time of the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deployer.platform.files.json_values import JSON
from deployer.state.model.names import SavepointName
from deployer.state.model.services import Figures, FinalStatus, Service, ServiceKind
from deployer.state.model.times import TIME


@dataclass(frozen=True, slots=True)
class PutService:
    """Attaches a service, or replaces the attached service of the same kind."""

    TAG = "put-service"

    service: Service


@dataclass(frozen=True, slots=True)
class RemoveService:
    """Detaches a service; its runs stay in the state."""

    TAG = "remove-service"

    kind: ServiceKind


@dataclass(frozen=True, slots=True)
class MoveServices:
    """Moves all services of the table to `cluster`. Services that are attached later by hand also run on it.

    None means the default cluster, and so takes a move back.
    """

    TAG = "move-services"

    cluster: str | None


@dataclass(frozen=True, slots=True)
class PauseService:
    """Pauses a service: none of its runs starts any more, and its running run is asked to wait."""

    TAG = "pause-service"

    kind: ServiceKind


@dataclass(frozen=True, slots=True)
class ResumeService:
    """Resumes a service: its runs may start again, and a waiting run resumes."""

    TAG = "resume-service"

    kind: ServiceKind


@dataclass(frozen=True, slots=True)
class RunQueued:
    """Queues a run. Of its service and its target, no other run may be queued or running."""

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
    """Starts a queued run. `holder` holds it, and the lease ends `lease_ms` after the entry's time."""

    TAG = "run-started"

    run_id: str
    holder: str
    lease_ms: int
    log: str | None = None


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """Renews the lease of a running run: it ends `lease_ms` after the entry's time. `progress` replaces the earlier
    progress."""

    TAG = "lease-renewed"

    run_id: str
    lease_ms: int
    progress: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FragmentsClaimed:
    """Claims fragments for a running run. They replace the fragments that it claimed before."""

    TAG = "fragments-claimed"

    run_id: str
    fragments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Asks the holder of a running run to end the run."""

    TAG = "cancel-wished"

    run_id: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """Ends a run. The state keeps only the newest ended runs of each service (`RUNS_KEPT`)."""

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
    """Takes a savepoint of the table as it is at this commit, including all earlier commits. It is the last update of
    its entry.

    With `of`, the savepoint is of that earlier version instead, which exists unless it was removed in between.
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
    """Removes all savepoints that expire at `at` (ms since 1970) or before; there may be none."""

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
