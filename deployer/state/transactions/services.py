"""The requirements of transactions on services, runs and savepoints (see `tables` for how requirements work).

These transactions do not conflict with transactions on a table's data. They conflict with each other only on the same
service, run or savepoint, or where two services exclude each other (`EXCLUDES`).
"""

from __future__ import annotations

from deployer.state.log.requirements import JobNotDone, TableRequirement
from deployer.state.log.service_requirements import (
    LeaseEndsAt,
    NoneRunning,
    NoRunOpen,
    RunHasStatus,
    RunHeldBy,
    SavepointNameFree,
    SavepointThere,
    ServiceIs,
    ServiceMissing,
    ServiceNotPaused,
    ServicesClusterIs,
    ServiceThere,
)
from deployer.state.model.services import EXCLUDES, WRITES_COLUMNS, Service, ServiceKind


def to_create_service(kind: ServiceKind) -> list[TableRequirement]:
    """Returns the requirements for attaching a service that specs declare."""
    return [ServiceMissing(kind)]


def to_attach_service(kind: ServiceKind, services_cluster: str | None) -> list[TableRequirement]:
    """Returns the requirements for attaching a service by hand.

    `services_cluster` is the cluster of the table's services that was read; the service runs there unless it names one.
    """
    return [*to_create_service(kind), ServicesClusterIs(services_cluster)]


def to_alter_service(before: Service) -> list[TableRequirement]:
    """Returns the requirements for replacing the service `before`, as it was read."""
    return [ServiceIs(before)]


def to_pause_service(kind: ServiceKind) -> list[TableRequirement]:
    """Returns the requirements for pausing or resuming a service. Of concurrent ones, the last takes effect."""
    return [ServiceThere(kind)]


def to_remove_service(kind: ServiceKind) -> list[TableRequirement]:
    """Returns the requirements for detaching a service: none of its runs is queued or running."""
    return [ServiceThere(kind), NoRunOpen(kind)]


def to_queue_run(
    kind: ServiceKind, target: tuple[str, ...] = (), *, needs_service: bool = True
) -> list[TableRequirement]:
    """Returns the requirements for queueing a run: no other run of its service and target is queued or running.

    With a `target`, no other run that writes one of these columns may be queued or running. `needs_service` is False
    for services that can be run by hand without being attached.
    """
    others = [NoRunOpen(each, target) for each in WRITES_COLUMNS if target and each != kind]
    return [*([ServiceThere(kind)] if needs_service else []), NoRunOpen(kind, target), *others]


def to_start_run(run_id: str, kind: ServiceKind) -> list[TableRequirement]:
    """Returns the requirements for starting a queued run: it was not started yet, and no run that it excludes is
    running."""
    return [RunHasStatus(run_id, "QUEUED"), *_may_run(kind, (kind,))]


def to_begin_run(kind: ServiceKind, target: tuple[str, ...] = ()) -> list[TableRequirement]:
    """Returns the requirements for queueing a run and starting it at once, whether or not the service is attached.

    With a `target`, runs of the same service that write other columns may be running.
    """
    return [*to_queue_run(kind, target, needs_service=False), *_may_run(kind, () if target else (kind,))]


def _may_run(kind: ServiceKind, besides: tuple[ServiceKind, ...]) -> list[TableRequirement]:
    return [ServiceNotPaused(kind), NoneRunning((*besides, *EXCLUDES[kind]))]


def to_go_on(run_id: str, holder: str) -> list[TableRequirement]:
    """Returns the requirements for renewing a lease, and for ending a run by its holder."""
    return [RunHeldBy(run_id, holder)]


def to_ask_to_end(run_id: str) -> list[TableRequirement]:
    """Returns the requirements for asking the holder of a run to end the run."""
    return [RunHasStatus(run_id, "RUNNING")]


def to_end_queued_run(run_id: str) -> list[TableRequirement]:
    """Returns the requirements for ending a run that was not started."""
    return [RunHasStatus(run_id, "QUEUED")]


def to_fail_dead_run(run_id: str, lease_until: int) -> list[TableRequirement]:
    """Returns the requirements for ending a run whose lease has expired: the lease was not renewed since it was
    read."""
    return [LeaseEndsAt(run_id, lease_until)]


def to_give_up_restore(run_id: str) -> list[TableRequirement]:
    """Returns the requirements for ending the run of a restore that is not recorded.

    Recording the restore requires a running run, so only one of the two succeeds.
    """
    return [RunHasStatus(run_id, "RUNNING"), JobNotDone(run_id)]


def to_take_savepoint(name: str) -> list[TableRequirement]:
    """Returns the requirements for taking a savepoint. It is of the table at that commit, so changes in between are
    allowed."""
    return [SavepointNameFree(name)]


def to_remove_savepoint(name: str) -> list[TableRequirement]:
    return [SavepointThere(name)]
