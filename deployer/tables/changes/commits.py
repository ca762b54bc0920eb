"""The changes of each commit to the fragments of a table, from its manifests alone: no data file is opened."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from deployer.datasets.commit_metadata import commit_metadata_of
from deployer.datasets.dataset import at_version, open_dataset
from deployer.datasets.lance_transactions import metadata_at, transaction_of
from deployer.state.model.entities import Job
from deployer.tables.changes.timeline import Position, Segment, Timeline, between, kept_in, numbers_in, removed

if TYPE_CHECKING:
    from deployer.datasets.lance_types import LanceDataset

# : Operations of Lance that do not change rows: rewrites of files, indexes, settings, and columns that are added :
# without values or dropped.
_WITHOUT_ROWS = frozenset({"Rewrite", "CreateIndex", "Project", "UpdateConfig", "ReserveFragments"})
_ROW_CHANGES = frozenset({"Append", "Delete", "Update"})


@dataclass(frozen=True, slots=True)
class Place:
    """A version of the dataset at `location`."""

    location: str
    version: int


@dataclass(frozen=True, slots=True)
class Part:
    """A fragment whose rows a commit changed: its rows and the bytes of its files. `columns` are the columns with
    values that were written in place, by their Lance field ids; `masked`: other rows of it were deleted too. `changed`
    is the number of changed rows according to the manifests: all rows, unless only rows were deleted."""

    fragment_id: int
    rows: int
    bytes: int
    columns: tuple[int, ...] = ()
    masked: bool = False
    deleted: int | None = None  #: number of deleted rows if nothing else changed; None where that is unknown

    @property
    def changed(self) -> int:
        return self.rows if self.deleted is None else self.deleted


@dataclass(frozen=True, slots=True)
class Commit:
    """The change of rows by the commit that made version `position`, at `at` (UTC; None where the commits were read
    without times).

    `added` are whole fragments of the version, `gone` whole fragments of the previous version. `masked` are in both,
    with the same files and other deleted rows. `written` fragments got values in place, in files of columns.
    `restores`: rows that are equal before and after count as unchanged, wherever they are.
    """

    position: Position
    at: dt.datetime | None
    before: Place | None
    after: Place
    added: tuple[Part, ...] = ()
    gone: tuple[Part, ...] = ()
    masked: tuple[Part, ...] = ()
    written: tuple[Part, ...] = ()
    restores: bool = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """All fragments with changed rows; none for a commit that changed no rows."""
        return (*self.added, *self.gone, *self.masked, *self.written)


@dataclass
class Commits:
    """The commits of a table between two positions, oldest first.

    `columns` are the names of the columns to read, None: all; a commit that writes only values of other columns changes
    nothing. `jobs` are those of the log. `without` are fragments of the newest version whose rows do not count. `timed`
    says whether the commits have their times, for which the manifests of all versions are read.
    """

    line: Timeline
    jobs: Mapping[str, Job] = field(default_factory=dict)
    without: frozenset[int] = frozenset()
    columns: frozenset[str] | None = None
    timed: bool = True
    _datasets: dict[str, LanceDataset] = field(default_factory=dict)

    def between(self, since: Position, until: Position) -> Iterator[Commit]:
        """Yields the commits that changed rows. Raises NotFound where a needed version was removed."""
        for former, segment, begin, end in between(self.line, since, until):
            if former is not None and (swap := self._swap(former, segment, since)) is not None:
                yield swap
            yield from self._of(segment, begin, end, since)

    def snapshot(self, at: Position) -> Commit:
        """Returns a commit that adds all rows of the version. Raises NotFound where it was removed."""
        segment = self.line.segments[self.line.place_of(at)]
        place = self._place(segment, at.version, at)
        without = self.without if at == self.line.newest else frozenset()
        added = tuple(part for part in self._parts(place, None) if part.fragment_id not in without)
        return Commit(at, self._kept(segment)[at.version], None, place, added)

    def _of(self, segment: Segment, begin: int, end: int, since: Position) -> Iterator[Commit]:
        if begin >= end:
            return
        kept = self._kept(segment)
        needed = range(max(begin, 1), end + 1)
        if any(version not in kept for version in needed):
            raise removed(self.line, since)
        uncounted = set[int]()
        for version in range(max(begin, 0) + 1, end + 1):
            found = self._commit(segment, version, kept[version], uncounted)
            if found is not None and found.parts:
                yield found

    def _swap(self, former: Segment, segment: Segment, since: Position) -> Commit | None:
        """Returns the changes that a new dataset made when it replaced the former one."""
        if segment.origin == "rewritten":
            return None
        if segment.origin == "unknown":
            raise removed(self.line, since)
        place = self._place(segment, segment.first, since)
        position = Position(segment.dataset, segment.first)
        at = self._kept(segment)[segment.first]
        before = self._place(former, former.last, since)
        restores = segment.origin == "restored"
        added = self._parts(place, None)
        return Commit(position, at, before, place, added, self._parts(before, None), restores=restores)

    def _commit(self, segment: Segment, version: int, at: dt.datetime | None, uncounted: set[int]) -> Commit | None:
        position, after = Position(segment.dataset, version), Place(segment.location, version)
        if version == 1:
            return Commit(position, at, None, after, self._parts(after, None))
        before = Place(segment.location, version - 1)
        transaction = transaction_of(self._dataset(segment.location), version)
        operation = getattr(transaction, "operation", None)
        kind = type(operation).__name__
        if kind in _WITHOUT_ROWS:
            return None
        then, now = _Fragments(self._open(before)), _Fragments(self._open(after))
        if kind == "Overwrite":
            return Commit(position, at, before, after, _parts(now.values()), _parts(then.values()))
        added = {number for number in now if number not in then}
        gone = {number for number in then if number not in now} - uncounted
        if self._is_second(segment.location, transaction, version):
            uncounted |= added
        added -= uncounted | (self.without if position == self.line.newest else frozenset())
        masked, written = list[Part](), list[Part]()
        for number in self._candidates(kind, operation, then, now):
            one, other = then[number], now[number]
            is_masked = _deletions(one) != _deletions(other)
            if _paths(one) == _paths(other):
                if is_masked:
                    masked.append(_masked(kind, one, other))
            elif kind in ("Restore", "NoneType") and not _paths(one) & _paths(other):
                gone.add(number)  # the fragment with this number has other rows
                added.add(number)
            elif columns := self._columns_written(before, after, one, other):
                written.append(replace(_part(other), columns=columns, masked=is_masked))
            elif is_masked:
                masked.append(_masked(kind, one, other))
        return Commit(
            position,
            at,
            before,
            after,
            _parts(now[number] for number in sorted(added)),
            _parts(then[number] for number in sorted(gone)),
            tuple(masked),
            tuple(written),
            restores=kind == "Restore",
        )

    def _candidates(self, kind: str, operation: Any, then: Mapping[int, Any], now: Mapping[int, Any]) -> Sequence[int]:
        """Returns the numbers of fragments in both versions that may differ."""
        if kind in _ROW_CHANGES:
            listed = (each.id for each in getattr(operation, "updated_fragments", None) or ())
            return sorted(number for number in listed if number in then and number in now)
        return sorted(then.keys() & now.keys())

    def _columns_written(self, before: Place, after: Place, one: Any, other: Any) -> tuple[int, ...]:
        """Returns the columns to read whose values were written into the fragment. A column of another type has another
        id and the same name, and keeps its values."""
        had = {each.name(): each.id() for each in self._open(before).lance_schema.fields()}
        read = [
            each
            for each in self._open(after).lance_schema.fields()
            if (self.columns is None or each.name() in self.columns) and had.get(each.name(), each.id()) == each.id()
        ]
        then, now = _file_of(one), _file_of(other)
        return tuple(each.id() for each in read if any(then.get(i) != now.get(i) for i in _ids(each)))

    def _is_second(self, location: str, transaction: Any, version: int) -> bool:
        """Returns whether all jobs of the commit were done by an earlier one: its rows do not count (see
        `doubled_fragments`)."""
        infos = commit_metadata_of(getattr(transaction, "transaction_properties", None))
        return bool(infos) and all(info.files and self._is_done(location, info.job_id, version) for info in infos)

    def _is_done(self, location: str, job_id: str, version: int) -> bool:
        job = self.jobs.get(job_id)
        if job is None or not 0 < job.lance_version < version:
            return False
        return any(info.job_id == job_id for info in metadata_at(self._dataset(location), job.lance_version))

    def _kept(self, segment: Segment) -> Mapping[int, dt.datetime | None]:
        """Returns the versions of the segment that are kept, and their times where these are wanted."""
        return kept_in(segment) if self.timed else dict.fromkeys(numbers_in(segment))

    def _place(self, segment: Segment, version: int, since: Position) -> Place:
        if version not in numbers_in(segment):
            raise removed(self.line, since)
        return Place(segment.location, version)

    def _parts(self, place: Place, numbers: frozenset[int] | None) -> tuple[Part, ...]:
        found = _Fragments(self._open(place))
        return _parts(each for number, each in sorted(found.items()) if numbers is None or number in numbers)

    def _dataset(self, location: str) -> LanceDataset:
        if location not in self._datasets:
            self._datasets[location] = open_dataset(location)
        return self._datasets[location]

    def _open(self, place: Place) -> LanceDataset:
        return at_version(self._dataset(place.location), place.version)


class _Fragments(Mapping[int, Any]):
    """Lance's metadata of the fragments of a version, by number. It is read only for the compared fragments, because
    most commits change few of many."""

    def __init__(self, dataset: LanceDataset) -> None:
        self._fragments = {int(each.fragment_id): each for each in dataset.get_fragments()}

    def __getitem__(self, number: int) -> Any:
        return self._fragments[number].metadata

    def __iter__(self) -> Iterator[int]:
        return iter(self._fragments)

    def __len__(self) -> int:
        return len(self._fragments)

    def __contains__(self, number: object) -> bool:
        return number in self._fragments


def _parts(fragments: Iterable[Any]) -> tuple[Part, ...]:
    return tuple(map(_part, fragments))


def _part(fragment: Any) -> Part:
    return Part(fragment.id, int(fragment.physical_rows), sum(file.file_size_bytes or 0 for file in fragment.files))


def _masked(kind: str, one: Any, other: Any) -> Part:
    """Returns the fragment `other`, whose deleted rows differ from those of `one`. A commit that changes rows only
    deletes more rows."""
    part = _part(other)
    return replace(part, deleted=int(other.num_deletions - one.num_deletions)) if kind in _ROW_CHANGES else part


def _deletions(fragment: Any) -> str | None:
    return None if fragment.deletion_file is None else str(fragment.deletion_file.path(fragment.id))


def _paths(fragment: Any) -> frozenset[str]:
    return frozenset(file.path for file in fragment.files)


def _file_of(fragment: Any) -> dict[int, str]:
    """Returns the file that holds the values of each field."""
    return {number: file.path for file in fragment.files for number in file.fields}


def _ids(column: Any) -> Iterator[int]:
    """Yields the ids of a column and of the fields inside of it."""
    yield column.id()
    for child in column.children():
        yield from _ids(child)


def only_rearranges(dataset: LanceDataset, version: int) -> bool:
    """Returns whether the commit of the version changed no rows; False where that is unknown."""
    operation = getattr(transaction_of(dataset, version), "operation", None)
    return type(operation).__name__ in _WITHOUT_ROWS
