"""The versions of a table in their order, across all its datasets, and the positions that users name."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from deployer.datasets.dataset import open_dataset, versions_written
from deployer.datasets.storage.places import dataset_uri
from deployer.datasets.storage.refs import versions_of
from deployer.errors import InvalidInput, NotFound
from deployer.state.log.updates import CreateTable, TableRebuilt, TableRestored, TableRewritten
from deployer.tables.inspect.versions import At, dataset_at, time_of
from deployer.tables.open_table import ReadTable

# : The origin of a dataset: `created` with the table, `rewritten` with the rows of the previous one, `emptied` :
# without them, `restored` with earlier rows, `unknown` where the log does not reach back so far.
Origin = Literal["created", "rewritten", "emptied", "restored", "unknown"]


@dataclass(frozen=True, slots=True)
class Position:
    """A version of one of the table's datasets. Version 0 of the first dataset is before the first commit."""

    dataset: int
    version: int

    def __str__(self) -> str:
        return f"{self.dataset}:{self.version}"


@dataclass(frozen=True, slots=True)
class Segment:
    """Versions `first` to `last` of a dataset, during which the dataset belonged to the table. `location` is empty
    where its files were removed."""

    dataset: int
    location: str
    first: int
    last: int
    origin: Origin

    def holds(self, position: Position) -> bool:
        return self.dataset == position.dataset and self.first <= position.version <= self.last


@dataclass(frozen=True, slots=True)
class Timeline:
    """The segments of a table, oldest first; the last one ends with the table's newest version."""

    address: str
    segments: tuple[Segment, ...]

    @property
    def newest(self) -> Position:
        return Position(self.segments[-1].dataset, self.segments[-1].last)

    def place_of(self, position: Position) -> int:
        """Returns the number of the newest segment that contains the position. Raises NotFound."""
        for number in reversed(range(len(self.segments))):
            if self.segments[number].holds(position):
                return number
        raise NotFound(
            f"the table never had version {position}",
            where=self.address,
            remedy=f"name one that `deployer history` lists; the newest is {self.newest.version}",
        )

    def is_behind(self, one: Position, other: Position) -> bool:
        """Returns whether `one` comes after `other`."""
        return (self.place_of(one), one.version) > (self.place_of(other), other.version)


def timeline(table: ReadTable) -> Timeline:
    """Returns the versions of an open table. The log is read only where the table has had several datasets."""
    state = table.state
    if not state.datasets:
        return Timeline(table.address, (Segment(1, table.location, 0, state.lance_version, "created"),))
    found = _recorded(table)
    if found[-1].dataset != state.dataset:  # recorded since the table was opened
        found.append(Segment(state.dataset, "", state.lance_version, state.lance_version, "unknown"))
    found[-1] = replace(found[-1], last=max(found[-1].first, state.lance_version))
    places = {
        each.number: dataset_uri(table.root, each.location) for each in state.datasets if each.status != "removed"
    }
    places[state.dataset] = table.location
    return Timeline(table.address, tuple(replace(each, location=places.get(each.dataset, "")) for each in found))


def _recorded(table: ReadTable) -> list[Segment]:
    """Returns the segments in the log, without locations."""
    entries = table.store.log(table.entry.table_id)
    found: list[Segment] = []
    if entries and entries[0].version > 1:  # retention removed the entries before
        then = table.store.table(table.entry.table_id, at=entries[0].version - 1)
        found.append(Segment(then.dataset, "", then.lance_version, then.lance_version, "unknown"))
    for entry in entries:
        for update in entry.updates:
            match update:
                case CreateTable():
                    found.append(Segment(1, "", 0, update.lance_version, "created"))
                case TableRewritten():
                    origin: Origin = "emptied" if update.forgets_jobs else "rewritten"
                    found.append(Segment(update.number, "", update.lance_version, update.lance_version, origin))
                case TableRestored() if not found or update.number != found[-1].dataset:
                    found.append(Segment(update.number, "", update.lance_version, update.lance_version, "restored"))
                case TableRebuilt() if not found or update.number != found[-1].dataset:
                    found.append(Segment(update.number, "", update.lance_version, update.lance_version, "unknown"))
                case _:
                    recorded = getattr(update, "lance_version", 0) or 0
                    if found and recorded > found[-1].last:
                        found[-1] = replace(found[-1], last=recorded)
    return found or [Segment(1, "", 0, 0, "created")]


