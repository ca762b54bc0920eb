"""Conversion of services between the state store and specs. Any program may have written the state, so it is checked
like specs before it is used."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from deployer.specs.model import ServiceSpec, Trigger
from deployer.specs.schema.services import KINDS, kind_named
from deployer.specs.serialized.service_options import fault_of_service
from deployer.specs.serialized.services import service_from_json, service_to_json, trigger_from_json, trigger_to_json
from deployer.state.model.services import Service

if TYPE_CHECKING:
    from deployer.state.model.entities import TableState


def live_services(state: TableState) -> tuple[ServiceSpec, ...]:
    """Returns the services that the table has, in the order of `KINDS`."""
    return tuple(service_spec(state.services[kind]) for kind in KINDS if kind in state.services)


def service_spec(service: Service) -> ServiceSpec:
    """Returns a service of the state store as specs would declare it. Specs do not declare whether a service is paused.

    A service that no spec can declare is returned as one on demand with unchecked options, so that a plan shows a
    difference.
    """
    if fault_of(service):
        texts = {name: each if isinstance(each, str) else json.dumps(each) for name, each in service.options.items()}
        return ServiceSpec(service.kind, None, service.cluster, texts, True)
    return service_from_json(service.kind, _form(service))


def fault_of(service: Service) -> str:
    """Returns the errors of a service of the state store; empty when specs could declare it so.

    A service with errors is shown and not run.
    """
    form = {name: value for name, value in _form(service).items() if value not in (None, {}, False)}
    if service.trigger_mode == "ON_DEMAND":
        form.pop("trigger", None)
    return _fault(service.kind, json.dumps(form))


@lru_cache(1024)
def _fault(kind: str, form: str) -> str:
    """Returns the fault of a service; cached by text, since most tables of a lake have the same few services."""
    return fault_of_service(kind, json.loads(form))


def _form(service: Service) -> dict[str, Any]:
    return {
        "trigger_mode": service.trigger_mode,
        "trigger": dict(service.trigger),
        "cluster": service.cluster,
        "options": dict(service.options),
        "unsafe_raw": service.unsafe_raw,
    }


def declared_service(spec: ServiceSpec, before: Service | None = None) -> Service:
    """Returns a service of specs for the state store; it stays paused where `before` is paused."""
    form = service_to_json(spec)
    return Service(
        kind=kind_named(spec.kind),
        trigger_mode="AUTOMATIC" if spec.trigger else "ON_DEMAND",
        trigger=trigger_to_json(spec.trigger) if spec.trigger else {},
        options=form.get("options", {}),
        cluster=spec.cluster,
        paused=before.paused if before else False,
        unsafe_raw=spec.unsafe_raw,
        declared=True,
    )


def trigger_of(service: Service) -> Trigger | None:
    """Returns the trigger; None: the service runs on demand only, or it is not valid (see `fault_of`)."""
    if service.trigger_mode != "AUTOMATIC" or fault_of(service):
        return None
    return trigger_from_json(service.kind, {"trigger_mode": service.trigger_mode, "trigger": service.trigger})
