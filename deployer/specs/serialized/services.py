"""Services as JSON and back: canonical, what equals its default left out. Inputs of resources, and what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from deployer.specs.model import ServiceSpec, Trigger
from deployer.specs.schema.services import (
    KINDS,
    declared_options,
    default_trigger,
    option_names,
    option_schema,
    trigger_schema,
    trigger_values,
)
from deployer.specs.validation.plain_values import flag, mapping, optional_text, refuse_unfit, text


def services_to_json(services: Iterable[ServiceSpec]) -> dict[str, Any]:
    """Services by name, each as specs have it."""
    return {service.name: service_to_json(service) for service in services}


def services_from_json(form: Mapping[str, Any]) -> tuple[ServiceSpec, ...]:
    """Returns the inverse of `services_to_json`."""
    names = {kind: kind.lower() for kind in KINDS}
    return tuple(service_from_json(kind, mapping(form, name)) for kind, name in names.items() if name in form)


def service_to_json(service: ServiceSpec) -> dict[str, Any]:
    """Returns a service without its name; never empty."""
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
    """Returns the inverse of `service_to_json`; takes sizes and times as specs write them too.

    Raises InvalidInput for a form that is not a service's. Options that this release does not know are left out.
    """
    raw, options = flag(form, "unsafe_raw", False), mapping(form, "options", {})
    if raw:
        kept = {name: text(options, name) for name in sorted(options)}
    else:
        for name in option_names(kind):
            if name in options:
                refuse_unfit(f"{kind}.{name}", partial(option_schema, kind, name), options[name])
        kept = declared_options(kind, options)
    return ServiceSpec(kind, trigger_from_json(kind, form), optional_text(form, "cluster"), kept, raw)


def trigger_from_json(kind: str, form: Mapping[str, Any]) -> Trigger | None:
    """Returns the trigger of a service in that form, the kind's own where it names none; None: on demand only.

    Raises InvalidInput for a form that is not a trigger's.
    """
    if text(form, "trigger_mode", "AUTOMATIC") != "AUTOMATIC":
        return None
    conditions = {name: value for name, value in mapping(form, "trigger", {}).items() if value is not None}
    if not conditions:
        return Trigger(**trigger_values(default_trigger(kind)))
    refuse_unfit("trigger", trigger_schema, conditions)
    return Trigger(**trigger_values(conditions))


def trigger_to_json(trigger: Trigger) -> dict[str, Any]:
    """Returns the conditions that a trigger has."""
    return trigger_values({name: getattr(trigger, name) for name in Trigger.__slots__})
