"""Requirements on a table's services, runs and savepoints (see `requirements`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from deployer.state.model.entities import TableState
from deployer.state.model.names import SavepointName
from deployer.state.model.services import Run, RunStatus, Service, ServiceKind
from deployer.state.model.times import TIME


@dataclass(frozen=True, slots=True)
class ServiceThere:
    TAG = "service-there"
    kind: ServiceKind

    def failure(self, state: TableState) -> str | None:
        return None if self.kind in state.services else f"the table has no {self.kind} service"


@dataclass(frozen=True, slots=True)
class ServiceMissing:
    TAG = "service-missing"
    kind: ServiceKind

    def failure(self, state: TableState) -> str | None:
        return f"the table has a {self.kind} service already" if self.kind in state.services else None


@dataclass(frozen=True, slots=True)
class ServiceIs:
    """The requirement that the service still is as it was when it was read."""

    TAG = "service-is"

    service: Service

    def failure(self, state: TableState) -> str | None:
        now = state.services.get(self.service.kind)
        if now is None:
            return f"the table has no {self.service.kind} service"
        return None if now == self.service else f"the {self.service.kind} service was changed meanwhile"


@dataclass(frozen=True, slots=True)
class ServicesClusterIs:
    """The requirement that the services of the table are still on the cluster that was read."""

    TAG = "services-cluster-is"

    cluster: str | None

    def failure(self, state: TableState) -> str | None:
        now = state.properties.services_cluster
        return None if now == self.cluster else f"the services of the table were moved to cluster {now or 'default'}"


@dataclass(frozen=True, slots=True)
class ServiceNotPaused:
    """The requirement that the service is not paused. It holds without the service too: runs on demand need none."""

    TAG = "service-not-paused"

    kind: ServiceKind

    def failure(self, state: TableState) -> str | None:
        service = state.services.get(self.kind)
        return f"the {self.kind} service is paused" if service is not None and service.paused else None


@dataclass(frozen=True, slots=True)
class NoRunOpen:
    """The requirement that no run of the service is queued or running. With a `target`, only runs that write one of
    these columns count."""

    TAG = "no-run-open"

    kind: ServiceKind
    target: tuple[str, ...] = field(default=(), metadata={"sparse": True})

    def failure(self, state: TableState) -> str | None:
        return _first(run for run in state.runs.values() if run.competes_with(self.kind, self.target))


@dataclass(frozen=True, slots=True)
class NoneRunning:
    """The requirement that no run of these services is running."""

    TAG = "none-running"

    kinds: tuple[ServiceKind, ...]

    def failure(self, state: TableState) -> str | None:
        return _first(run for run in state.runs.values() if run.service in self.kinds and run.status == "RUNNING")


@dataclass(frozen=True, slots=True)
class RunHasStatus:
    TAG = "run-has-status"
    run_id: str
    status: RunStatus

    def failure(self, state: TableState) -> str | None:
        return _other_status(state, self.run_id, self.status)


@dataclass(frozen=True, slots=True)
class RunHeldBy:
    """The requirement that the run is running and that `holder` holds it."""

    TAG = "run-held-by"

    run_id: str
    holder: str

    def failure(self, state: TableState) -> str | None:
        if fault := _other_status(state, self.run_id, "RUNNING"):
            return fault
        now = state.runs[self.run_id].holder
        return None if now == self.holder else f"run {self.run_id} is held by {now}, not {self.holder}"


@dataclass(frozen=True, slots=True)
class LeaseEndsAt:
    """The requirement that the run is running and that its lease still ends at `lease_until` (ms since 1970)."""

    TAG = "lease-ends-at"

    run_id: str
    lease_until: int = field(metadata=TIME)

    def failure(self, state: TableState) -> str | None:
        if fault := _other_status(state, self.run_id, "RUNNING"):
            return fault
        now = state.runs[self.run_id].lease_until
        return None if now == self.lease_until else f"the lease of run {self.run_id} was renewed"


@dataclass(frozen=True, slots=True)
class SavepointNameFree:
    TAG = "savepoint-name-free"
    name: SavepointName

    def failure(self, state: TableState) -> str | None:
        return f"the table has a savepoint {self.name} already" if self.name in state.savepoints else None


@dataclass(frozen=True, slots=True)
class SavepointThere:
    TAG = "savepoint-there"
    name: SavepointName

    def failure(self, state: TableState) -> str | None:
        return None if self.name in state.savepoints else f"the table has no savepoint {self.name}"


@dataclass(frozen=True, slots=True)
class NoRestoreUnderWay:
    """The requirement that no running RESTORE has an unfinished commit to Lance, which would undo concurrent commits.

    A restore whose run has ended, for example because its holder died, does not count: its changes are not kept (see
    `deployer.datasets.recovery`).
    """

    TAG = "no-restore-under-way"

    def failure(self, state: TableState) -> str | None:
        runs = (state.runs.get(job_id) for job_id in state.intents)
        under_way = [run for run in runs if run is not None and run.service == "RESTORE" and run.status == "RUNNING"]
        return f"the table is being restored by run {under_way[0].run_id}" if under_way else None


@dataclass(frozen=True, slots=True)
class FragmentsUnclaimed:
    """The requirement that no running run claims one of these fragments. None means any fragment."""

    TAG = "fragments-unclaimed"

    fragments: tuple[int, ...] | None = None

    def failure(self, state: TableState) -> str | None:
        for run in state.runs.values():
            if run.status == "RUNNING" and run.claims:
                wanted = run.claims if self.fragments is None else set(run.claims) & set(self.fragments)
                if wanted:
                    first = ", ".join(map(str, sorted(wanted)[:5]))
                    more = f" and {len(wanted) - 5} more" if len(wanted) > 5 else ""
                    columns = ", ".join(run.target) or "columns"
                    return f"run {run.run_id} of {run.service} writes {columns} of fragments {first}{more}"
        return None


ServiceRequirement = (
    ServiceThere
    | ServiceMissing
    | ServiceIs
    | ServicesClusterIs
    | ServiceNotPaused
    | NoRunOpen
    | NoneRunning
    | RunHasStatus
    | RunHeldBy
    | LeaseEndsAt
    | SavepointNameFree
    | SavepointThere
    | NoRestoreUnderWay
    | FragmentsUnclaimed
)


def _other_status(state: TableState, run_id: str, status: RunStatus) -> str | None:
    run = state.runs.get(run_id)
    if run is None:
        return f"there is no run {run_id}"
    return None if run.status == status else f"run {run_id} is {run.status}, not {status}"


def _first(runs: Iterable[Run]) -> str | None:
    found = min(runs, key=_by_time, default=None)
    if found is None:
        return None
    of = f" for {', '.join(found.target)}" if found.target else ""
    return f"run {found.run_id} of {found.service}{of} is {found.status}"


def _by_time(run: Run) -> tuple[int, str]:
    return run.queued_at, run.run_id
