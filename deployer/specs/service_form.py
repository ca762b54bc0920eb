"""Services as JSON and back: canonical, what equals its default left out. Inputs of resources, and what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from deployer.specs.model import ServiceSpec, Trigger
from deployer.specs.service_schema import KINDS, declared_options, default_trigger, plain, trigger_values


def services_to_json(services: Iterable[ServiceSpec]) -> dict[str, Any]:
    """Services by name, each as specs have it."""
    return {service.name: service_to_json(service) for service in services}


def services_from_json(form: Mapping[str, Any]) -> tuple[ServiceSpec, ...]:
    """The inverse of `services_to_json`."""
    return tuple(service_from_json(kind, form[kind.lower()]) for kind in KINDS if kind.lower() in form)


def service_to_json(service: ServiceSpec) -> dict[str, Any]:
    """A service without its name; never empty."""
    form: dict[str, Any] = {}
    if service.trigger is None:
        form["trigger_mode"] = service.trigger_mode
    elif service.trigger != Trigger(**default_trigger(service.kind)):
        form["trigger"] = trigger_to_json(service.trigger)
    if service.cluster is not None:
        form["cluster"] = service.cluster
    if service.options:
        form["options"] = dict(service.options)
    if service.unsafe_raw:
        form["unsafe_raw"] = True
    return form or {"trigger_mode": service.trigger_mode}


def service_from_json(kind: str, form: Mapping[str, Any]) -> ServiceSpec:
    """The inverse of `service_to_json`; takes sizes and times as specs write them too."""
    raw, options = bool(form.get("unsafe_raw", False)), form.get("options", {})
    return ServiceSpec(
        kind,
        trigger_from_json(kind, form),
        form.get("cluster"),
        plain({name: options[name] for name in sorted(options)}) if raw else declared_options(kind, options),
        raw,
    )


def trigger_from_json(kind: str, form: Mapping[str, Any]) -> Trigger | None:
    """The trigger of a service in that form, the kind's own where it names none; None: on demand only."""
    if form.get("trigger_mode", "AUTOMATIC") != "AUTOMATIC":
        return None
    return Trigger(**trigger_values(form.get("trigger") or default_trigger(kind)))


def trigger_to_json(trigger: Trigger) -> dict[str, Any]:
    """The conditions that a trigger has."""
    return trigger_values({name: getattr(trigger, name) for name in Trigger.__slots__})
