"""The check whether a view is later than its `max_staleness` allows: from the logs of the view and of the tables that
it reads.

A view is late when a change of rows in a table that it reads is older than that limit and no refresh has included the
change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from deployer.errors import DeployerError, InvalidInput
from deployer.live.reader import view_of
from deployer.platform.text.formatting import describe_seconds
from deployer.specs.types.view import ViewSpec, staleness_text
from deployer.state.log.updates import FilesAdded, FilesRemoved, FilesReplaced, RowsChanged, TableRestored
from deployer.state.model.entities import REARRANGES, TableState
from deployer.state.reader import StateReader

REFRESH = "refresh"  #: the kind of a refresh's job, whose `sources` are the states that the view reflects
_AT_ONCE = 100  #: entries of a log that are read at a time


@dataclass(frozen=True, slots=True)
class Freshness:
    """The freshness of a view. `behind` are the tables with changes that the view does not reflect, each with the time
    (ms) of the first change. `max_staleness` is in milliseconds, None where none is declared. `unknown` is the reason
    why the freshness is unknown."""

    max_staleness: int | None
    refreshed_at: int | None
    behind: Mapping[str, int]
    unknown: str = ""

    def age(self, now: int) -> int:
        """Returns the age of the oldest change that the view does not reflect, in milliseconds."""
        return max(0, now - min(self.behind.values())) if self.behind else 0

    def late_by(self, now: int) -> int:
        """Returns by how much the view is later than is allowed, in milliseconds; 0 where it is not."""
        return 0 if self.max_staleness is None else max(0, self.age(now) - self.max_staleness)

    def why_late(self, now: int) -> str:
        """Returns why the view is late, and by how much; empty where it is not."""
        if not self.late_by(now) or self.max_staleness is None:
            return ""
        names = ", ".join(sorted(self.behind))
        last = "it was never refreshed" if self.refreshed_at is None else "its last refresh was before that"
        late, age = (describe_seconds(each / 1000) for each in (self.late_by(now), self.age(now)))
        allowed = staleness_text(self.max_staleness)
        return f"late by {late}: rows of {names} changed {age} ago, and {last} (max_staleness {allowed})"


def freshness_of(store: StateReader, state: TableState) -> Freshness | None:
    """Returns how current a view is; None for a table that is not a view."""
    try:
        view = view_of(state)
        if view is None:
            return None
        return _freshness(store, state, view)
    except (InvalidInput, ValueError) as error:
        return Freshness(None, None, {}, f"what the view reflects cannot be read: {error}")


def _freshness(store: StateReader, state: TableState, view: ViewSpec) -> Freshness:
    refreshed_at, reflected = _reflected(state)
    behind: dict[str, int] = {}
    for name in view.tables:
        entry = store.instance().by_name(name)
        if entry is None or entry.status != "active":
            return Freshness(view.max_staleness, refreshed_at, {}, f"the view reads {name}, which does not exist")
        try:
            since = _first_change(store, entry.table_id, reflected.get(entry.table_id, 0))
        except DeployerError as error:
            return Freshness(view.max_staleness, refreshed_at, {}, f"{name}: {error.what}")
        if since is not None:
            behind[name] = since
    return Freshness(view.max_staleness, refreshed_at, behind)


def _reflected(state: TableState) -> tuple[int | None, dict[str, int]]:
    """Returns when the view was refreshed last (ms), and the versions of the tables' states that it reflects, by id."""
    done = [job for job in state.jobs.values() if job.kind == REFRESH and job.sources]
    newest = max(done, key=lambda job: (job.at, job.lance_version), default=None)
    if newest is None:
        return None, {}
    return newest.at, {str(each[0]): int(each[1]) for each in json.loads(newest.sources)["sources"]}


def _first_change(store: StateReader, table_id: str, after: int) -> int | None:
    """Returns the time (ms) of the first change of rows after a version of the table's state; None where no rows
    changed. The beginning of a log counts as a change if the log does not go back to that version."""
    newest = store.table(table_id)
    is_first = True
    while after < newest.version:
        entries = store.log(table_id, after, _AT_ONCE)
        if not entries:
            return None
        if is_first and entries[0].version > after + 1:
            return entries[0].at
        is_first = False
        for entry in entries:
            if any(_changes_rows(update) for update in entry.updates):
                return entry.at
        after = entries[-1].version
    return None


def _changes_rows(update: object) -> bool:
    match update:
        case FilesAdded(kind=kind) | FilesReplaced(kind=kind):
            return kind not in REARRANGES
        case RowsChanged() | FilesRemoved() | TableRestored():
            return True
        case _:
            return False
