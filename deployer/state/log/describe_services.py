"""The texts of updates of services, runs and savepoints, for people who read a log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import assert_never

from deployer.platform.files.json_values import JSON
from deployer.platform.text.formatting import count
from deployer.state.log.service_updates import (
    CancelRequested,
    FragmentsClaimed,
    LeaseRenewed,
    MoveServices,
    PauseService,
    PutService,
    RemoveService,
    ResumeService,
    RunEnded,
    RunQueued,
    RunStarted,
    SavepointRemoved,
    SavepointsExpired,
    SavepointTaken,
    ServiceUpdate,
)
from deployer.state.model.services import Service

_SHORT = 80  #: characters; a longer reason or map is cut
_LONG = 2_000  #: characters; a longer description of a service is cut, so that options are usually shown whole


def describe_service_update(update: ServiceUpdate) -> str:
    """Returns a description of the update, such as `queue run 7f3a of COMPACT (schedule)`."""
    match update:
        case PutService(service):
            return f"set service {service.kind}: {_described(service)}"
        case RemoveService(kind):
            return f"remove service {kind}"
        case MoveServices(cluster):
            return f"move all services to {f'cluster {cluster}' if cluster else 'the default cluster'}"
        case PauseService(kind):
            return f"pause service {kind}"
        case ResumeService(kind):
            return f"resume service {kind}"
        case RunQueued(run_id, kind, cause, cluster, _, target, _):
            of = f" for {', '.join(target)}" if target else ""
            return f"queue run {run_id} of {kind}{of} ({', '.join(filter(None, (cause, cluster)))})"
        case RunStarted(run_id, holder, lease_ms, _):
            return f"start run {run_id} (held by {holder} for {lease_ms / 1000:g} s)"
        case LeaseRenewed(run_id, lease_ms, progress):
            return f"renew the lease of run {run_id} for {lease_ms / 1000:g} s{_map(progress)}"
        case FragmentsClaimed(run_id, fragments):
            return f"run {run_id} claims {count(len(fragments), 'fragment')}"
        case CancelRequested(run_id):
            return f"ask run {run_id} to end"
        case RunEnded(run_id, status, _, reason, _):
            return f"run {run_id} is {status}{f': {_cut(reason)}' if reason else ''}"
        case SavepointTaken(name, expires_at, _):
            return f"take savepoint {name}{f' until {_utc(expires_at)}' if expires_at is not None else ''}"
        case SavepointRemoved(name):
            return f"remove savepoint {name}"
        case SavepointsExpired(moment):
            return f"remove savepoints that were kept until {_utc(moment)} or before"
        case _:
            assert_never(update)


def _described(service: Service) -> str:
    parts = [service.trigger_mode, *(f"{name} = {value}" for name, value in service.trigger.items())]
    parts += [f"on {service.cluster}"] if service.cluster is not None else []
    parts += ["paused"] if service.paused else []
    options = ", ".join(f"{name} = {_value(value)}" for name, value in service.options.items())
    unchecked = " (unchecked)" if service.unsafe_raw else ""
    return _cut(", ".join(parts) + (f"; options{unchecked}: {options}" if options else ""), _LONG)


def _value(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _map(values: Mapping[str, JSON]) -> str:
    return f": {_cut(', '.join(f'{name} = {value}' for name, value in values.items()))}" if values else ""


def _cut(text: str, most: int = _SHORT) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _utc(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):  # the time is outside the range of `datetime`
        return f"{ms} ms"
