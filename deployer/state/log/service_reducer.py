"""Folds updates of services, runs and savepoints into a table's state.

The functions are pure. `reducer` calls them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from deployer.state.log.inapplicable import Inapplicable
from deployer.state.log.service_updates import (
    CancelRequested,
    FragmentsClaimed,
    LeaseRenewed,
    MoveServices,
    PastVersion,
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
from deployer.state.model.entities import TableState
from deployer.state.model.names import is_savepoint_name
from deployer.state.model.persistent_map import LayeredMap
from deployer.state.model.services import (
    RUNS_KEPT,
    TRANSITIONS,
    Run,
    RunStatus,
    Savepoint,
    Service,
    ServiceKind,
)


def apply_to_services(state: TableState, update: ServiceUpdate, version: int, at: int, author: str) -> TableState:
    """Returns the state after one update. `version`, `at` (ms since 1970) and `author` are those of its entry.

    Raises Inapplicable when the update does not fit the state.
    """
    match update:
        case PutService(service):
            service = replace(service, since=_since(state.services.get(service.kind), service, at))
            return replace(state, services={**state.services, service.kind: service})
        case RemoveService(kind):
            _service(state, kind)
            return replace(state, services={key: each for key, each in state.services.items() if key != kind})
        case MoveServices(cluster):
            moved = {
                kind: each if each.cluster == cluster else replace(each, cluster=cluster, declared=False)
                for kind, each in state.services.items()
            }
            return replace(state, services=moved, properties=replace(state.properties, services_cluster=cluster))
        case PauseService(kind) | ResumeService(kind):
            return _paused(state, kind, paused=isinstance(update, PauseService), at=at)
        case RunQueued(run_id, kind, cause, cluster, log, target, job):
            run = Run(run_id, kind, "QUEUED", cause, author, cluster, at, log=log, target=target, job=job)
            return _queued(state, run)
        case RunStarted(run_id, holder, lease_ms, log):
            run = _moved(state, run_id, "RUNNING")
            run = replace(run, started_at=at, holder=holder, lease_until=at + lease_ms)
            return _with_run(state, run if log is None else replace(run, log=log))
        case LeaseRenewed(run_id, lease_ms, progress):
            return _with_run(state, replace(_running(state, run_id), lease_until=at + lease_ms, progress=progress))
        case FragmentsClaimed(run_id, fragments):
            return _with_run(state, replace(_running(state, run_id), claims=fragments))
        case CancelRequested(run_id):
            return _with_run(state, replace(_running(state, run_id), wish="cancel"))
        case RunEnded(run_id, status, figures, reason, progress):
            run = replace(_moved(state, run_id, status), ended_at=at, lease_until=None, wish=None)
            run = replace(run, figures=figures, reason=reason, claims=())
            return _forgetful(_with_run(state, run if progress is None else replace(run, progress=progress)), run)
        case SavepointTaken(name, expires_at, note, of):
            if name in state.savepoints:
                raise Inapplicable(f"the table has a savepoint {name} already")
            if not is_savepoint_name(name):
                raise Inapplicable(f"a savepoint cannot be called {name!r}")
            of = of or PastVersion(state.dataset, state.lance_version, version)
            if of.state_version > version or of.dataset > state.dataset:
                raise Inapplicable(
                    f"a savepoint cannot be of version {of.state_version} of the log, which does not exist"
                )
            taken = Savepoint(name, of.lance_version, of.dataset, of.state_version, at, expires_at, author, note)
            return replace(state, savepoints={**state.savepoints, name: taken})
        case SavepointRemoved(name):
            if name not in state.savepoints:
                raise Inapplicable(f"the table has no savepoint {name}")
            return replace(state, savepoints={key: each for key, each in state.savepoints.items() if key != name})
        case SavepointsExpired(moment):
            left = {
                key: each
                for key, each in state.savepoints.items()
                if each.expires_at is None or each.expires_at > moment
            }
            return replace(state, savepoints=left)
        case _:
            assert_never(update)


def _service(state: TableState, kind: ServiceKind) -> Service:
    service = state.services.get(kind)
    if service is None:
        raise Inapplicable(f"the table has no {kind} service")
    return service


def _since(before: Service | None, after: Service, at: int) -> int:
    """Returns the time from which the trigger of `after` counts, where `after` replaces the service `before`.

    The time is `at` for a new service, for a changed trigger and after a pause; otherwise it stays the same.
    """
    if before is None or (before.trigger_mode, before.trigger) != (after.trigger_mode, after.trigger):
        return at
    return at if before.paused and not after.paused else before.since


def _paused(state: TableState, kind: ServiceKind, *, paused: bool, at: int) -> TableState:
    before = _service(state, kind)
    service = replace(before, paused=paused)
    service = replace(service, since=_since(before, service, at))
    state = replace(state, services={**state.services, kind: service})
    run = next((each for each in state.runs.values() if each.service == kind and each.status == "RUNNING"), None)
    if run is None or run.wish == "cancel":
        return state
    return _with_run(state, replace(run, wish="pause" if paused else None))


def _queued(state: TableState, run: Run) -> TableState:
    if run.run_id in state.runs:
        raise Inapplicable(f"run {run.run_id} exists already")
    if other := open_run(state, run.service, run.target):
        raise Inapplicable(f"run {other.run_id} of {other.service} is {other.status}")
    return _with_run(state, run)


def open_run(state: TableState, kind: ServiceKind, target: tuple[str, ...] = ()) -> Run | None:
    """Returns a queued or running run that competes with a run of the service `kind` on `target` (columns).

    Returns None if there is none (see `Run.competes_with`).
    """
    return next((run for run in state.runs.values() if run.competes_with(kind, target)), None)


def _run(state: TableState, run_id: str) -> Run:
    run = state.runs.get(run_id)
    if run is None:
        raise Inapplicable(f"there is no run {run_id}")
    return run


def _running(state: TableState, run_id: str) -> Run:
    run = _run(state, run_id)
    if run.status != "RUNNING":
        raise Inapplicable(f"run {run_id} is {run.status}, not RUNNING")
    return run


def _moved(state: TableState, run_id: str, status: RunStatus) -> Run:
    run = _run(state, run_id)
    if status not in TRANSITIONS[run.status]:
        raise Inapplicable(f"run {run_id} is {run.status} and cannot become {status}")
    return replace(run, status=status)


def _with_run(state: TableState, run: Run) -> TableState:
    return replace(state, runs=_layered(state.runs).changed({run.run_id: run}))


def _forgetful(state: TableState, ended: Run) -> TableState:
    """Returns the state with at most RUNS_KEPT ended runs of the service of `ended`: the oldest are removed."""
    of_it = [run for run in state.runs.values() if run.service == ended.service and not run.is_open]
    if len(of_it) <= RUNS_KEPT:
        return state
    oldest = sorted(of_it, key=lambda run: (run.ended_at or 0, run.queued_at, run.run_id))[:-RUNS_KEPT]
    return replace(state, runs=_layered(state.runs).changed({}, [run.run_id for run in oldest]))


def _layered(runs: Mapping[str, Run]) -> LayeredMap[str, Run]:
    return runs if isinstance(runs, LayeredMap) else LayeredMap(runs)
