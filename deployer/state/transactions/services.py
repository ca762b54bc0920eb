"""The rules for transactions on services, runs and savepoints (see `conflicts`, of which this is a part).

They and transactions on a table's data never conflict with each other. Among themselves, only those on the same
service, run or savepoint do, and runs of services that exclude each other (`services.EXCLUDES`).
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
    """Returns requirements of attaching a service as specs declare it."""
    return [ServiceMissing(kind)]


def to_attach_service(kind: ServiceKind, services_cluster: str | None) -> list[TableRequirement]:
    """Returns requirements of attaching a service by hand, on the cluster of the table's services unless it names
    one."""
    return [*to_create_service(kind), ServicesClusterIs(services_cluster)]


def to_alter_service(before: Service) -> list[TableRequirement]:
    """Returns requirements of putting another in the place of the service that was read."""
    return [ServiceIs(before)]


def to_pause_service(kind: ServiceKind) -> list[TableRequirement]:
    """Returns requirements of pausing it, and of resuming: the last one holds."""
    return [ServiceThere(kind)]


def to_remove_service(kind: ServiceKind) -> list[TableRequirement]:
    """Returns requirements of detaching a service: no run of it is open."""
    return [ServiceThere(kind), NoRunOpen(kind)]


def to_queue_run(
    kind: ServiceKind, target: tuple[str, ...] = (), *, needs_service: bool = True
) -> list[TableRequirement]:
    """Returns requirements of queueing a run, the only one of its service and target; with a target, the only one of
    all that write these columns. Some services can be run by hand without being attached."""
    others = [NoRunOpen(each, target) for each in WRITES_COLUMNS if target and each != kind]
    return [*([ServiceThere(kind)] if needs_service else []), NoRunOpen(kind, target), *others]


def to_start_run(run_id: str, kind: ServiceKind) -> list[TableRequirement]:
    """Returns requirements of taking a queued run: it was not taken yet, and nothing runs that it must not run
    beside."""
    return [RunHasStatus(run_id, "QUEUED"), *_may_run(kind, (kind,))]


def to_begin_run(kind: ServiceKind, target: tuple[str, ...] = ()) -> list[TableRequirement]:
    """Returns requirements of queueing a run and taking it at once, whether or not the service is attached.

    Runs of one kind that write other columns run beside it.
    """
    return [*to_queue_run(kind, target, needs_service=False), *_may_run(kind, () if target else (kind,))]


def _may_run(kind: ServiceKind, besides: tuple[ServiceKind, ...]) -> list[TableRequirement]:
    return [ServiceNotPaused(kind), NoneRunning((*besides, *EXCLUDES[kind]))]


def to_go_on(run_id: str, holder: str) -> list[TableRequirement]:
    """Returns requirements of renewing a lease, and of ending a run by its holder."""
    return [RunHeldBy(run_id, holder)]


def to_ask_to_end(run_id: str) -> list[TableRequirement]:
    """Returns requirements of asking the holder of a run to end it."""
    return [RunHasStatus(run_id, "RUNNING")]


def to_end_queued_run(run_id: str) -> list[TableRequirement]:
    """Returns requirements of ending a run that was not started."""
    return [RunHasStatus(run_id, "QUEUED")]


def to_fail_dead_run(run_id: str, lease_until: int) -> list[TableRequirement]:
    """Returns requirements of ending a run whose lease was seen to be over: it was not renewed since."""
    return [LeaseEndsAt(run_id, lease_until)]


def to_give_up_restore(run_id: str) -> list[TableRequirement]:
    """Returns requirements of ending the run of a restore that is not recorded; its record requires that the run is
    running."""
    return [RunHasStatus(run_id, "RUNNING"), JobNotDone(run_id)]


def to_take_savepoint(name: str) -> list[TableRequirement]:
    """Returns requirements of a savepoint, which is of the table as it is then, whatever came in between."""
    return [SavepointNameFree(name)]


def to_remove_savepoint(name: str) -> list[TableRequirement]:
    return [SavepointThere(name)]
