"""The services of a table that are due, by what was written since their last run and by their schedules.

The functions are pure: they use the table's state and a clock. A load runs at its end the services that are due by
conditions, so such triggers need no agent. An agent also checks schedules.
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
SCHEDULE = "schedule"  #: the cause of the runs of a schedule
#: the minutes between the end of a failed run and the next attempt, by the number of failures in a row; then the last
RETRIES = (1, 5, 30, 180, 360)
CANCELLED_FOR = 60  #: the minutes for which a cancelled run is not tried again
DeletedRows = Callable[[], Mapping[int, int]]  #: returns the number of deleted rows by fragment; may open the dataset


@dataclass(frozen=True, slots=True)
class Due:
    """A service to run, with the reason `why`: the condition that holds, or the time of its schedule.

    `run_id` follows from the reason, so several processes queue one run. `at` is the time of the schedule (ms); None
    for conditions.
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
    """Returns the services that are due by conditions now, in the order of their runs.

    Reads single files and opens the dataset only for conditions on them and for COMPACT, and only where something was
    committed since the last run.
    """
    return due_in(table.state, cache(lambda: deleted_rows(table)), upstream=upstream_in(table.store))


def due_in(
    state: TableState, deleted: DeletedRows, now: int | None = None, upstream: Upstream = no_upstream
) -> list[Due]:
    """Returns the services that are due by conditions, and with `now` (ms) by schedules, in the order of their runs.

    Services that are paused, have an open run or are unknown to this release are not due. With `now`, a service whose
    last runs failed waits for a time (`RETRIES`). `upstream` returns what was written to the sources of a view.
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
    """Yields the services that triggers may start, without those that have an open run."""
    if not state.properties.online:  # triggers start nothing on a table that is offline
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
    """Returns the time (ms) from which triggers may start a service again after failed or cancelled runs; 0 for
    others."""
    runs = own_runs(state, kind)
    failed = list(takewhile(lambda run: run.status in ("FAILED", "CANCELLED"), runs))
    if not failed:
        return 0
    minutes = CANCELLED_FOR if _cancelled(failed[0]) else RETRIES[min(len(failed), len(RETRIES)) - 1]
    return (failed[0].ended_at or 0) + minutes * 60_000


def scheduled_run_id(kind: ServiceKind, at: str) -> str:
    """Returns the id of the run for a time of a schedule; it is the same in every process. `at` is in UTC, such as
    `2026-01-31T03:00:00Z`."""
    return f"{kind.lower()}-{re.sub('[^0-9A-Za-z]', '', at)}"


def firing(service: Service, trigger: Trigger, now: int) -> int | None:
    """Returns the last time (ms) of the schedule up to `now`; None if there was none since the trigger was set."""
    if trigger.schedule is None:
        return None
    at = _last(trigger.schedule, trigger.timezone, now // 60_000)
    return at if at > service.since else None


def next_firing(trigger: Trigger, now: int) -> int | None:
    """Returns the next time (ms) of the trigger's schedule after `now`; None without a schedule."""
    if trigger.schedule is None:
        return None
    return _next(trigger.schedule, trigger.timezone, now // 60_000)


# The results are cached: schedules fire at whole minutes, and many tables have the same schedule.
@lru_cache(1024)
def _last(schedule: str, timezone: str, minute: int) -> int:
    last = last_firing(schedule, timezone, dt.datetime.fromtimestamp(minute * 60, dt.UTC))
    return round(last.timestamp() * 1000) if last is not None else 0


@lru_cache(1024)
def _next(schedule: str, timezone: str, minute: int) -> int | None:
    found = next(firing_times(schedule, timezone, dt.datetime.fromtimestamp(minute * 60, dt.UTC)), None)
    return round(found.timestamp() * 1000) if found is not None else None


def answers(run: Run, at: int) -> bool:
    """Returns whether the run is the one for the time `at` (ms) of a schedule, or a later one."""
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
    run_id = _next_id(state, kind) if runs else scheduled_run_id(kind, when)  # with `runs`, the first one failed
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
    """Returns a description of the trigger's condition that holds; empty where none does.

    No condition holds while the service has nothing to rewrite, if its definition can plan that. Conditions of REFRESH
    concern the sources of the view, now or at the earlier time `at` (ms).
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
        merged = merged_files(state)  # this makes a plan, so only where there are enough small files
        if merged >= trigger.small_files:
            return count(merged, "small file")
    if trigger.deleted_share is not None and (share := _share(state, kind, deleted())) >= trigger.deleted_share:
        return f"{percentage(share)} deleted rows"
    return ""


def by_messages(state: TableState, kind: ServiceKind, messages: int) -> Due:
    """Returns the run that is due because of `messages` messages in the service's queue."""
    return Due(kind, f"{count(messages, 'message')} in its queue", _next_id(state, kind))


def _next_id(state: TableState, kind: ServiceKind) -> str:
    """Returns the id of the run after the newest one. Two processes that read the same state get the same id."""
    last = next((run.run_id for run in runs_of(state, kind)), "")
    digest = hashlib.sha256(f"{state.table_id}/{kind}/{last}".encode()).hexdigest()
    return f"{kind.lower()}-{digest[:16]}"


def _cancelled(run: Run) -> bool:
    """Returns whether the run itself was cancelled. A run that stopped with its process or could not begin does not
    count."""
    return run.status == "CANCELLED" and run.started_at is not None and run.reason != INTERRUPTED


def _commits(state: TableState, last: Run | None) -> int:
    """Returns the number of versions of the dataset, made by any program, since the last run with an effect; of all
    versions where the dataset was replaced since."""
    then = (last.figures.lance_version_after or 0) if last else 1  # version 1 is empty
    return state.lance_version - then if then <= state.lance_version else state.lance_version


def _written(state: TableState, kind: ServiceKind, last: Run | None) -> tuple[int, int]:
    """Returns the number of rows added since the last run began, by jobs other than the service's own, and their
    approximate bytes."""
    since = (last.started_at or last.queued_at) if last else 0
    own = kind.lower()  # kinds of own jobs begin with it, such as `backfill km`; their rows do not make a run due
    rows = sum(job.added for job in state.jobs.values() if job.at > since and job.kind.partition(" ")[0] != own)
    return rows, rows * state.files.bytes // max(1, state.files.rows)


def _share(state: TableState, kind: ServiceKind, deleted: Mapping[int, int]) -> float:
    """Returns the share of deleted rows in files. If the service can plan its rewrites, only rows that it would drop
    count as deleted."""
    gone = sum(deleted.values())
    if not gone:
        return 0.0
    pending = SERVICES[kind].pending
    counted = sum(task.deleted for task in pending(state, deleted)) if pending is not None else gone
    return counted / (state.files.rows + gone)


def deleted_rows(table: ReadTable) -> dict[int, int]:
    """Returns the number of deleted rows by fragment, for fragments that have any. Opens the dataset."""
    fragments = table.dataset().get_fragments() if table.state.files.count else []
    found = {each.fragment_id: int(each.metadata.num_deletions) for each in fragments}
    return {fragment_id: rows for fragment_id, rows in found.items() if rows}
