"""The changes of a table that Spark reads, and the tasks that read them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from math import ceil

import pyarrow as pa

from deployer.errors import InvalidInput, NotFound, Refused
from deployer.services.restore.points import version_point
from deployer.services.savepoints.read_lease import changes_are_held, hold_changes
from deployer.spark.options import ReadOptions
from deployer.spark.reading.partitions import LEAST_BYTES, MOST_BYTES, TASKS
from deployer.specs.types.arrow import columns_of
from deployer.specs.types.types import Column
from deployer.state import open_reader, open_store
from deployer.state.log.service_updates import PastVersion
from deployer.state.store import StateStore
from deployer.tables.changes.commit_rows import CommitReader
from deployer.tables.changes.commits import Commit
from deployer.tables.changes.feed import commits_of
from deployer.tables.changes.reading import Reading, reading_of
from deployer.tables.changes.sides import Piece, Selection, selection_of
from deployer.tables.changes.timeline import Position, Timeline, position_of, timeline
from deployer.tables.inspect.versions import At
from deployer.tables.open_table import OpenTable, ReadTable, find_entry, open_entry, read_entry

SNAPSHOT = "snapshot"  #: `since` of a stream that begins with all rows of the table
BEFORE_SNAPSHOT = Position(0, 0)


@dataclass(frozen=True, slots=True)
class FeedSource:
    """The changes of one table, in the form for the processes of a query. `columns` are those of the feed."""

    options: ReadOptions
    name: str
    table_id: str
    reading: Reading
    columns: tuple[Column, ...]

    @property
    def address(self) -> str:
        return f"table/{self.name}"


@dataclass(frozen=True, slots=True)
class FeedTask:
    """The input of one task: commits, each with the part to read (None: all)."""

    reading: Reading
    commits: tuple[tuple[Commit, Selection | None], ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows; raises as `CommitReader` does."""
        reader = CommitReader(self.reading)
        for commit, selection in self.commits:
            yield from reader.batches(commit, selection)


def feed_source(options: ReadOptions) -> FeedSource:
    """Opens the table whose changes the options request.

    Raises InvalidInput for options that do not fit the table, NotFound for a table that does not exist.
    """
    with _opened(options) as table:
        dataset = table.dataset()
        reading = reading_of(table, dataset, options.columns, options.where)
        own = {column.name: replace(column, nullable=True) for column in columns_of(dataset.schema)}
        meta = {column.name: column for column in columns_of(reading.schema)}
        columns = tuple(own.get(field.name) or meta[field.name] for field in reading.schema)
        return FeedSource(options, table.entry.full_name, table.entry.table_id, reading, columns)


@contextmanager
def _opened(options: ReadOptions, table_id: str = "") -> Iterator[ReadTable]:
    """Yields the table, by its id where that is known. It is opened for writing where a lease is requested."""
    with closing(open_reader(options.root) if options.lease is None else open_store(options.root)) as store:
        tables = store.instance().tables
        if not table_id:
            entry = find_entry(tables.values(), options.table)
        elif table_id in tables and tables[table_id].status == "active":
            entry = tables[table_id]
        else:
            raise NotFound(
                f"the table {options.table} was deleted since its changes were first read",
                remedy="read another one; a stream of a table of the same name takes a new checkpoint",
            )
        if isinstance(store, StateStore):
            yield open_entry(store, options.root, entry)
        else:
            yield read_entry(store, options.root, entry)


