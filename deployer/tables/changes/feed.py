"""The change feed of one table between two of its versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from deployer.tables.changes.commit_rows import CommitReader
from deployer.tables.changes.commits import Commit, Commits
from deployer.tables.changes.reading import Reading, reading_of
from deployer.tables.changes.timeline import Position, Timeline, position_of, timeline
from deployer.tables.inspect.versions import At
from deployer.tables.open_table import ReadTable


@dataclass(frozen=True, slots=True)
class ChangeFeed:
    """The rows that the commits after `since` and up to `until` changed, in the order of the commits."""

    reading: Reading
    since: Position
    until: Position
    commits: Sequence[Commit]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table, then `_change`, `_commit_version` and `_commit_time`."""
        return self.reading.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yields the rows as they are read. Raises NotFound for a version that was removed meanwhile."""
        reader = CommitReader(self.reading)
        for commit in self.commits:
            yield from reader.batches(commit)

    def to_table(self) -> pa.Table:
        """Returns all rows at once."""
        return pa.Table.from_batches(self.batches(), self.schema)


def open_feed(
    table: ReadTable,
    since: At,
    until: At | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    *,
    since_name: str = "since",
    until_name: str = "until",
) -> ChangeFeed:
    """Returns the changes after `since` and up to `until`, the newest version by default. Both are versions that
    `history` lists, or times; 0 is before the first commit.

    `where` is evaluated on the rows before and after a change: a row that begins to match counts as inserted, a row
    that no longer matches as deleted.

    The names are those of the options, for errors. Raises InvalidInput for arguments that do not fit the table,
    NotFound for versions that do not exist or were removed; that error names the oldest version from which changes can
    be read.
    """
    line = timeline(table)
    begin = position_of(table, line, since, since_name)
    end = line.newest if until is None else position_of(table, line, until, until_name)
    reading = reading_of(table, table.dataset(), columns, where)
    return ChangeFeed(reading, begin, end, tuple(commits_of(table, line, columns).between(begin, end)))


def commits_of(
    table: ReadTable, line: Timeline, columns: Sequence[str] | None = None, *, timed: bool = True
) -> Commits:
    """Returns the commits of an open table, with their times if `timed`; commits that write only values outside of
    `columns` change nothing."""
    return Commits(line, table.state.jobs, table.without, None if columns is None else frozenset(columns), timed)
