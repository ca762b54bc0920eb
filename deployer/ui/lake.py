"""The data of the lake for the pages: it is read once for each version of the state, and cached until the state
changes."""

from __future__ import annotations

import datetime as dt
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from deployer.app.report_page.services import ServicesView, table_services
from deployer.datasets.dataset import dataset_location
from deployer.datasets.errors import lance_errors
from deployer.datasets.files.local_files import require_whole
from deployer.errors import DeployerError
from deployer.live.reader import active_tables, live_table
from deployer.runs.records import runs_of
from deployer.services.agent.watch import Look, Watch, WatchedTable
from deployer.services.triggers.status import ServiceStatus
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.reader import StateReader
from deployer.tables.inspect.describe import TableSummary, summary_of
from deployer.tables.inspect.report import TableReport, table_report
from deployer.tables.inspect.sensitive import REASON, protected_columns
from deployer.tables.open_table import ReadTable, find_entry, read_entry

PAGE = 100  #: tables of one page
FOUND = 50  #: tables and columns that a search shows
_KEPT = 2_000  #: values of the cache
_FRESH = 10_000  #: milliseconds for which time-dependent values are cached

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableLine:
    """One table of the list: `summary` is None where the table cannot be read, and `problem` says why."""

    name: str
    summary: TableSummary | None
    problem: str
    runs: tuple[str, ...] = ()  #: services with a run that is queued or running
    failed: tuple[str, ...] = ()  #: services whose newest run failed


@dataclass(frozen=True, slots=True)
class TableList:
    """A page of tables: `tables` of `found`, from number `first`. `rows`, `bytes` and `files` are of all `found`."""

    tables: tuple[TableLine, ...]
    found: int
    first: int
    rows: int
    bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class Match:
    """A table that a search found; `columns` are its columns whose name or description has the words."""

    name: str
    description: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """A table with its report and its services."""

    table: ReadTable
    report: TableReport
    services: ServicesView


class LakeView:
    """One lake at `root`, for several threads. Reads through `store`, and writes nothing."""

    def __init__(self, store: StateReader, root: str) -> None:
        self.store, self.root = store, root
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._watching = threading.Lock()
        self._watch = Watch(store, root)

    def prepare(self, now: dt.datetime) -> None:
        """Reads the data for the first pages, so that they are as fast as later ones. Pages report failures."""
        with suppress(DeployerError):
            names = [line.name for line in self.tables().tables if line.summary is not None]
            self.search("a")
            self.health(now)
            if names:
                self.table(names[0], now)

    def tables(self, words: str = "", first: int = 0) -> TableList:
        """Returns the tables by name whose name has `words`, `PAGE` of them from number `first`."""
        active = active_tables(self.store)
        whole = {entry.full_name: (entry, state) for entry, state in active.found.values()}
        broken = {each.name: each.why for each in active.unreadable.values()}
        names = sorted(name for name in (*whole, *broken) if words.lower() in name.lower())
        states = [whole[name][1] for name in names if name in whole]
        shown = names[first : first + PAGE]
        return TableList(
            tuple(self._line(*whole[name]) if name in whole else TableLine(name, None, broken[name]) for name in shown),
            len(names),
            first,
            sum(state.files.rows for state in states),
            sum(state.files.bytes for state in states),
            sum(state.files.count for state in states),
        )

    def _line(self, entry: TableEntry, state: TableState) -> TableLine:
        newest = {run.service: run for run in reversed(runs_of(state))}.values()
        running = tuple(f"{run.service} {run.status.lower()}" for run in newest if run.is_open)
        failed = tuple(run.service for run in newest if run.status == "FAILED")
        try:
            return TableLine(entry.full_name, summary_of(self.store, self.root, entry, state), "", running, failed)
        except DeployerError as error:
            return TableLine(entry.full_name, None, str(error), running, failed)

    def open(self, name: str) -> ReadTable:
        """Opens a table at its newest version. Raises NotFound with the nearest name."""
        entry = find_entry(self.store.instance().tables.values(), name)
        with lance_errors(dataset_location(self.root, entry)):
            return read_entry(self.store, self.root, entry)

    def table(self, name: str, now: dt.datetime) -> OpenedTable:
        """Returns a table with its report and services. Raises NotFound, and Corrupt for one that cannot be read."""
        table = self.open(name)
        require_whole(table.location, table.state.files.bytes)
        at = round(now.timestamp() * 1000)
        key = _version_of(table)
        report = self._once(("report", key), lambda: self._report(table))
        if report.description.view is not None:  # how late it is depends on other tables
            report = self._report(table)
        return OpenedTable(table, report, self._services(table, at))

    def services(self, name: str, now: dt.datetime) -> ServicesView:
        """Returns the services and runs of a table. Raises as `table` does."""
        return self._services(self.open(name), round(now.timestamp() * 1000))

    def _services(self, table: ReadTable, at: int) -> ServicesView:
        return self._once(("services", _version_of(table), at // _FRESH), lambda: table_services(table, at))

    def _report(self, table: ReadTable) -> TableReport:
        with lance_errors(table.location):
            return table_report(table)

    def health(self, now: dt.datetime) -> Look:
        """Returns the status of all services, views and tables."""
        with self._watching:
            return self._watch.look(round(now.timestamp() * 1000))

    def reason(self, table: WatchedTable, status: ServiceStatus) -> str:
        """Returns why a service is not healthy, without the reason of a failed run, which may contain sensitive
        values."""
        if status.failed and status.label == "FAILED" and protected_columns(self.store, table.state):
            return REASON
        return status.why

    def search(self, words: str) -> tuple[Sequence[Match], int]:
        """Returns the first tables whose name, description or columns have the words, and the number of all."""
        found = []
        wanted = words.lower().split()
        for entry, state in active_tables(self.store).found.values():
            key = ("texts", entry.full_name, state.table_id, state.version)
            texts = self._once(key, partial(_texts, entry, state))
            whole = " ".join((entry.full_name, texts.description, *texts.columns)).lower()
            if wanted and all(word in whole for word in wanted):
                columns = tuple(each for each in texts.columns if any(word in each.lower() for word in wanted))
                found.append(Match(entry.full_name, texts.description, columns))
        found.sort(key=lambda match: (not all(word in match.name.lower() for word in wanted), match.name))
        return found[:FOUND], len(found)

    def _once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Returns the value of the key, which is made once; the most recently used values are cached."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                kept: T = self._kept[key]
                return kept
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return made


def _texts(entry: TableEntry, state: TableState) -> Match:
    try:
        spec = live_table(entry, state).spec
    except DeployerError:
        return Match(entry.full_name, "", ())
    columns = tuple(f"{each.name} {each.description}".strip() for each in spec.columns)
    return Match(entry.full_name, spec.description, columns)


def _version_of(table: ReadTable) -> Hashable:
    state = table.state
    return table.entry.full_name, state.table_id, state.version, state.dataset, state.lance_version, state.files.rows
