"""The health of a table, the status of its services, and forecasts of their next runs, for the report of a lake."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from deployer.errors import DeployerError
from deployer.live.services import trigger_of
from deployer.plan.render.services import describe_trigger
from deployer.runs.records import runs_of
from deployer.services.kinds.compact.planning import small_files
from deployer.services.registry import forecast
from deployer.services.triggers.due import deleted_rows
from deployer.services.triggers.status import GRACE, ServiceStatus, service_statuses
from deployer.services.triggers.upstream import upstream_in
from deployer.state.model.entities import TableState
from deployer.state.model.files.data_file import File
from deployer.state.model.services import Run, Service
from deployer.state.snapshots.history import Time
from deployer.tables.open_table import ReadTable


@dataclass(frozen=True, slots=True)
class TableHealth:
    """The health of a table. `small_files` counts the files that COMPACT calls small.

    `deleted` is the share of deleted rows in files. `meets` is the mean number of other files of the same leaf that a
    file overlaps with by row keys, weighted by rows; None without row keys. `depth` is the overlap depth that CLUSTER
    recorded last, with its time (ms); None where CLUSTER has not run since the table was created or rewritten.
    """

    files: int
    small_files: int
    deleted: float
    meets: float | None
    depth: tuple[float, int] | None


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """A service with its status. `runs_when` describes its trigger, and `next_run` its next run."""

    service: Service
    runs_when: str
    status: ServiceStatus
    next_run: str


@dataclass(frozen=True, slots=True)
class ServicesReport:
    """A table's health and services, and all of its recorded runs, the newest first."""

    health: TableHealth
    services: tuple[ServiceReport, ...]
    runs: tuple[Run, ...]


def services_report(table: ReadTable, now: int) -> ServicesReport:
    """Returns the report on an open table at `now` (ms). Reads manifests and lists files, but reads no rows.

    Raises DeployerError where the table cannot be read.
    """
    state, deleted = table.state, deleted_rows(table)

    def before() -> TableState | None:
        try:
            return table.store.table(state.table_id, at=Time(now - round(GRACE * 1000)))
        except DeployerError:
            return None

    found = service_statuses(state, now, lambda: deleted, before, upstream=upstream_in(table.store))
    services = tuple(
        ServiceReport(service, describe_trigger(trigger_of(service)), status, forecast(table, service.kind))
        for status in found
        for service in (state.services[status.service],)
    )
    files, gone = list(state.files), sum(deleted.values())
    share = gone / (state.files.rows + gone) if gone else 0.0
    keyed = state.properties.row_keys and all(file.min_key is not None for file in files)
    health = TableHealth(state.files.count, small_files(state), share, meets(files) if keyed else None, depth(state))
    return ServicesReport(health, services, tuple(runs_of(state)))


def meets(files: Iterable[File]) -> float:
    """Returns the mean number of other files of its leaf that a file overlaps with by keys, weighted by rows."""
    leaves: dict[str | None, list[File]] = {}
    for file in files:
        leaves.setdefault(file.partition, []).append(file)
    met = rows = 0
    for leaf in leaves.values():
        lows = sorted(file.min_key or b"" for file in leaf)
        highs = sorted(file.max_key or b"" for file in leaf)
        for file in leaf:
            begun = bisect_right(lows, file.max_key or b"")
            over = bisect_left(highs, file.min_key or b"")
            met += (begun - over - 1) * file.rows
            rows += file.rows
    return met / rows if rows else 0.0


def depth(state: TableState) -> tuple[float, int] | None:
    """Returns the overlap depth that CLUSTER recorded last, with its time (ms); None where there is none.

    A rewrite changes the order of rows, so values from before the last rewrite do not count.
    """
    rewritten = next((each.since for each in state.datasets if each.status == "current"), 0)
    for run in runs_of(state, "CLUSTER"):
        recorded = run.figures.after.get("depth")
        if isinstance(recorded, int | float) and run.ended_at is not None and run.ended_at >= rewritten:
            return float(recorded), run.ended_at
    return None
