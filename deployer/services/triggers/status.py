"""The status of a service: whether it ran when its trigger was due.

A service that should have run and did not is OVERDUE. The functions are pure: they use states of the table and a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from deployer.live.services import fault_of, trigger_of
from deployer.platform.system.clock import utc
from deployer.services.registry import SERVICES
from deployer.services.triggers.due import DeletedRows, answers, condition, due_in, firing, next_firing, own_runs
from deployer.services.triggers.upstream import Upstream, no_upstream
from deployer.specs.model import Trigger
from deployer.state.model.entities import TableState
from deployer.state.model.services import Run, Service, ServiceKind

GRACE = 3600.0  #: seconds after which a due service is overdue

Before = Callable[[], TableState | None]  #: returns the table's state one grace period ago; None where it is unknown


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One service of a table. `overdue`, `failed`, `due` and `broken` are reasons; they are empty where they do not
    apply.

    `failed` concerns the newest run. `next_at` is the next time (ms) of the schedule. `broken` says why the state's
    record of the service is invalid; such a service does not run.
    """

    service: ServiceKind
    paused: bool
    last: Run | None
    overdue: str
    failed: str
    due: str
    next_at: int | None
    broken: str = ""

    @property
    def label(self) -> str:
        """The status that matters most: BROKEN, OVERDUE, PAUSED, QUEUED, RUNNING, FAILED, DUE or OK."""
        if self.broken:
            return "BROKEN"
        if self.overdue:
            return "OVERDUE"
        if self.paused:
            return "PAUSED"
        if self.last is not None and self.last.is_open:
            return self.last.status
        return "FAILED" if self.failed else "DUE" if self.due else "OK"

    @property
    def why(self) -> str:
        """The reason for `label`; empty where there is none."""
        if self.broken or self.overdue:
            return self.broken or self.overdue
        if self.paused:
            return ""
        if self.last is not None and self.last.is_open:
            return self.last.cause
        return self.failed or self.due

    @property
    def is_well(self) -> bool:
        return not (self.overdue or self.failed or self.broken)


def service_statuses(
    state: TableState,
    now: int,
    deleted: DeletedRows,
    before: Before = lambda: None,
    grace: float = GRACE,
    upstream: Upstream = no_upstream,
) -> list[ServiceStatus]:
    """Returns the status of each service of a table at `now` (ms), in the order of the state.

    `before` is called only where a condition holds: the service is overdue if the condition also held one grace period
    ago. `grace` is in seconds.
    """
    due = {each.service: each.why for each in due_in(state, deleted, now, upstream)}
    found = []
    for service in state.services.values():
        trigger = trigger_of(service)
        last = next(iter(own_runs(state, service.kind)), None)
        is_watched = trigger is not None and not service.paused and state.properties.online and service.kind in SERVICES
        found.append(
            ServiceStatus(
                service.kind,
                service.paused,
                last,
                _overdue(state, service, trigger, now, round(grace * 1000), before, deleted, upstream)
                if is_watched and trigger is not None
                else "",
                _failed(last) if not service.paused else "",
                due.get(service.kind, ""),
                next_firing(trigger, now) if is_watched and trigger is not None else None,
                fault_of(service),
            )
        )
    return found


def may_start(state: TableState, kind: ServiceKind) -> bool:
    """Returns whether a queued run could begin: no run that it excludes is running."""
    excluded = (kind, *SERVICES[kind].exclusive_with)
    return not any(run.status == "RUNNING" and run.service in excluded for run in state.runs.values())


def _failed(last: Run | None) -> str:
    if last is None or last.status != "FAILED":
        return ""
    return (
        f"its last run failed at {utc(last.ended_at or last.queued_at)} UTC: {last.reason or 'the reason is unknown'}"
    )


def _overdue(
    state: TableState,
    service: Service,
    trigger: Trigger,
    now: int,
    grace: int,
    before: Before,
    deleted: DeletedRows,
    upstream: Upstream,
) -> str:
    runs = own_runs(state, service.kind)
    last = runs[0] if runs else None
    if last is not None and last.is_open:
        return _stuck(state, last, now - grace)
    at = firing(service, trigger, now - grace)
    if at is not None and not any(answers(run, at) for run in runs):
        return (
            f"its schedule {trigger.schedule} {trigger.timezone} required a run at {utc(at)} UTC, and none started"
            f"{_since(last)}"
        )
    if service.since > now - grace or (last is not None and last.status in ("FAILED", "CANCELLED")):
        return ""  # the failure is reported instead; the service is tried again later
    why = condition(state, service.kind, trigger, deleted, upstream)
    then = before() if why else None
    if then is None or next(iter(own_runs(then, service.kind)), None) != last:
        return ""
    same = (then.dataset, then.lance_version) == (state.dataset, state.lance_version)
    held = condition(then, service.kind, trigger, deleted if same else dict, upstream, now - grace)
    if not held:
        return ""
    return (
        f"its condition has been true since {utc(now - grace)} UTC at least ({why}), and it did not run{_since(last)}"
    )


def _stuck(state: TableState, run: Run, late: int) -> str:
    if run.status == "QUEUED" and run.queued_at < late and may_start(state, run.service):
        return f"run {run.run_id} has been queued since {utc(run.queued_at)} UTC, and no agent starts it"
    if run.status == "RUNNING" and run.lease_until is not None and run.lease_until < late:
        return f"the lease of run {run.run_id} expired at {utc(run.lease_until)} UTC, and no agent ended the run"
    return ""


def _since(last: Run | None) -> str:
    return f"; its last run was queued at {utc(last.queued_at)} UTC" if last else "; it never ran"
