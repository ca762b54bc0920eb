"""Services as the state store has them and as specs have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deployer.specs.model import ServiceSpec, Trigger
from deployer.specs.service_form import service_from_json, service_to_json, trigger_from_json, trigger_to_json
from deployer.specs.service_schema import KINDS, kind_named
from deployer.state.services import Service

if TYPE_CHECKING:
    from deployer.state.model import TableState


def live_services(state: TableState) -> tuple[ServiceSpec, ...]:
    """The services that the table has, in the order of `KINDS`."""
    return tuple(service_spec(state.services[kind]) for kind in KINDS if kind in state.services)


def service_spec(service: Service) -> ServiceSpec:
    """A service of the state store as specs would declare it. Whether it is paused is nothing that specs declare."""
    form: dict[str, Any] = {
        "trigger_mode": service.trigger_mode,
        "trigger": dict(service.trigger),
        "cluster": service.cluster,
        "options": dict(service.options),
        "unsafe_raw": service.unsafe_raw,
    }
    return service_from_json(service.kind, form)


def declared_service(spec: ServiceSpec, before: Service | None = None) -> Service:
    """A service as specs declare it, for the state store; it stays paused where `before` is."""
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
    """When the service runs by itself; None: on demand only."""
    return trigger_from_json(service.kind, {"trigger_mode": service.trigger_mode, "trigger": service.trigger})
