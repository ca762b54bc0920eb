"""Applies changes of a table's services: each is one transaction of the table's log."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from deployer.live.services import declared_service, service_spec
from deployer.plan import changes as c
from deployer.plan.render.services import service_name
from deployer.specs.model import ServiceSpec, TableSpec
from deployer.state.log.service_updates import PutService, RemoveService
from deployer.state.store import StateStore
from deployer.state.transactions.services import to_alter_service, to_create_service, to_remove_service


def first_services(spec: TableSpec) -> list[PutService]:
    """What attaches the services of a table that is created."""
    return [PutService(declared_service(service)) for service in spec.services]


def apply_service_change(store: StateStore, table_id: str, change: c.ServiceChange) -> None:
    """Raises Conflict when another process changes the service at the same time, or when one to detach is running."""
    kind = service_name(change).upper()
    before = next((each for each in store.table(table_id).services.values() if each.kind == kind), None)
    live = service_spec(before) if before else ServiceSpec(kind)
    match change:
        case c.CreateService(service=wanted):
            spec = wanted
        case c.DeleteService():
            if before is not None:
                store.commit(table_id, [RemoveService(before.kind)], to_remove_service(before.kind))
            return
        case c.ChangeTrigger(after=trigger):
            spec = replace(live, trigger=trigger)
        case c.ChangeServiceOptions(after=options, after_raw=raw):
            spec = replace(live, options=options, unsafe_raw=raw)
        case c.MoveServiceToCluster(after=cluster):
            spec = replace(live, cluster=cluster)
        case _:
            assert_never(change)
    service = declared_service(spec, before)
    requires = to_alter_service(before) if before else to_create_service(service.kind)
    store.commit(table_id, [PutService(service)], requires)