@dataclass(frozen=True, slots=True)
class OpenFeed:
    """A source that is open, at the table's newest version."""

    source: FeedSource
    table: ReadTable
    line: Timeline

    def position(self, at: At, option: str) -> Position:
        """Returns the position that an option names. Raises as `position_of` does."""
        return position_of(self.table, self.line, at, option)

    def hold(self, position: Position) -> None:
        """Protects this version and all later ones from CLEAN, for the time of the option `lease`."""
        hold_for, table = self.source.options.lease, self.table
        if hold_for is None or not isinstance(table, OpenTable) or not position.dataset:
            return
        dataset, version = position.dataset, max(position.version, 1)
        if changes_are_held(table.state, dataset, version, hold_for):
            return
        try:
            recorded = version_point(table, f"{dataset}:{version}").state_version
        except (Refused, NotFound):  # it was removed: the read itself reports that
            return
        hold_changes(table, PastVersion(dataset, version, recorded), hold_for)

    def tasks(self, since: Position, until: Position) -> list[FeedTask]:
        """Returns the tasks that read the changes after `since` and up to `until`. Raises NotFound where a needed
        version was removed."""
        commits = commits_of(self.table, self.line, self.source.options.columns)
        found = [commits.snapshot(until)] if since == BEFORE_SNAPSHOT else list(commits.between(since, until))
        return tasks_of(self.source.reading, found, self.source.options.partition_size)


@contextmanager
def opened_feed(source: FeedSource) -> Iterator[OpenFeed]:
    """Yields the current table of the source. Raises NotFound when it was deleted."""
    with _opened(source.options, source.table_id) as table:
        yield OpenFeed(source, table, timeline(table))


def tasks_of(reading: Reading, commits: Sequence[Commit], size: int | None = None) -> list[FeedTask]:
    """Returns the tasks that read these commits, of about `size` bytes each: several commits, or a part of one."""
    total = sum(part.bytes for commit in commits for part in commit.parts)
    wanted = size or min(max(ceil(total / TASKS), LEAST_BYTES), MOST_BYTES)
    tasks: list[FeedTask] = []
    small: list[tuple[Commit, Selection | None]] = []
    held = 0
    for commit in commits:
        bytes_ = sum(part.bytes for part in commit.parts)
        if bytes_ > wanted:
            parts = _parts(selection_of(commit, judged=reading.condition is not None), wanted)
            tasks += [FeedTask(reading, ((commit, part),)) for part in parts]
            continue
        if small and held + bytes_ > wanted:
            tasks.append(FeedTask(reading, tuple(small)))
            small, held = [], 0
        small.append((commit, None))
        held += bytes_
    return [*tasks, FeedTask(reading, tuple(small))] if small else tasks


def _parts(whole: Selection, wanted: int) -> Iterator[Selection]:
    """Yields the pieces of a commit in parts of about this many bytes."""
    held: list[tuple[int, Piece]] = []
    size = 0
    sides = (whole.took, whole.put, whole.written)
    for side, pieces in enumerate(sides):
        for piece in pieces:
            if held and size + piece.part.bytes > wanted:
                yield _selection(held)
                held, size = [], 0
            held.append((side, piece))
            size += piece.part.bytes
    if held:
        yield _selection(held)


def _selection(pieces: Sequence[tuple[int, Piece]]) -> Selection:
    return Selection(*(tuple(piece for side, piece in pieces if side == number) for number in range(3)))


def checked_range(options: ReadOptions, *, stream: bool) -> str:
    """Returns the option `since`. Raises InvalidInput for options that the changes of a table cannot have."""
    if options.since is None:
        raise InvalidInput(
            "a stream reads the changes of a table, and the option `since` does not say from where",
            remedy=f"give a version that `deployer history` lists, 0 for all of them, or `{SNAPSHOT}` to begin with "
            "all rows of the table",
        )
    at = "time" if isinstance(options.at, dt.datetime) else "version"
    others = {at: options.at, "keys": options.keys, "range": options.ranges}
    if given := next((name for name, value in others.items() if value), None):
        raise InvalidInput(f"the option `{given}` does not go with `since`", remedy="use `where`, or leave it out")
    if stream and options.until is not None:
        raise InvalidInput("a stream has no end, and the option `until` names one", remedy="leave `until` out")
    if not stream and options.since == SNAPSHOT:
        raise InvalidInput(f"`since` = {SNAPSHOT} is for streams", remedy="leave `since` out to read the table's rows")
    if not stream and options.max_versions is not None:
        raise InvalidInput("`max_versions` is for streams", remedy="leave it out, or name the last version by `until`")
    return options.since
