"""AUTOSAVEPOINT: makes a savepoint that is named by the time, and removes old savepoints."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployer.errors import NotFound
from deployer.platform.text.units import parse_duration
from deployer.services.definition import ServiceDefinition, Work
from deployer.services.savepoints.savepoints import expire_savepoints, make_savepoint, name_by_time, remove_savepoint
from deployer.specs.schema.services import all_options, declared_options
from deployer.state.model.entities import TableState
from deployer.state.model.services import Figures, FinalStatus, Savepoint
from deployer.tables.inspect.savepoint_tags import settle_tags
from deployer.tables.open_table import OpenTable, ReadTable, open_entry

PREFIX = "auto-"  #: prefix of the names; the service does not remove savepoints with other names for their number


@dataclass(frozen=True, slots=True)
class AutosavepointOptions:
    """The time for which a savepoint is kept, and the number of savepoints that are kept."""

    expires_after: dt.timedelta = dt.timedelta(days=30)
    keep: int = 30

    @staticmethod
    def of(declared: Mapping[str, Any]) -> AutosavepointOptions:
        """Reads options as specs write them; omitted ones have their defaults."""
        options = all_options("AUTOSAVEPOINT", declared_options("AUTOSAVEPOINT", declared))
        return AutosavepointOptions(parse_duration(options["expires_after"]), options["keep"])


@dataclass(frozen=True, slots=True)
class AutosavepointResult:
    """The result of a run: the new savepoint, and the names of the removed ones.

    SKIPPED means that the table has not changed since the newest savepoint; old ones may have been removed.
    """

    table: str
    run_id: str
    status: FinalStatus
    why: str
    savepoint: Savepoint | None
    removed: tuple[str, ...]
    savepoints_before: int
    savepoints_after: int
    lance_version: int
    seconds: float

    @property
    def figures(self) -> Figures:
        """The figures of the run record."""
        return Figures(
            lance_version_before=self.lance_version,
            lance_version_after=self.lance_version,
            before={"savepoints": self.savepoints_before},
            after={"savepoints": self.savepoints_after},
        )


def autosavepoint(
    table: OpenTable, options: AutosavepointOptions, run_id: str = "", now: float | None = None
) -> AutosavepointResult:
    """Removes expired savepoints, makes a new one if the table has changed, and removes the oldest beyond `keep`.

    `keep` concerns only savepoints that the service made. `now` is in seconds since 1970.
    """
    started = time.monotonic()
    at = time.time() if now is None else now
    before = len(table.state.savepoints)
    removed = [each.name for each in expire_savepoints(table.store, table.entry.table_id, round(at * 1000))]
    table = open_entry(table.store, table.root, table.entry)
    same = unchanged_since(table)
    made = None
    if not same:
        name = name_by_time(PREFIX, round(at * 1000), table.state.savepoints)
        until = round((at + options.expires_after.total_seconds()) * 1000)
        [made] = make_savepoint(table.store, table.root, [table.entry], name, expires_at=until).values()
    state = table.store.table(table.entry.table_id)
    for old in _auto(state)[: -options.keep]:
        remove_savepoint(table.store, [table.entry.table_id], old.name)
        removed.append(old.name)
    settle_tags(table)
    table = open_entry(table.store, table.root, table.entry)
    return AutosavepointResult(
        table=table.entry.full_name,
        run_id=run_id,
        status="SKIPPED" if same else "SUCCEEDED",
        why=f"nothing changed since savepoint {same}" if same else "",
        savepoint=made,
        removed=tuple(removed),
        savepoints_before=before,
        savepoints_after=len(table.state.savepoints),
        lance_version=table.state.lance_version,
        seconds=time.monotonic() - started,
    )


def _auto(state: TableState) -> list[Savepoint]:
    """Returns the savepoints that the service made, the oldest first."""
    found = (each for each in state.savepoints.values() if each.name.startswith(PREFIX))
    return sorted(found, key=lambda each: (each.at, each.state_version))


def unchanged_since(table: ReadTable) -> str:
    """Returns the name of the service's newest savepoint if the table has not changed since; else an empty text."""
    for newest in _auto(table.state)[-1:]:
        try:
            then = table.store.table(table.entry.table_id, at=newest.state_version)
        except NotFound:
            continue
        if _content(then) == _content(table.state):
            return newest.name
    return ""


def _content(state: TableState) -> tuple[object, ...]:
    return (state.dataset, state.lance_version, state.properties, dict(state.partitions), dict(state.services))


def _work(work: Work[AutosavepointOptions]) -> AutosavepointResult:
    return autosavepoint(work.table, work.options, work.run_id, work.now)


def _forecast(table: ReadTable) -> str:
    same = unchanged_since(table)
    return f"nothing: nothing changed since savepoint {same}" if same else "makes a savepoint of the table as it is now"


AUTOSAVEPOINT = ServiceDefinition(
    "AUTOSAVEPOINT", AutosavepointOptions.of, _work, lambda: AutosavepointResult, _forecast
)
autosavepoint_table = AUTOSAVEPOINT.run
