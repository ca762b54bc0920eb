"""Changes of a table's services by hand. Specs do the same through plans.

Invalid changes are refused before anything is changed. A change shows as drift where specs declare the table, until
they declare the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deployer.errors import Conflict, InvalidInput, NotFound, Refused
from deployer.live.reader import live_instance, retention_of
from deployer.live.services import declared_service, service_spec
from deployer.runs.records import cancel_run, queue_run
from deployer.services.api.attachments import (
    alter_service,
    create_service,
    find_service,
    move_services,
    pause_service,
    remove_service,
    reset_services,
    resume_service,
)
from deployer.services.definition import options_of
from deployer.services.registry import SERVICES
from deployer.specs.serialized.service_options import service_from_texts
from deployer.specs.types.arrow import columns_of
from deployer.specs.yaml.suggestions import nearest
from deployer.state.log.service_reducer import open_run
from deployer.state.model.entities import TableState
from deployer.state.model.services import WRITES_COLUMNS, Run, Service, ServiceKind
from deployer.tables.open_table import OpenTable

Texts = Mapping[str, str]

RUNNABLE = tuple(SERVICES)  #: kinds that can run; all except RESTORE can be attached too
RECORDED: tuple[ServiceKind, ...] = tuple(dict.fromkeys((*RUNNABLE, *WRITES_COLUMNS)))  #: kinds that have runs


def attach(
    table: OpenTable,
    kind: ServiceKind,
    trigger_mode: str | None = None,
    texts: Texts | None = None,
    *,
    cluster: str | None = None,
    unsafe_raw: bool = False,
    author: str | None = None,
) -> Service:
    """Attaches a service, on the cluster that `move` named last unless it names one.

    Raises InvalidInput, Refused for EXPIRE where nothing expires, and Conflict when the table has one of that kind.
    """
    if kind in table.state.services:
        raise Conflict(
            f"the table has a {kind} service already", where=table.address, remedy="alter it, or detach it first"
        )
    if kind == "EXPIRE" and retention_of(table.state) is None:
        raise Refused(
            "EXPIRE removes what is older than the table's retention, and the table declares none",
            where=table.address,
            remedy="declare `retention: {column: …, keep: …}` and run `deployer up`, which attaches the service",
        )
    of_all = table.state.properties.services_cluster
    service = _asked(table, kind, None, trigger_mode, texts, cluster or of_all, unsafe_raw)
    return create_service(table.store, table.entry.table_id, service, services_cluster=of_all, author=author)


def alter(
    table: OpenTable,
    kind: ServiceKind,
    trigger_mode: str | None = None,
    texts: Texts | None = None,
    *,
    cluster: str | None = None,
    unsafe_raw: bool = False,
    author: str | None = None,
) -> Service:
    """Changes given settings of a service. Raises NotFound, InvalidInput, and Conflict while a run of it is open."""
    before = find_service(table.state, kind, table.address)
    _require_no_run(table, kind, "altered")
    after = _asked(table, kind, before, trigger_mode, texts, cluster, unsafe_raw)
    return alter_service(table.store, table.entry.table_id, before, after, author=author)


def move(table: OpenTable, cluster: str, *, author: str | None = None) -> TableState:
    """Moves all services of the table, and those that are attached later, to a declared cluster: all or none.

    Returns the table's state. Raises InvalidInput for a cluster that the instance does not declare, and Conflict while
    a run of one of the services is open.
    """
    _require_declared(table, cluster)
    for kind in table.state.services:
        _require_no_run(table, kind, "moved")
    on_it = all(each.cluster == cluster for each in table.state.services.values())
    if on_it and table.state.properties.services_cluster == cluster:
        return table.state
    return move_services(table.store, table.entry.table_id, cluster, author=author)


def reset(
    table: OpenTable, clusters: Mapping[ServiceKind, str | None] | None = None, *, author: str | None = None
) -> TableState:
    """Undoes `move`: all services of the table, or none, return to their declared clusters.

    `clusters` are the declared ones, by kinds of services; where they are unknown, services that were not moved stay.
    All others, and those that are attached later, run on the default cluster. Returns the table's state. Raises
    Conflict while a run of one of the services is open.
    """
    for kind in table.state.services:
        _require_no_run(table, kind, "moved")
    before = table.state.services
    if clusters is None:
        clusters = {kind: each.cluster for kind, each in before.items() if each.declared}
    there = all(each.cluster == clusters.get(kind) for kind, each in before.items())
    if there and table.state.properties.services_cluster is None:
        return table.state
    return reset_services(table.store, table.entry.table_id, before, clusters, author=author)


def detach(table: OpenTable, kind: ServiceKind, *, author: str | None = None) -> None:
    """Detaches a service; its runs stay listed. Raises NotFound, and Conflict while a run of it is open."""
    find_service(table.state, kind, table.address)
    _require_no_run(table, kind, "detached")
    remove_service(table.store, table.entry.table_id, kind, author=author)


def pause(table: OpenTable, kind: ServiceKind, *, author: str | None = None) -> Service:
    """Pauses a service: no run of it starts, and a running one waits.

    Raises NotFound, and Refused for one that is paused.
    """
    if find_service(table.state, kind, table.address).paused:
        raise Refused(f"the {kind} service is paused already", where=table.address, remedy="resume it")
    return pause_service(table.store, table.entry.table_id, kind, author=author)


def resume(table: OpenTable, kind: ServiceKind, *, author: str | None = None) -> Service:
    """Undoes `pause`. Raises NotFound, and Refused for a service that is not paused."""
    if not find_service(table.state, kind, table.address).paused:
        raise Refused(f"the {kind} service is not paused", where=table.address, remedy="there is nothing to resume")
    return resume_service(table.store, table.entry.table_id, kind, author=author)


def cancel(table: OpenTable, kind: ServiceKind, *, author: str | None = None) -> Run:
    """Ends the service's queued run, or asks its running run to end. Raises NotFound without a run."""
    run = open_run(table.state, kind)
    if run is None:
        raise NotFound(
            f"no run of {kind} is queued or running", where=table.address, remedy="there is nothing to cancel"
        )
    return cancel_run(table.store, table.entry.table_id, run.run_id, reason="cancelled before it began", author=author)


