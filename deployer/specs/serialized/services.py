"""The canonical JSON form of services, for the inputs of resources and the state. It omits values that equal their
defaults."""

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
    """Returns the services by name, each in the form of specs."""
    return {service.name: service_to_json(service) for service in services}


def services_from_json(form: Mapping[str, Any]) -> tuple[ServiceSpec, ...]:
    """Returns the services from the form that `services_to_json` returns, in the order of KINDS."""
    names = {kind: kind.lower() for kind in KINDS}
    return tuple(service_from_json(kind, mapping(form, name)) for kind, name in names.items() if name in form)


def service_to_json(service: ServiceSpec) -> dict[str, Any]:
    """Returns a service as JSON, without its name. The result is never empty."""
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
    """Returns the service from the form that `service_to_json` returns. Sizes and times may also be in the form of
    specs.

    Raises InvalidInput for an invalid form. Omits options that this release does not know.
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
    """Returns the trigger of a service from the JSON form of the service.

    Returns the default trigger of the kind where the form has no conditions, and None for a service that runs on demand
    only. Raises InvalidInput for an invalid form.
    """
    if text(form, "trigger_mode", "AUTOMATIC") != "AUTOMATIC":
        return None
    conditions = {name: value for name, value in mapping(form, "trigger", {}).items() if value is not None}
    if not conditions:
        return Trigger(**trigger_values(default_trigger(kind)))
    refuse_unfit("trigger", trigger_schema, conditions)
    return Trigger(**trigger_values(conditions))


def trigger_to_json(trigger: Trigger) -> dict[str, Any]:
    """Returns the conditions of a trigger as JSON."""
    return trigger_values({name: getattr(trigger, name) for name in Trigger.__slots__})
