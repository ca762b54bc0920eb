"""The services of a lake in its report: their status, their runs on a timeline, and what comes next."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from deployer.datasets.dataset import dataset_location
from deployer.datasets.errors import lance_errors
from deployer.errors import DeployerError
from deployer.platform.system.clock import utc
from deployer.services.triggers.health import ServiceReport, ServicesReport, services_report
from deployer.state import open_reader
from deployer.state.model.services import EXCLUDES, Run, ServiceKind
from deployer.tables.inspect.sensitive import protected_columns, without_reasons
from deployer.tables.open_table import ReadTable, read_entry

DRAWN = 60  #: the most runs of a service that are drawn; the newest are drawn
_NAMES = 17.0  #: percent of the width that the names of services take
# pixels: the height of a service's row, the height of a run in it, and the gap above the run
_LANE, _TALL, _GAP = 26, 14, 6
_SHORT = 600_000  #: milliseconds; for a shorter timeline, times are shown to the second
_LEAST = 0.5  #: the least width of a run, in percent


@dataclass(frozen=True, slots=True)
class RunBar:
    """A run: `left` and `width` in percent, `top` in pixels; `kind` is its status in lower case."""

    left: float
    width: float
    top: int
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Lane:
    """The row of one service."""

    name: ServiceKind
    at: int  #: the baseline of the name, in pixels
    bars: tuple[RunBar, ...]


@dataclass(frozen=True, slots=True)
class RunDrawing:
    """The runs of a table's services on a common time axis, from the oldest run that is drawn until now."""

    lanes: tuple[Lane, ...]
    height: int
    names: float
    since: str
    until: str
    dropped: int


@dataclass(frozen=True, slots=True)
class ServicesView:
    """The services of one table on the page."""

    report: ServicesReport
    runs: RunDrawing | None

    @property
    def wrong(self) -> tuple[ServiceReport, ...]:
        """The services that are overdue, or whose last run failed."""
        return tuple(each for each in self.report.services if not each.status.is_well)


def lake_services(root: str, now: dt.datetime) -> dict[str, ServicesView]:
    """Returns the services by the table's name. Tables that cannot be read are left out; the report lists them
    elsewhere."""
    at = round(now.timestamp() * 1000)
    found = {}
    with closing(open_reader(root)) as store:
        for entry in store.instance().tables.values():
            if entry.status != "active":
                continue
            try:
                with lance_errors(dataset_location(root, entry)):
                    found[entry.full_name] = table_services(read_entry(store, root, entry), at)
            except DeployerError:
                continue
    return found


def table_services(table: ReadTable, at: int) -> ServicesView:
    """Returns the services of a table at a time (ms). Raises DeployerError for a table that cannot be read."""
    with lance_errors(dataset_location(table.root, table.entry)):
        if protected_columns(table.store, table.state):
            table = replace(table, state=without_reasons(table.state))
        report = services_report(table, at)
    return ServicesView(report, runs_drawn(report.runs, at))


def runs_drawn(runs: Sequence[Run], now: int) -> RunDrawing | None:
    """Draws runs, given newest first, as rows of bars; None where there are no runs."""
    kinds = [kind for kind in EXCLUDES if any(run.service == kind for run in runs)]
    shown = {kind: [run for run in runs if run.service == kind][:DRAWN] for kind in kinds}
    began = [_began(run) for of_kind in shown.values() for run in of_kind]
    if not began:
        return None
    first, last = min(began), max(now, *(run.ended_at or 0 for of_kind in shown.values() for run in of_kind))
    lanes = tuple(
        Lane(kind, number * _LANE + _GAP + _TALL - 2, tuple(_bars(shown[kind], number, first, last, now)))
        for number, kind in enumerate(kinds)
    )
    dropped = len(runs) - len(began)
    since, until = (utc(at)[: 19 if last - first < _SHORT else 16] for at in (first, last))
    return RunDrawing(lanes, len(kinds) * _LANE + _GAP, _NAMES, since, until, dropped)


def _bars(runs: Iterable[Run], lane: int, first: int, last: int, now: int) -> Iterable[RunBar]:
    share = (100 - _NAMES - _LEAST) / max(last - first, 1)
    for run in runs:
        begin, end = _began(run), run.ended_at if run.ended_at is not None else now
        left = _NAMES + (begin - first) * share
        width = max((end - begin) * share, _LEAST)
        yield RunBar(
            round(left, 3), round(min(width, 100 - left), 3), lane * _LANE + _GAP, run.status.lower(), _title(run, end)
        )


def _began(run: Run) -> int:
    return run.started_at if run.started_at is not None else run.queued_at


def _title(run: Run, end: int) -> str:
    seconds = f", {(end - _began(run)) / 1000:,.1f} s" if run.started_at is not None else ""
    changes = [
        f"{name} {before} → {run.figures.after[name]}"
        for name, before in run.figures.before.items()
        if name in run.figures.after and run.figures.after[name] != before and not isinstance(before, dict | list)
    ]
    outcome = "; ".join(filter(None, (", ".join(changes), run.reason)))
    return f"{run.service} {run.status}, {utc(_began(run))} UTC{seconds} ({run.cause})" + (
        f": {outcome}" if outcome else ""
    )
