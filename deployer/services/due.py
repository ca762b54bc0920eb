"""Which services of a table are due by what was written since their last run. Schedules are not looked at here.

A load looks at its own end and runs what is due, so that such triggers need nobody who watches.
"""

from __future__ import annotations

from dataclasses import dataclass

from deployer.live.services import trigger_of
from deployer.plan.words import count, size
from deployer.services.compact.options import CompactOptions
from deployer.services.compact.planning import SMALL
from deployer.services.run import RUNNERS
from deployer.services.runs import runs_of
from deployer.specs.model import Trigger
from deployer.specs.service_schema import KINDS
from deployer.state.model import TableState
from deployer.state.services import Run, Service, ServiceKind
from deployer.tables.dataset import OpenTable


@dataclass(frozen=True, slots=True)
class Due:
    """A service that is to run, and why: the condition that holds."""

    service: ServiceKind
    why: str


def due_services(table: OpenTable) -> list[Due]:
    """What is due now, in the order in which it is to run; nothing that is paused, running or not run by this release.

    Files are looked at one by one, and the dataset is opened, only for conditions on them and when something was
    committed since the last run.
    """
    if not table.state.properties.online:  # what runs by itself leaves it alone
        return []
    found = []
    services = {service.kind: service for service in table.state.services.values()}
    for service in (each for kind, each in services.items() if kind in RUNNERS):
        last = next(iter(runs_of(table.state, service.kind)), None)
        trigger = trigger_of(service)
        if trigger is None or service.paused or (last is not None and last.is_open):
            continue
        if why := _why(table, trigger, last):
            found.append(Due(service.kind, why))
    return sorted(found, key=lambda each: KINDS.index(each.service))


def _why(table: OpenTable, trigger: Trigger, last: Run | None) -> str:
    commits = _commits(table.state, last)
    if commits <= 0:
        return ""
    if trigger.commits is not None and commits >= trigger.commits:
        return count(commits, "commit")
    if trigger.rows is not None or trigger.bytes is not None:
        rows, written = _written(table.state, last)
        if trigger.rows is not None and rows >= trigger.rows:
            return count(rows, "row") + " written"
        if trigger.bytes is not None and written >= trigger.bytes:
            return f"{size(written)} written"
    if trigger.small_files is not None and (small := _small_files(table)) >= trigger.small_files:
        return count(small, "small file")
    if trigger.deleted_share is not None and (share := _deleted_share(table)) >= trigger.deleted_share:
        return f"{100 * share:.3g}% deleted rows"
    return ""


def _commits(state: TableState, last: Run | None) -> int:
    """Versions of the dataset since the last run, whoever made them; of a dataset that was replaced, all."""
    then = (last.figures.lance_version_after or 0) if last else 1  # version 1 is empty
    return state.lance_version - then if then <= state.lance_version else state.lance_version


def _written(state: TableState, last: Run | None) -> tuple[int, int]:
    """Rows that jobs added since the last run began, and about so many bytes."""
    since = (last.started_at or last.queued_at) if last else 0
    rows = sum(job.rows for job in state.jobs.values() if job.at > since and job.kind not in _REWRITES)
    return rows, rows * state.files.bytes // max(1, state.files.rows)


_REWRITES = frozenset(kind.lower() for kind in KINDS)


def _small_files(table: OpenTable) -> int:
    """Files that COMPACT would call small, by its own options where the table has it."""
    service: Service | None = table.state.services.get("COMPACT")
    options = CompactOptions.of(service.options if service is not None and not service.unsafe_raw else {})
    sizes = options.sizes(table.layout().max_rows_per_file)
    return sum(sizes.weight(file.rows, file.bytes) < SMALL for file in table.state.files)


def _deleted_share(table: OpenTable) -> float:
    """Of the rows that are in files, those that are deleted."""
    rows = table.state.files.rows
    fragments = table.dataset().get_fragments()
    physical = sum(fragment.physical_rows for fragment in fragments) if rows else 0
    return (physical - rows) / physical if physical else 0.0
