"""The difference between two tables' services. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deployer.plan.changes import (
    ChangeServiceOptions,
    ChangeTrigger,
    CreateService,
    DeleteService,
    MoveServiceToCluster,
    ServiceChange,
)
from deployer.specs.model import ServiceSpec


def service_changes(
    address: str, live: Iterable[ServiceSpec], desired: Iterable[ServiceSpec]
) -> Iterator[ServiceChange]:
    """Services to detach, then those to attach or to change, each property a change of its own."""
    wanted = {service.kind for service in desired}
    existing = {service.kind: service for service in live}
    yield from (DeleteService(address, service) for service in existing.values() if service.kind not in wanted)
    for service in desired:
        before = existing.get(service.kind)
        if before is None:
            yield CreateService(address, service)
            continue
        if before.trigger != service.trigger:
            yield ChangeTrigger(address, service.kind, before.trigger, service.trigger)
        if (before.options, before.unsafe_raw) != (service.options, service.unsafe_raw):
            raw = (before.unsafe_raw, service.unsafe_raw)
            yield ChangeServiceOptions(address, service.kind, before.options, service.options, *raw)
        if before.cluster != service.cluster:
            yield MoveServiceToCluster(address, service.kind, before.cluster, service.cluster)
