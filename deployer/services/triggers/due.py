"""The services of a table that are due: by what was written since their last run, and by their schedules. Pure, from
the table's state and a clock.

A load runs at its end what is due by conditions, so such triggers need no agent. An agent looks at schedules too.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import takewhile

from deployer.live.services import trigger_of
from deployer.platform.text.formatting import count, percentage, size, timestamp
from deployer.runs.records import runs_of
from deployer.runs.runner import INTERRUPTED
from deployer.services.kinds.compact.planning import merged_files, small_files
from deployer.services.registry import SERVICES
from deployer.services.triggers.upstream import Upstream, Written, no_upstream, upstream_in
from deployer.specs.model import Trigger
from deployer.specs.schema.services import KINDS
from deployer.specs.values.schedules import firing_times, last_firing
from deployer.state.model.entities import TableState
from deployer.state.model.services import Run, Service, ServiceKind
from deployer.tables.open_table import ReadTable

REFRESH: ServiceKind = "REFRESH"
SCHEDULE = "schedule"  #: cause of the runs of a schedule
#: Minutes from the end of a run that failed to the next try, by how many failed one after the other; then the last.
RETRIES = (1, 5, 30, 180, 360)
CANCELLED_FOR = 60  #: minutes for which a cancelled run is not tried again

DeletedRows = Callable[[], Mapping[int, int]]  #: how many rows of each fragment are deleted; may open the dataset


@dataclass(frozen=True, slots=True)
class Due:
    """A service to run, and the reason: the condition that holds, or the time of its schedule.

    `run_id` follows from the reason, so several processes that queue the run queue it once. `at` is the time of the
    schedule (ms), None for conditions.
    """

    service: ServiceKind
    why: str
    run_id: str
    at: int | None = None

    @property
    def cause(self) -> str:
        """The cause in the run record."""
        return f"trigger: {self.why}" if self.at is None else SCHEDULE


def due_services(table: ReadTable) -> list[Due]:
    """Returns what is due by conditions now, in the order in which it is to run.

    Files are looked at one by one, and the dataset is opened, only for conditions on them and for COMPACT, and only
    when something was committed since the last run.
    """
    return due_in(table.state, cache(lambda: deleted_rows(table)), upstream=upstream_in(table.store))


def due_in(
    state: TableState, deleted: DeletedRows, now: int | None = None, upstream: Upstream = no_upstream
) -> list[Due]:
    """Returns what is due by conditions, and by schedules at `now` (ms) where that is given, in the order in which it
    is to run; nothing that is paused, running or not run by this release.

    With `now`, a service whose last runs failed waits a while (`RETRIES`). `upstream` looks at the sources of a view.
    """
    found = []
    for service, trigger in watched(state):
        if now is not None and now < retry_at(state, service.kind):
            continue
        due = _scheduled(state, service, trigger, now) if now is not None else None
        due = due or _by_condition(state, service, trigger, deleted, upstream)
        if due is not None:
            found.append(due)
    return sorted(found, key=lambda each: KINDS.index(each.service))


def watched(state: TableState) -> Iterator[tuple[Service, Trigger]]:
    """Yields the services that triggers start, and that have no open run."""
    if not state.properties.online:  # what runs by itself leaves it alone
        return
    for service in state.services.values():
        trigger = trigger_of(service)
        if service.kind not in SERVICES or trigger is None or service.paused:
            continue
        if not any(run.service == service.kind and run.is_open for run in state.runs.values()):
            yield service, trigger


def own_runs(state: TableState, kind: ServiceKind) -> list[Run]:
    """Returns the runs of a service, the newest first, without backfills of single columns."""
    return [run for run in runs_of(state, kind) if not run.target]


def retry_at(state: TableState, kind: ServiceKind) -> int:
    """Returns the time (ms) from which a service may run by itself again after failed or cancelled runs; 0 for
    others."""
    runs = own_runs(state, kind)
    failed = list(takewhile(lambda run: run.status in ("FAILED", "CANCELLED"), runs))
    if not failed:
        return 0
    minutes = CANCELLED_FOR if _cancelled(failed[0]) else RETRIES[min(len(failed), len(RETRIES)) - 1]
    return (failed[0].ended_at or 0) + minutes * 60_000


def scheduled_run_id(kind: ServiceKind, at: str) -> str:
    """Returns the id of the run for the time of a schedule, in UTC as `2026-01-31T03:00:00Z`; the same in every
    process."""
    return f"{kind.lower()}-{re.sub('[^0-9A-Za-z]', '', at)}"


def firing(service: Service, trigger: Trigger, now: int) -> int | None:
    """Returns the last time (ms) of the schedule since the trigger is in force; None if there was none."""
    if trigger.schedule is None:
        return None
    at = _last(trigger.schedule, trigger.timezone, now // 60_000)
    return at if at > service.since else None


def next_firing(trigger: Trigger, now: int) -> int | None:
    """Returns the next time (ms) of the trigger's schedule after `now`; None without a schedule."""
    if trigger.schedule is None:
        return None
    return _next(trigger.schedule, trigger.timezone, now // 60_000)


# Schedules fire at whole minutes, and many tables have the same.
@lru_cache(1024)
def _last(schedule: str, timezone: str, minute: int) -> int:
    last = last_firing(schedule, timezone, dt.datetime.fromtimestamp(minute * 60, dt.UTC))
    return round(last.timestamp() * 1000) if last is not None else 0


@lru_cache(1024)
def _next(schedule: str, timezone: str, minute: int) -> int | None:
    found = next(firing_times(schedule, timezone, dt.datetime.fromtimestamp(minute * 60, dt.UTC)), None)
    return round(found.timestamp() * 1000) if found is not None else None


def answers(run: Run, at: int) -> bool:
    """Returns whether the run is for what a schedule asked at that time, or later."""
    return run.queued_at >= at or run.run_id == scheduled_run_id(run.service, timestamp(at))


def _scheduled(state: TableState, service: Service, trigger: Trigger, now: int) -> Due | None:
    at = firing(service, trigger, now)
    if at is None:
        return None
    kind = service.kind
    runs = [run for run in own_runs(state, kind) if answers(run, at)]
    if any(run.status in ("SUCCEEDED", "SKIPPED") or _cancelled(run) for run in runs):
        return None
    when = timestamp(at)
    run_id = _next_id(state, kind) if runs else scheduled_run_id(kind, when)  # the first of it failed
    return Due(kind, f"the schedule's time {when}", run_id, at)


def _by_condition(
    state: TableState, service: Service, trigger: Trigger, deleted: DeletedRows, upstream: Upstream
) -> Due | None:
    why = condition(state, service.kind, trigger, deleted, upstream)
    return Due(service.kind, why, _next_id(state, service.kind)) if why else None


def condition(
    state: TableState,
    kind: ServiceKind,
    trigger: Trigger,
    deleted: DeletedRows,
    upstream: Upstream = no_upstream,
    at: int | None = None,
) -> str:
    """Returns a description of the trigger's condition that holds; empty when none does.

    None holds while the service has nothing to rewrite, where its definition can plan that. Conditions of REFRESH are
    on the sources of the view: now, or at the time (ms) of a state before.
    """
    if kind == REFRESH:
        return _held_upstream(trigger, upstream(state, at))
    why, pending = _held(state, kind, trigger, deleted), SERVICES[kind].pending
    return why if why and (pending is None or pending(state, deleted())) else ""


def _held_upstream(trigger: Trigger, written: Written | None) -> str:
    if trigger == Trigger(trigger.schedule, trigger.timezone) or written is None:
        return ""
    if written.first:
        return "it was never refreshed"
    if trigger.commits is not None and written.commits >= trigger.commits:
        return count(written.commits, "commit") + " to its sources"
    if trigger.rows is not None and written.rows >= trigger.rows:
        return count(written.rows, "row") + " written to its sources"
    if trigger.bytes is not None and written.bytes >= trigger.bytes:
        return f"{size(written.bytes)} written to its sources"
    return ""


def _held(state: TableState, kind: ServiceKind, trigger: Trigger, deleted: DeletedRows) -> str:
    if trigger == Trigger(trigger.schedule, trigger.timezone):
        return ""
    last = next((run for run in own_runs(state, kind) if run.figures.lance_version_after is not None), None)
    commits = _commits(state, last)
    if commits <= 0:
        return ""
    if trigger.commits is not None and commits >= trigger.commits:
        return count(commits, "commit")
    if trigger.rows is not None or trigger.bytes is not None:
        rows, written = _written(state, kind, last)
        if trigger.rows is not None and rows >= trigger.rows:
            return count(rows, "row") + " written"
        if trigger.bytes is not None and written >= trigger.bytes:
            return f"{size(written)} written"
    if trigger.small_files is not None and small_files(state) >= trigger.small_files:
        merged = merged_files(state)  # a plan, so only where there are enough small files
        if merged >= trigger.small_files:
            return count(merged, "small file")
    if trigger.deleted_share is not None and (share := _share(state, kind, deleted())) >= trigger.deleted_share:
        return f"{percentage(share)} deleted rows"
    return ""


def by_messages(state: TableState, kind: ServiceKind, messages: int) -> Due:
    """Returns the run for messages that wait in the service's queue."""
    return Due(kind, f"{count(messages, 'message')} in its queue", _next_id(state, kind))


def _next_id(state: TableState, kind: ServiceKind) -> str:
    """Returns the id of the run that follows the newest one: two processes that see the same state queue the same
    run."""
    last = next((run.run_id for run in runs_of(state, kind)), "")
    digest = hashlib.sha256(f"{state.table_id}/{kind}/{last}".encode()).hexdigest()
    return f"{kind.lower()}-{digest[:16]}"


def _cancelled(run: Run) -> bool:
    """Returns whether the run was cancelled itself: it was not stopped with its process, nor unable to begin."""
    return run.status == "CANCELLED" and run.started_at is not None and run.reason != INTERRUPTED


def _commits(state: TableState, last: Run | None) -> int:
    """Versions of the dataset since the last run with an effect, made by any program; all if it was replaced since."""
    then = (last.figures.lance_version_after or 0) if last else 1  # version 1 is empty
    return state.lance_version - then if then <= state.lance_version else state.lance_version


def _written(state: TableState, kind: ServiceKind, last: Run | None) -> tuple[int, int]:
    """Returns rows that jobs other than the service's own added since the last run began, and their approximate
    bytes."""
    since = (last.started_at or last.queued_at) if last else 0
    own = kind.lower()  # such as `backfill km`: a backfill adds no rows that the next one would compute
    rows = sum(job.added for job in state.jobs.values() if job.at > since and job.kind.partition(" ")[0] != own)
    return rows, rows * state.files.bytes // max(1, state.files.rows)


def _share(state: TableState, kind: ServiceKind, deleted: Mapping[int, int]) -> float:
    """Returns the share of deleted rows in files; where the service plans what it rewrites, of those that it would
    drop."""
    gone = sum(deleted.values())
    if not gone:
        return 0.0
    pending = SERVICES[kind].pending
    counted = sum(task.deleted for task in pending(state, deleted)) if pending is not None else gone
    return counted / (state.files.rows + gone)


def deleted_rows(table: ReadTable) -> dict[int, int]:
    """Returns how many rows of each fragment are deleted, where there are any. Opens the dataset."""
    fragments = table.dataset().get_fragments() if table.state.files.count else []
    found = {each.fragment_id: int(each.metadata.num_deletions) for each in fragments}
    return {fragment_id: rows for fragment_id, rows in found.items() if rows}
