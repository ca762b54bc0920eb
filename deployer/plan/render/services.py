"""The texts of services and their changes, which every rendering shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from deployer.plan.changes import (
    ChangeServiceOptions,
    ChangeTrigger,
    CreateService,
    DeleteService,
    MoveServiceToCluster,
    ServiceChange,
)
from deployer.platform.text.formatting import count
from deployer.platform.text.units import exact_size
from deployer.specs.model import ServiceSpec, Trigger
from deployer.specs.schema.services import option_document

UNCHECKED = "options unchecked"


def describe_service_change(change: ServiceChange) -> str:
    """Returns one line, such as `trigger of service compact: on demand → at 0 3 * * * Europe/Berlin`."""
    match change:
        case CreateService(service=service):
            return f"create service {service.name}: {_service(service)}"
        case DeleteService(service=service):
            return f"delete service {service.name}"
        case ChangeTrigger(service=kind, before=old, after=new):
            return f"trigger of service {kind.lower()}: {describe_trigger(old)} → {describe_trigger(new)}"
        case ChangeServiceOptions(service=kind, after_raw=raw):
            return f"options of service {kind.lower()}: {_changed(change)}" + (
                f" ({UNCHECKED})" if raw and change.before_raw else ""
            )
        case MoveServiceToCluster(service=kind, before=old_cluster, after=new_cluster):
            return f"cluster of service {kind.lower()}: {old_cluster or 'default'} → {new_cluster or 'default'}"


def service_name(change: ServiceChange) -> str:
    """Returns the name, as specs have it, of the service that changes."""
    kind = change.service if isinstance(change.service, str) else change.service.kind
    return kind.lower()


def describe_trigger(trigger: Trigger | None) -> str:
    """Returns `at 0 3 * * * Europe/Berlin, or after 100 commits`."""
    if trigger is None:
        return "on demand"
    found = [f"at {trigger.schedule} {trigger.timezone}"] if trigger.schedule else []
    after = [count(number, what) for number, what in _counted(trigger) if number is not None]
    if trigger.bytes is not None:
        after.append(exact_size(trigger.bytes))
    if trigger.deleted_share is not None:
        after.append(f"{100 * trigger.deleted_share:.4g}% deleted rows")
    return ", or ".join([*found, *([f"after {' or '.join(after)}"] if after else [])])


def service_names(services: Iterable[ServiceSpec]) -> str:
    """Returns `compact, clean (options unchecked)`."""
    return ", ".join(each.name + (f" ({UNCHECKED})" if each.unsafe_raw else "") for each in services)


def _counted(trigger: Trigger) -> tuple[tuple[int | None, str], ...]:
    return (trigger.commits, "commit"), (trigger.rows, "row"), (trigger.small_files, "small file")


def _service(service: ServiceSpec) -> str:
    cluster = f", on {service.cluster}" if service.cluster else ""
    options = ", ".join(
        f"{name} {describe_option(service.kind, name, value)}" for name, value in service.options.items()
    )
    raw = [UNCHECKED] if service.unsafe_raw else []
    more = ", ".join([*([options] if options else []), *raw])
    reads = "; an agent reads the queue at once, AWS and cron only at these times" if _has_queue(service) else ""
    return f"{describe_trigger(service.trigger)}{reads}{cluster}" + (f" ({more})" if more else "")


def _has_queue(service: ServiceSpec) -> bool:
    """Returns whether messages of a queue start the service too, where an agent reads the queue."""
    return service.kind == "INGEST" and "queue" in service.options and service.trigger is not None


def _changed(change: ChangeServiceOptions) -> str:
    parts = [
        f"{name} {_side(change, change.before, name)} → {_side(change, change.after, name)}"
        for name in dict.fromkeys((*change.before, *change.after))
        if change.before.get(name) != change.after.get(name)
    ]
    if change.before_raw != change.after_raw:
        parts.append(
            f"{'unchecked' if change.before_raw else 'checked'} → {'unchecked' if change.after_raw else 'checked'}"
        )
    return ", ".join(parts)


def _side(change: ChangeServiceOptions, options: Mapping[str, object], name: str) -> str:
    return describe_option(change.service, name, options[name]) if name in options else "default"


def describe_option(kind: str, name: str, value: object) -> str:
    """Returns an option's value as text."""
    return _value_text(option_document(kind, name, value))


def _value_text(value: object) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case Mapping():
            return " ".join(_value_text(item) for item in value.values())
        case list() | tuple():
            return f"[{', '.join(_value_text(item) for item in value)}]"
        case _:
            return str(value)