def position_of(table: ReadTable, line: Timeline, at: At, option: str) -> Position:
    """Returns the position that `at` names, the value of `option`: a version, such as `3` or `1:3`, 0 for the one
    before the first commit, or a time.

    Raises InvalidInput for other texts, NotFound for a version that does not exist or is not kept.
    """
    if isinstance(at, str) and at.strip().isdecimal():
        at = int(at)
    if isinstance(at, int):
        return _numbered(table, line, Position(line.newest.dataset if at else line.segments[0].dataset, at), at)
    if isinstance(at, str) and (parts := at.strip().split(":")) and len(parts) == 2 and all(map(str.isdecimal, parts)):
        return _numbered(table, line, Position(int(parts[0]), int(parts[1])), at.strip())
    try:
        moment = at if isinstance(at, dt.datetime) else time_of(at)
        if moment is None:
            raise ValueError
    except (InvalidInput, ValueError):
        raise InvalidInput(
            f"{option} is {at!r}, which is neither a version nor a time",
            where=line.address,
            remedy="give a version that `deployer history` lists, such as 3, or a time such as 2026-01-31T12:00:00Z",
        ) from None
    try:
        number, _, version = dataset_at(table, moment)
    except NotFound as error:
        raise NotFound(error.what, where=line.address, remedy=_oldest_words(line)) from None
    return Position(number, version)


def _numbered(table: ReadTable, line: Timeline, position: Position, written: object) -> Position:
    newest = line.newest
    if position.dataset == newest.dataset and position.version > newest.version:
        raise NotFound(
            f"there is no version {written}: the newest is {newest.version}",
            where=line.address,
            remedy="name an earlier one; `deployer history` lists them",
        )
    if position.version == 0 and line.segments[0].origin != "created":
        raise removed(line, position)
    line.place_of(position)
    return position


def removed(line: Timeline, position: Position) -> NotFound:
    """Returns the error for changes since a position after which versions were removed."""
    named = position.version if position.dataset == line.newest.dataset else position
    return NotFound(
        f"the changes since version {named} are not kept any more: versions after it were removed",
        where=line.address,
        remedy=f"{_oldest_words(line)}; `retain_changes` in the table's spec keeps them longer",
    )


def _oldest_words(line: Timeline) -> str:
    oldest = oldest_position(line)
    named = oldest.version if oldest.dataset == line.newest.dataset else oldest
    return f"the oldest version that changes can be read since is {named}"


def oldest_position(line: Timeline) -> Position:
    """Returns the oldest position from which all versions are kept up to the newest one."""
    found = line.newest
    for segment in reversed(line.segments):
        versions = kept_in(segment)
        low = segment.last
        if low not in versions and low != 0:
            return found
        while low - 1 >= max(segment.first, 1) and low - 1 in versions:
            low -= 1
        found = Position(segment.dataset, low)
        if low == 1 and segment.first == 0:
            return Position(segment.dataset, 0)
        if low > segment.first or segment.origin == "unknown":
            return found
    return found


def kept_in(segment: Segment) -> dict[int, dt.datetime]:
    """Returns the versions of the segment that are kept, and when they were committed (UTC)."""
    if not segment.location:
        return {}
    try:
        found = versions_of(open_dataset(segment.location))
    except NotFound:  # removed, and not recorded yet
        return {}
    return {version: at for version, at in found.items() if segment.first <= version <= segment.last}


def numbers_in(segment: Segment) -> frozenset[int]:
    """Returns the kept versions of the segment, from the names of their manifests, which are not read."""
    if not segment.location:
        return frozenset()
    versions = versions_written(segment.location)
    return frozenset(version for version in versions if segment.first <= version <= segment.last)


def between(line: Timeline, since: Position, until: Position) -> Sequence[tuple[Segment | None, Segment, int, int]]:
    """Returns the parts of segments above `since` and up to `until`. Each part has the previous segment if it begins
    with the swap from that, its segment, and the versions between which it lies (the first is excluded).

    Raises InvalidInput where `until` is before `since`.
    """
    if line.is_behind(since, until):
        raise InvalidInput(
            f"the changes end with version {until}, which is before {since}, where they begin",
            where=line.address,
            remedy="name a later version as the end, or leave it out",
        )
    first, last = line.place_of(since), line.place_of(until)
    parts: list[tuple[Segment | None, Segment, int, int]] = []
    for number in range(first, last + 1):
        segment = line.segments[number]
        begin = since.version if number == first else segment.first
        end = until.version if number == last else segment.last
        parts.append((line.segments[number - 1] if number > first else None, segment, begin, end))
    return parts
