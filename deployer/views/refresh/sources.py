"""The tables that a view reads, all at one point in time and protected from CLEAN while a refresh reads them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from deployer.datasets.dataset import open_dataset
from deployer.errors import CommitTimedOut, Conflict, InvalidInput, NotFound, Refused
from deployer.platform.system.clock import Clock
from deployer.specs.yaml.suggestions import nearest
from deployer.state.commits import Part
from deployer.state.log.service_updates import PastVersion, SavepointRemoved, SavepointTaken
from deployer.state.log.updates import TableUpdate
from deployer.state.model.entities import TableEntry, TableState
from deployer.state.model.services import REFRESH_LEASE
from deployer.state.store import StateStore
from deployer.state.transactions.services import to_remove_savepoint, to_take_savepoint
from deployer.tables.changes.timeline import Position, Timeline, position_of, timeline
from deployer.tables.open_table import ReadTable, open_entry
from deployer.views.definition import SourceVersion

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset
    from deployer.state.reader import StateReader

HOLD_MS = 3_600_000  #: milliseconds for which the lease of a refresh protects versions if its process dies
ATTEMPTS = 5  #: how often the sources are read because rewrites keep replacing the dataset of one


@dataclass(frozen=True)
class Source:
    """A source of a view at the version that a refresh reads. `name` is its name in the query. `table` has its state at
    the point in time at which all sources were read. `position` is the version to read: the newest one of that state or
    an earlier one."""

    name: str
    table: ReadTable
    position: Position
    line: Timeline = field(compare=False)

    @property
    def is_newest(self) -> bool:
        return self.position == Position(self.table.state.dataset, self.table.state.lance_version)

    @cached_property
    def version(self) -> SourceVersion:
        """The version that a refresh from this source records."""
        own = self.table.state.version if self.is_newest else _recorded_in(self.table, self.position)
        return SourceVersion(self.table.entry.table_id, own, self.position.dataset, self.position.version)

    @cached_property
    def dataset(self) -> LanceDataset:
        """The Lance dataset at the version. Raises NotFound where it was removed."""
        location = self.line.segments[self.line.place_of(self.position)].location
        if not location:
            raise NotFound(f"version {self.position} was removed", where=self.table.address, remedy="name a later one")
        return open_dataset(location, self.position.version)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the version, as scans return them."""
        return self.table.schema if self.is_newest else self.dataset.schema

    @property
    def row_keys(self) -> tuple[str, ...]:
        return self.table.row_keys

    @cached_property
    def stable_row_ids(self) -> bool:
        return bool(self.dataset.has_stable_row_ids)


def find_source(entries: Mapping[str, TableEntry], name: str, known_id: str | None, view: str) -> TableEntry:
    """Returns the table that a view reads under that name. `known_id` is the id of the table that had the name at the
    last refresh.

    Raises Refused where the table `known_id` was renamed, and NotFound where no table has the name.
    """
    for entry in entries.values():
        if entry.full_name == name and entry.status == "active":
            return entry
    former = entries.get(known_id or "")
    if former is not None and former.status == "active":
        raise Refused(
            f"the table {name}, which the view reads, was renamed to {former.full_name}",
            where=view,
            remedy=f"let the view's query read {former.full_name}, or rename the table back",
        )
    near = nearest(name, [each.full_name for each in entries.values() if each.status == "active"])
    raise NotFound(
        f"there is no table {name}, which the view reads",
        where=view,
        remedy=f"did you mean {near!r}?" if near else "create it, or delete the view; its rows stay as they are",
    )


def read_sources(store: StateReader, root: str, entries: Mapping[str, TableEntry]) -> dict[str, Source]:
    """Returns the sources, by their names in the query, at their newest versions at one point in time.

    Writes nothing and takes no lease, so it serves plans. Changes that Lance has and the log lacks are not included.
    """
    for _ in range(ATTEMPTS):
        states = store.tables([entry.table_id for entry in entries.values()])
        found = _at(store, root, entries, states)
        if found is not None:
            return found
    raise _restless(entries)


def require_online(source: Source) -> None:
    """Raises Refused for a source that is offline."""
    if not source.table.state.properties.online:
        raise Refused(
            f"the table {source.name}, which the view reads, is offline",
            where=source.table.address,
            remedy="set it online first; the view stays as it is until then",
        )


