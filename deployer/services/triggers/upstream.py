"""The changes that triggers of REFRESH count: writes to the sources of a view that its rows do not reflect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from deployer.errors import DeployerError
from deployer.state.model.entities import TableState
from deployer.state.reader import StateReader
from deployer.state.snapshots.history import Time
from deployer.views.definition import ReflectedInputs, view_definition
from deployer.views.refresh.record import reflected


@dataclass(frozen=True, slots=True)
class Written:
    """Commits, rows and approximate bytes that a view does not reflect. `first` says that it was never refreshed."""

    commits: int = 0
    rows: int = 0
    bytes: int = 0
    first: bool = False


#: returns what was written upstream of a table in this state, now or at an earlier time (ms); None without sources
Upstream = Callable[[TableState, int | None], Written | None]


def no_upstream(_state: TableState, _at: int | None) -> None:
    """Returns None: the table's rows do not come from other tables, or the caller does not read those tables."""
    return


def upstream_in(store: StateReader) -> Upstream:
    """Returns a function that reads the sources of views in the state store."""

    def upstream(state: TableState, at: int | None) -> Written | None:
        return written_upstream(store, state, at)

    return upstream


def written_upstream(store: StateReader, state: TableState, at: int | None = None) -> Written | None:
    """Returns what was written to the sources of a view and is not reflected in its rows; None for other tables.

    `at` (ms) is an earlier time, to which `state` belongs. For a view that was never refreshed, the result has `first`.
    Sources that cannot be read do not count.
    """
    if view_definition(state.properties) is None:
        return None
    record = reflected(state)
    if record is None:
        return Written(first=True)
    return written_since(record, _states(store, [each.table_id for each in record.sources], at))


def source_ids(state: TableState) -> tuple[str, ...]:
    """Returns the ids of the tables that a view was refreshed from; none for other tables."""
    record = reflected(state)
    return () if record is None else tuple(each.table_id for each in record.sources)


def written_since(record: ReflectedInputs, states: Mapping[str, TableState]) -> Written:
    """Returns what was written to the sources, by their states, and is not in the record.

    A commit that only rearranges rows counts as a commit, but its rows do not count.
    """
    commits = rows = size = 0
    for each in record.sources:
        state = states.get(each.table_id)
        if state is None or (state.dataset, state.lance_version) == (each.dataset, each.lance_version):
            continue
        if state.dataset != each.dataset:  # rewritten or restored since
            commits, rows, size = commits + 1, rows + state.files.rows, size + state.files.bytes
            continue
        own = sum(_rows(state, each.lance_version))
        commits += max(0, state.lance_version - each.lance_version)
        rows += own
        size += own * state.files.bytes // max(1, state.files.rows)
    return Written(commits, rows, size)


def _rows(state: TableState, since: int) -> Iterable[int]:
    for job in state.jobs.values():
        if job.lance_version > since:
            counts = job.counts
            yield job.added if counts is None else counts.changed


def _states(store: StateReader, table_ids: Iterable[str], at: int | None) -> dict[str, TableState]:
    found = {}
    for table_id in table_ids:
        try:
            found[table_id] = store.table(table_id, at=None if at is None else Time(at))
        except DeployerError:
            continue
    return found