def queue(table: OpenTable, kind: ServiceKind, *, cause: str = "on demand", author: str | None = None) -> Run:
    """Queues a run of a service, attached or not. Raises Conflict when a run is open, or the service is paused.

    Raises InvalidInput and Refused, before anything is queued, for options that the run could not use.
    """
    service = table.state.services.get(kind)
    if service is not None and service.paused:
        raise Conflict(f"the {kind} service is paused", where=table.address, remedy="resume it first")
    _require_no_run(table, kind, "run")
    options_of(table.state, kind)
    cluster = service.cluster if service else None
    table_id = table.entry.table_id
    return queue_run(
        table.store, table_id, kind, cause=cause, cluster=cluster, author=author, needs_service=service is not None
    )


def _require_declared(table: OpenTable, cluster: str) -> None:
    instance = live_instance(table.store.instance())
    names = tuple(each.name for each in instance.clusters) if instance else ()
    if cluster not in names:
        near = nearest(cluster, names)
        declared = f"the instance declares {', '.join(names)}" if names else "declare it in the instance's `clusters:`"
        raise InvalidInput(
            f"unknown cluster `{cluster}`",
            where=table.address,
            remedy=f"did you mean {near}? {declared[0].upper()}{declared[1:]}" if near else declared,
        )


def _require_no_run(table: OpenTable, kind: ServiceKind, done: str) -> None:
    run = open_run(table.state, kind)
    if run is not None:
        raise Conflict(
            f"a run of {kind} is {run.status.lower()} ({run.run_id}), so it cannot be {done} now",
            where=table.address,
            remedy="wait for it, or cancel it",
        )


def _asked(
    table: OpenTable,
    kind: ServiceKind,
    before: Service | None,
    trigger_mode: str | None,
    texts: Texts | None,
    cluster: str | None,
    unsafe_raw: bool,
) -> Service:
    instance = live_instance(table.store.instance())
    properties = table.state.properties
    spec = service_from_texts(
        kind,
        texts,
        before=service_spec(before) if before else None,
        trigger_mode=trigger_mode,
        cluster=cluster,
        unsafe_raw=unsafe_raw,
        columns=columns_of(table.schema),
        keys=(*properties.row_keys, *properties.sort_keys),
        clusters=[each.name for each in instance.clusters] if instance else (),
    )
    return replace(declared_service(spec, before), declared=False)