def at_version(source: Source, version: int | str) -> Source:
    """Returns the source at an earlier version. Raises InvalidInput and NotFound for one that does not exist."""
    if version in (0, "0"):  # change feeds accept 0 as the version before the first commit; a refresh does not
        raise InvalidInput(
            "src_version is 0, and versions of a table begin with 1",
            where=source.table.address,
            remedy="give one that `deployer history` lists, or leave it out for the newest",
        )
    position = position_of(source.table, source.line, version, "src_version")
    return Source(source.name, source.table, position, source.line)


@contextmanager
def held_sources(
    store: StateStore, root: str, entries: Mapping[str, TableEntry], since: Mapping[str, SourceVersion]
) -> Iterator[dict[str, Source]]:
    """Yields the sources at their newest versions at one point in time. First records the changes that Lance has and
    the log lacks.

    Within the block, CLEAN does not remove these versions. For a source in `since`, CLEAN also keeps that version and
    all later ones. One transaction reads the states and takes the leases: if it includes a commit to one source, it
    also includes all earlier commits to the others.
    """
    lease = f"{REFRESH_LEASE}{uuid.uuid4().hex}"
    for entry in entries.values():
        open_entry(store, root, entry)  # records the changes that only Lance has
    states = _leased(store, entries, since, lease)
    try:
        for _ in range(ATTEMPTS):
            found = _at(store, root, entries, states)
            if found is not None:
                break
            _release(store, entries, lease)
            states = _leased(store, entries, {}, lease)
        else:
            raise _restless(entries)
        yield found
    finally:
        _release(store, entries, lease)


def _leased(
    store: StateStore, entries: Mapping[str, TableEntry], since: Mapping[str, SourceVersion], lease: str
) -> dict[str, TableState]:
    if not entries:
        return {}
    now = Clock().now()
    parts = []
    for name, entry in entries.items():
        of = since.get(name)
        past = None if of is None else PastVersion(of.dataset, of.lance_version, of.state_version)
        taken: list[TableUpdate] = [SavepointTaken(lease, now + HOLD_MS, "a refresh reads it", past)]
        parts.append(Part(entry.table_id, taken, to_take_savepoint(lease)))
    states = store.commit_all(
        parts, durable=False
    )  # a crash of the machine ends the refresh too, so a loss is harmless
    return {entry.table_id: cast(TableState, states[entry.table_id]) for entry in entries.values()}


def _release(store: StateStore, entries: Mapping[str, TableEntry], lease: str) -> None:
    for entry in entries.values():
        with suppress(Conflict, NotFound):  # the lease has expired and was removed, or the table was removed
            store.commit(entry.table_id, [SavepointRemoved(lease)], to_remove_savepoint(lease), durable=False)


def _at(
    store: StateReader, root: str, entries: Mapping[str, TableEntry], states: Mapping[str, TableState]
) -> dict[str, Source] | None:
    """Returns the sources in these states; None where a rewrite replaced the dataset of a source meanwhile."""
    now = store.instance().tables
    found = {}
    for name, known in entries.items():
        entry, state = now.get(known.table_id, known), states[known.table_id]
        if entry.dataset != state.dataset:
            return None
        table = ReadTable(store, root, entry, state)
        found[name] = Source(name, table, Position(state.dataset, state.lance_version), timeline(table))
    return found


def _recorded_in(table: ReadTable, position: Position) -> int:
    """Returns the version of the table's log that recorded a version of its dataset; the log's newest version where no
    entry is found."""
    recorded, dataset = 0, 1
    for entry in table.store.log(table.entry.table_id):
        for update in entry.updates:
            dataset = getattr(update, "number", dataset)
            version = getattr(update, "lance_version", 0) or 0
            if dataset == position.dataset and 0 < version <= position.version:
                recorded = entry.version
    return recorded or table.state.version


def _restless(entries: Mapping[str, TableEntry]) -> CommitTimedOut:
    names: Sequence[str] = [entry.full_name for entry in entries.values()]
    return CommitTimedOut(
        f"others rewrite {', '.join(names)} faster than they can be read", where="view", attempts=ATTEMPTS
    )
