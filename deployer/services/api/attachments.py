"""Attaches, changes, pauses, resumes and detaches services of a table, each in one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deployer.errors import InvalidInput, NotFound
from deployer.live.services import fault_of
from deployer.state.log.service_updates import MoveServices, PauseService, PutService, RemoveService, ResumeService
from deployer.state.model.entities import TableState
from deployer.state.model.services import Service, ServiceKind
from deployer.state.store import StateStore
from deployer.state.transactions.services import (
    to_alter_service,
    to_attach_service,
    to_pause_service,
    to_remove_service,
)


def find_service(state: TableState, kind: ServiceKind, where: str) -> Service:
    """Returns the table's service of that kind. Raises NotFound, naming those that the table at `where` has."""
    service = state.services.get(kind)
    if service is None:
        has = ", ".join(sorted(state.services))
        raise NotFound(
            f"the table has no {kind} service",
            where=where,
            remedy=f"it has {has}" if has else "it has none; attach one first",
        )
    return service


def create_service(
    store: StateStore,
    table_id: str,
    service: Service,
    *,
    services_cluster: str | None = None,
    author: str | None = None,
) -> Service:
    """Attaches a service. `services_cluster` is the cluster of the table's services as it was read (`move_services`).

    Raises InvalidInput for a service that no spec can declare, and Conflict when the table has one of that kind, or
    when its services were moved meanwhile.
    """
    _require_valid(service, table_id)
    required = to_attach_service(service.kind, services_cluster)
    state = store.commit(table_id, [PutService(service)], required, author=author)
    return state.services[service.kind]


def _require_valid(service: Service, table_id: str) -> None:
    if not service.unsafe_raw and (wrong := fault_of(service)):
        raise InvalidInput(
            f"the {service.kind} service is not valid: {wrong}",
            where=f"table {table_id}",
            remedy="give a trigger and options as specs declare them (docs/spec.md)",
        )


def alter_service(
    store: StateStore, table_id: str, before: Service, after: Service, *, author: str | None = None
) -> Service:
    """Replaces the service by `after`. Raises Conflict when it was changed meanwhile.

    A running run keeps the options that it started with. Raises InvalidInput as `create_service` does.
    """
    _require_valid(after, table_id)
    state = store.commit(table_id, [PutService(after)], to_alter_service(before), author=author)
    return state.services[after.kind]


def move_services(store: StateStore, table_id: str, cluster: str, *, author: str | None = None) -> TableState:
    """Moves all services of the table to that cluster in one transaction, including services that are attached later by
    hand.

    Open runs are not moved. Returns the table's state.
    """
    return store.commit(table_id, [MoveServices(cluster)], [], author=author)


def reset_services(
    store: StateStore,
    table_id: str,
    before: Mapping[ServiceKind, Service],
    clusters: Mapping[ServiceKind, str | None],
    *,
    author: str | None = None,
) -> TableState:
    """Undoes `move_services` in one transaction: services of these kinds run on the clusters that specs declare for
    them; other services, and those that are attached later, run on the default cluster.

    `before` are the services that were read. Raises Conflict when one of them was changed meanwhile.
    """
    declared = [
        PutService(replace(each, cluster=clusters[kind], declared=True))
        for kind, each in before.items()
        if kind in clusters
    ]
    required = [each for service in before.values() for each in to_alter_service(service)]
    return store.commit(table_id, [MoveServices(None), *declared], required, author=author)


def pause_service(store: StateStore, table_id: str, kind: ServiceKind, *, author: str | None = None) -> Service:
    """Pauses a service: no run of it starts, and the holder of a running one is asked to wait.

    Raises Conflict when the service does not exist; does nothing for a paused one.
    """
    state = store.commit(table_id, [PauseService(kind)], to_pause_service(kind), author=author)
    return state.services[kind]


def resume_service(store: StateStore, table_id: str, kind: ServiceKind, *, author: str | None = None) -> Service:
    """Undoes `pause_service`: runs may start, and a waiting one continues."""
    state = store.commit(table_id, [ResumeService(kind)], to_pause_service(kind), author=author)
    return state.services[kind]


def remove_service(store: StateStore, table_id: str, kind: ServiceKind, *, author: str | None = None) -> None:
    """Detaches a service; its runs stay. Raises Conflict when one is queued or running, or it does not exist."""
    store.commit(table_id, [RemoveService(kind)], to_remove_service(kind), author=author)
