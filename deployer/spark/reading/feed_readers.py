"""PySpark's readers of a table's changes: for `spark.read` with `since`, and for `spark.readStream`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from deployer.errors import DeployerError, NotFound
from deployer.spark.exchange import exchanged
from deployer.spark.reading.feed_source import (
    BEFORE_SNAPSHOT,
    SNAPSHOT,
    FeedSource,
    FeedTask,
    OpenFeed,
    checked_range,
    opened_feed,
)
from deployer.spark.reporting import reports_errors
from deployer.spark.type_mapping import exchange_type
from deployer.specs.types.types import Column
from deployer.tables.changes.timeline import Position

try:  # since 4.2
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles, SupportsTriggerAvailableNow
except ImportError:
    HAS_LIMITS = False

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark's own is new in 4.2."""
else:
    HAS_LIMITS = True

Offset = dict[str, Any]


class ChangePartition(InputPartition):
    """The input of one task."""

    def __init__(self, task: FeedTask) -> None:
        super().__init__(None)
        self.task = task

    def __repr__(self) -> str:
        return f"ChangePartition({len(self.task.commits)} commits)"


def _rows(source: FeedSource, columns: Sequence[Column], partition: InputPartition) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, ChangePartition)  # noqa: S101 (of `partitions`)
    target = pa.schema([pa.field(c.name, exchange_type(c.type), c.nullable) for c in columns])
    try:
        for batch in partition.task.batches():
            yield exchanged(batch, target, source.address, truncates=source.options.truncates)
    except DeployerError as error:
        raise error.with_traceback(None) from None


class ChangesReader(DataSourceReader):
    """Reads the changes between two versions. Spark makes one for each query on the driver."""

    def __init__(self, source: FeedSource, columns: Sequence[Column]) -> None:
        self._source, self._columns = source, tuple(columns)

    @reports_errors
    def partitions(self) -> Sequence[InputPartition]:
        """Returns the tasks, by commits and fragments."""
        options = self._source.options
        with opened_feed(self._source) as feed:
            since = feed.position(checked_range(options, stream=False), "the option `since`")
            until = feed.line.newest if options.until is None else feed.position(options.until, "the option `until`")
            feed.hold(since)
            return [ChangePartition(task) for task in feed.tasks(since, until)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the rows of one partition, in Arrow's batches."""
        return _rows(self._source, self._columns, partition)


class ChangesStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the changes of a table as a stream. An offset is a version, and the id of the table.

    Spark stores the end of each batch in the checkpoint before the batch is planned, so a repeated batch has the same
    commits. Releases before 4.2 do not pass the beginning of the next batch; this object keeps the end of the last one.
    """

    def __init__(self, source: FeedSource, columns: Sequence[Column]) -> None:
        self._source, self._columns = source, tuple(columns)
        self._since = checked_range(source.options, stream=True)
        self._last: Offset | None = None
        self._target: Position | None = None

    @reports_errors
    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """Returns the beginning of a new query: before all rows of the newest version, or after the version `since`."""
        with opened_feed(self._source) as feed:
            return self._initial(feed)

    @reports_errors
    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: N802 (Spark's name)
        """Returns the newest version, or an earlier one where a batch is limited. Versions of two datasets are never in
        one batch, so that `_commit_version` orders a batch."""
        with opened_feed(self._source) as feed:
            begin = start or self._last or self._initial(feed)
            since = self._position(begin)
            most = self._most(limit)
            until = _end_of_batch(feed, since, most, self._target)
            feed.hold(until if since == BEFORE_SNAPSHOT else since)
            return begin if until == since else self._offset(until)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 (Spark's name)
        """Returns the option `max_versions` as Spark's limit of files, which Spark passes to `latestOffset`."""
        most = self._source.options.max_versions
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    @reports_errors
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Remembers the newest version: the query ends with it."""
        with opened_feed(self._source) as feed:
            self._target = feed.line.newest

    @reports_errors
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Returns the tasks of one batch. Spark also calls it with an empty range, for the position where a query
        resumes."""
        self._last = end
        since, until = self._position(start), self._position(end)
        if since == until:
            return []
        with opened_feed(self._source) as feed:
            feed.hold(until if since == BEFORE_SNAPSHOT else since)
            return [ChangePartition(task) for task in feed.tasks(since, until)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the rows of one partition, in Arrow's batches."""
        return _rows(self._source, self._columns, partition)

    def commit(self, end: Offset) -> None:
        """Remembers the position of the query."""
        self._last = end

    def _most(self, limit: Any) -> int | None:
        """Returns the largest number of versions in a batch: Spark's value if its release passes one, otherwise the
        option."""
        if HAS_LIMITS and isinstance(limit, ReadAllAvailable):
            return None
        if HAS_LIMITS and isinstance(limit, ReadMaxFiles):
            return int(limit.max_files)
        return self._source.options.max_versions

    def _initial(self, feed: OpenFeed) -> Offset:
        if self._since == SNAPSHOT:
            return self._offset(BEFORE_SNAPSHOT)
        return self._offset(feed.position(self._since, "the option `since`"))

    def _offset(self, position: Position) -> Offset:
        return {"table": self._source.table_id, "dataset": position.dataset, "version": position.version}

    def _position(self, offset: Offset) -> Position:
        if offset["table"] != self._source.table_id:
            raise NotFound(
                "the checkpoint is of another table of that name, which was deleted since",
                where=self._source.address,
                remedy="begin the stream again with a new checkpoint, and the option `since` = snapshot",
            )
        return Position(int(offset["dataset"]), int(offset["version"]))


class RefusedStream(DataSourceStreamReader):
    """The reader of a stream that cannot be read: every call of Spark raises the reason."""

    def __init__(self, reason: DeployerError) -> None:
        self._reason = reason

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """Raises the reason; the first call of a new query."""
        raise self._reason.with_traceback(None) from None

    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: N802 (Spark's name)
        """Raises the reason."""
        raise self._reason.with_traceback(None) from None

    def getDefaultReadLimit(self) -> Any:  # noqa: N802 (Spark's name)
        """Raises the reason."""
        raise self._reason.with_traceback(None) from None

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Raises the reason; the first call of a query that resumes with a batch."""
        raise self._reason.with_traceback(None) from None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Raises the reason."""
        raise self._reason.with_traceback(None) from None


def _end_of_batch(feed: OpenFeed, since: Position, most: int | None, target: Position | None) -> Position:
    """Returns the last version of a batch after `since`: at most `most` versions later, and not after `target`."""
    line = feed.line
    newest = target or line.newest
    if since == BEFORE_SNAPSHOT:
        return newest
    if not line.is_behind(newest, since):
        return since
    number = line.place_of(since)
    segment, last = line.segments[number], line.place_of(newest)
    if since.version >= segment.last and number < last:  # the change of the swap is the first of the next dataset
        segment, number, since = line.segments[number + 1], number + 1, Position(0, line.segments[number + 1].first - 1)
    end = newest.version if number == last else segment.last
    version = end if most is None else min(end, since.version + most)
    return Position(segment.dataset, max(version, segment.first))
